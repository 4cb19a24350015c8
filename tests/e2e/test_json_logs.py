"""With HEADRACE_LOG_FORMAT=json every line on standard error is JSON, whatever happens: `jq` reads it to the end."""

import json
import os
import signal
import socket
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from headrace.assembly.connections import Role, most_connections
from headrace.settings.loading import Settings
from tests.conftest import MakeDatabase, TestServer
from tests.e2e.conftest import MakeFolder, Start
from tests.e2e.program import CHEAP, SECRET_KEY, Program, eventually, run_program

pytestmark = pytest.mark.long

ROLES: tuple[Role, ...] = ("api", "worker", "scheduler", "relay")
# A program that does what logs do not foresee.
NOISY = """
import sys, threading, warnings
from headrace import Registry

registry = Registry()
warnings.warn("this program is old", stacklevel=1)


class Untidy:
    def __del__(self):
        raise RuntimeError("untidy")


def break_down():
    raise RuntimeError("a thread broke down")


@registry.task("noise", isolation="process")
def noise(context, payload):
    print("printed by a child")
    print("and to its standard error", file=sys.stderr)


@registry.task("trouble")
async def trouble(context, payload):
    thread = threading.Thread(target=break_down)
    thread.start()
    thread.join()
    Untidy()
    warnings.warn("twice", RuntimeWarning, stacklevel=1)
"""


def lines(text: str) -> list[dict[str, Any]]:
    """What was written, each line by itself: one that is no JSON is named."""
    read = []
    for line in text.splitlines():
        try:
            read.append(json.loads(line))
        except ValueError:
            pytest.fail(f"no JSON: {line}")
    for each in read:
        assert each.keys() >= {"event", "level", "timestamp"}, each
    return read


def messages(text: str) -> list[str]:
    return [str(each.get("message", each["event"])) for each in lines(text)]


@pytest.fixture
def settings(database_url: str) -> dict[str, str]:
    return {**CHEAP, **SECRET_KEY, "HEADRACE_DATABASE_URL": database_url, "HEADRACE_LOG_FORMAT": "json"}


def said(program: Program, text: str) -> bool:
    return eventually(lambda: text in program.err or not program.running) and text in program.err


