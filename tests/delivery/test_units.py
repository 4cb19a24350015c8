"""The systemd units, without systemd: read, and started in their order by a small supervisor."""  # D-10

import asyncio
import configparser
import shlex
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from typer.main import get_command

from headrace.cli.app import app
from headrace.settings.loading import Settings
from tests.delivery import ROOT
from tests.e2e.program import CHEAP, HEADRACE, SECRET_KEY, Program, environment, run_program

UNITS = sorted((ROOT / "deploy" / "systemd").glob("*.service"))
ROLES = ("api", "scheduler", "relay", "worker@")
PROGRAM = """
from headrace import Registry

registry = Registry()


@registry.task("count", max_attempts=1)
async def count(context, payload):
    return payload
"""


class _Unit(configparser.RawConfigParser):
    """Names as they are written; of a name that comes twice, the last value."""

    def optionxform(self, optionstr: str) -> str:
        return optionstr


def read(path: Path) -> _Unit:
    unit = _Unit(strict=False, interpolation=None)
    unit.read_string(path.read_text())
    return unit


def command_of(path: Path) -> list[str]:
    return shlex.split(read(path)["Service"]["ExecStart"])


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)
def test_it_runs_a_command_of_the_program_with_few_rights(path: Path) -> None:
    program, role, *_ = command_of(path)
    assert program == "/opt/headrace/bin/headrace"
    assert role in get_command(app).commands  # type: ignore[attr-defined]
    service = read(path)["Service"]
    assert service["User"] == "headrace"
    assert service["NoNewPrivileges"] == "yes"
    assert service["ProtectSystem"] == "strict"
    assert "HEADRACE_SECRETS_DIR=%d" in path.read_text()
    assert "postgresql://" not in path.read_text()


@pytest.mark.parametrize("role", ROLES)
def test_it_starts_after_the_migration_and_stops_with_the_target(role: str) -> None:
    unit = read(ROOT / "deploy" / "systemd" / f"headrace-{role}.service")["Unit"]
    assert "headrace-migrate.service" in unit["After"].split()
    assert unit["Requires"] == "headrace-migrate.service"
    assert unit["PartOf"] == "headrace.target"


def test_the_example_of_an_environment_has_settings_only() -> None:
    lines = (ROOT / "deploy" / "systemd" / "environment.example").read_text().splitlines()
    names = {line.partition("=")[0] for line in lines if line and not line.startswith("#")}
    settings = {f"HEADRACE_{name.upper()}" for name in Settings.model_fields}
    assert names - settings == {"WORKER_APP"}


class Machine:
    """All roles of one machine, each by the command line of its unit, with secrets as systemd hands them on."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.secrets = folder / "credentials"
        self.secrets.mkdir()
        (self.secrets / "headrace_database_url").write_text(url)
        (self.secrets / "headrace_secret_key").write_text(SECRET_KEY["HEADRACE_SECRET_KEY"])
        (folder / "shop.py").write_text(PROGRAM)
        self.settings = {**CHEAP, "HEADRACE_SECRETS_DIR": str(self.secrets), "HEADRACE_LOG_FORMAT": "json"}
        self.running: dict[str, Program] = {}

    def start(self, role: str) -> Program:
        _, *words = command_of(ROOT / "deploy" / "systemd" / f"headrace-{role}.service")
        words = [word if word != "$WORKER_APP" else "shop:registry" for word in words]
        chosen = environment({**self.settings, "PYTHONPATH": str(self.folder)})
        self.running[role] = Program(*words, folder=self.folder, variables=chosen, command=HEADRACE)
        if role == "api":
            self.running[role].until_ready()
        return self.running[role]

    def stop(self, role: str) -> int:
        program = self.running.pop(role)
        try:
            return program.stop()
        finally:
            program.close()


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_a_rolling_restart_under_load_loses_nothing(database_url: str, tmp_path: Path) -> None:
    machine = Machine(tmp_path, database_url)
    migrated = run_program("migrate", folder=tmp_path, settings=machine.settings)
    assert migrated.code == 0, migrated.err
    for role in ROLES:
        machine.start(role)
    connection: asyncpg.Connection[Any] = await asyncpg.connect(database_url)
    try:
        submitted = await _submit(connection, 300)
        for role in (*ROLES, *ROLES):
            assert machine.stop(role) == 0, role
            submitted += await _submit(connection, 300)
            machine.start(role)
        succeeded = "SELECT count(*) FROM headrace.tasks WHERE task_type = 'count' AND status = 'SUCCEEDED'"
        for _ in range(600):
            if await connection.fetchval(succeeded) == submitted:
                break
            await asyncio.sleep(0.1)
        assert await connection.fetchval(succeeded) == submitted
        again = "SELECT count(*) FROM headrace.tasks WHERE task_type = 'count' AND attempt > 1"
        assert await connection.fetchval(again) == 0
    finally:
        await connection.close()
        for role in [*machine.running]:
            machine.stop(role)


async def _submit(connection: "asyncpg.Connection[Any]", number: int) -> int:
    for n in range(number):
        await connection.fetchval(
            "SELECT headrace.submit('count', jsonb_build_object('n', $1::int), unknown_type => 'wait')", n
        )
    return number