READY = {"api": "API at", "worker": "worker.entered", "scheduler": "firing schedules", "relay": "relaying events"}
SESSIONS = """
SELECT substring(application_name FROM ':(\\d+)$')::int AS pid, split_part(application_name, ' ', 2) AS part, count(*)
FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'headrace %' GROUP BY 1, 2
"""
CUT_OFF = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND application_name LIKE 'headrace %'
"""


def test_every_role_writes_nothing_but_json(
    start: Start, make_folder: MakeFolder, settings: dict[str, str], database_url: str
) -> None:
    here = make_folder()
    (here / "noisy.py").write_text(NOISY)
    settings |= {"HEADRACE_METRICS_PORT": str(20_000 + os.getpid() % 10_000), "PYTHONPATH": str(here)}
    running = {
        role: start(role, *["noisy:registry"] * (role == "worker"), folder=here, settings=settings) for role in ROLES
    }
    for role, program in running.items():
        assert said(program, READY[role]), f"{role}: {program.err}"
    running["api"].until_ready()
    pids = {program.process.pid: role for role, program in running.items()}

    # How many connections they have; at rest, fewer than they may open.
    chosen = Settings.model_validate({"metrics_port": 9100})
    with psycopg.connect(database_url.partition("?")[0], autocommit=True) as connection:
        open_now = dict.fromkeys(ROLES, 0)
        for pid, _, count in connection.execute(SESSIONS).fetchall():
            open_now[pids[pid]] += count
        for role, count in open_now.items():
            assert 0 < count <= most_connections(role, chosen), role
        for name in ("noise", "trouble"):
            connection.execute("SELECT headrace.submit(%s, '{}'::jsonb, unknown_type => 'wait')", [name])
        done = "SELECT count(*) FROM headrace.tasks WHERE task_type IN ('noise', 'trouble') AND finished_at IS NOT NULL"
        assert eventually(lambda: connection.execute(done).fetchall() == [(2,)])
        assert said(running["worker"], "and to its standard error")
        # What is not HTTP, and a database that goes away.
        url = urlsplit(running["api"].url())
        with socket.create_connection((url.hostname, url.port or 80), timeout=60) as client:
            client.sendall(b"\x16\x03\x01 this is no HTTP\r\n\r\n")
            client.recv(1000)
        connection.execute(CUT_OFF)
        assert eventually(lambda: {pid for pid, _, _ in connection.execute(SESSIONS).fetchall()} >= pids.keys())
    for program in running.values():
        assert program.stop(signal.SIGTERM) == 0, program.err
    for role, program in running.items():
        assert lines(program.err), role
        assert program.out == ""
    worker = messages(running["worker"].err)
    assert {"printed by a child", "and to its standard error"} <= set(worker)
    assert any("this program is old" in each["event"] for each in lines(running["worker"].err)), "a warning"
    assert {"RuntimeError: a thread broke down", "RuntimeError: untidy"} <= set(worker)
    assert worker[-1].startswith("stopped; ")


WRONG: dict[str, tuple[tuple[str, ...], dict[str, str], int, str]] = {
    "setting": (("worker",), {"HEADRACE_WORKER_LEASE": "soon"}, 2, "HEADRACE_WORKER_LEASE"),
    "option": (("scheduler", "--bogus"), {}, 2, "No such option: --bogus"),
    "program": (("worker", "missing:registry"), {}, 2, "There is no module missing here"),
    "key": (("api",), {"HEADRACE_SECRET_KEY": ""}, 2, "secret_key"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_is_said_in_json(wrong: str, make_folder: MakeFolder, settings: dict[str, str]) -> None:
    words, change, code, text = WRONG[wrong]
    done = run_program(*words, folder=make_folder(), settings=settings | change)
    assert done.code == code, done.err
    last = lines(done.err)[-1]
    assert (last["event"], last["level"]) == ("process.failed", "error")
    assert text in last["message"]
    assert done.out == ""


def test_an_unforeseen_error_is_one_line_with_its_traceback(folder: Path, settings: dict[str, str]) -> None:
    settings["HEADRACE_DATABASE_URL"] = settings["HEADRACE_DATABASE_URL"].replace("headrace_app", "nobody_of_that_name")
    done = run_program("relay", folder=folder, settings=settings)
    (line,) = lines(done.err)
    assert done.code == 1
    assert "this should not have happened" in line["message"]
    assert line["exception"].startswith("Traceback")


def test_waiting_for_the_database_is_said_in_json(start: Start, folder: Path, settings: dict[str, str]) -> None:
    nowhere = {"HEADRACE_DATABASE_URL": "postgresql://u:p@127.0.0.1:1/headrace"}
    program = start("worker", folder=folder, settings=settings | nowhere)
    assert said(program, "Waiting for it"), program.err
    program.stop(signal.SIGTERM)
    assert "Waiting for it" in messages(program.err)[0]


async def test_a_migration_says_its_steps_in_json(
    server: TestServer, make_database: MakeDatabase, folder: Path, settings: dict[str, str]
) -> None:
    settings["HEADRACE_DATABASE_URL"] = server.url(await make_database())
    notes = messages(run_program("migrate", folder=folder, settings=settings).err)
    assert notes[0] == "moving the schema"
    assert "migrating up 0001_accounts" in notes
    assert notes[-1].split()[1:3] == ["migrations", "applied;"]
    assert messages(run_program("migrate", folder=folder, settings=settings).err)[-1] == "nothing to do"


@pytest.mark.slow
def test_several_workers_of_one_command_write_json(start: Start, folder: Path, settings: dict[str, str]) -> None:
    program = start("worker", "--processes", "2", folder=folder, settings=settings)
    assert eventually(lambda: program.err.count("worker.entered") >= 2), program.err
    assert program.stop(signal.SIGTERM) == 0
    assert messages(program.err)[-1].startswith("stopped; ")


@pytest.mark.slow
def test_up_writes_json_and_no_password(start: Start, folder: Path) -> None:
    program = start("up", folder=folder, settings={**CHEAP, "HEADRACE_LOG_FORMAT": "json"})
    assert said(program, "Headrace is running at"), program.err
    name, password = (folder / ".headrace" / "first-password").read_text().split()
    assert program.stop() == 0
    notes = messages(program.err)
    (greeting,) = [each for each in notes if each.startswith("Headrace is running at http://")]
    assert f"log in as {name}, with the password in " in greeting
    assert notes[-1].startswith("stopped; the data stays in ")
    assert password not in program.err
    assert program.out == ""


def test_for_people_nothing_has_changed(folder: Path, settings: dict[str, str]) -> None:
    done = run_program("worker", "missing:registry", folder=folder, settings=settings | {"HEADRACE_LOG_FORMAT": "auto"})
    assert done.err.startswith("headrace: There is no module missing here")
    done = run_program("doctor", "--bogus", folder=folder, settings=settings)  # a command that a person reads
    assert "No such option" in done.err
    assert not done.err.startswith("{")
