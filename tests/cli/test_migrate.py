"""``headrace migrate`` from the outside. W-19."""

import asyncio
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from headrace import migrations
from headrace.database import DatabaseConfig
from headrace.embedded_postgres import binaries
from headrace.migrations import definitions
from tests.cli.conftest import Call, Place
from tests.conftest import TestServer
from tests.e2e.program import HEADRACE, environment
from tests.migrations.catalog import describe
from tests.missing_programs import missing

ALL = [str(migration) for migration in migrations.available()]
LAST = migrations.available()[-1]


def schema(place: Place) -> dict[str, str]:
    return asyncio.run(describe(DatabaseConfig(place.owner_url)))


def test_up_then_nothing_to_do(call: Call, empty: Place) -> None:
    first = call("migrate", settings=empty.settings)
    assert (first.code, first.out) == (0, "")
    *moved, defining, told = first.err.splitlines()
    assert moved == [
        "· moving the schema",
        *(f"· migrating up {name}" for name in ALL),
    ]
    assert defining.startswith("· defining triggers/")
    assert told == f"{len(ALL)} migrations applied; {len(definitions.known())} functions, triggers and views defined"
    again = call("migrate", settings=empty.settings)
    assert (again.code, again.err.splitlines()[-1]) == (0, "nothing to do")


def test_status_changes_nothing_and_says_what_is_missing(call: Call, empty: Place) -> None:
    said = call("migrate", "--status", settings=empty.settings)
    assert said.code == 0
    *tables, others = [line.split() for line in said.out.splitlines()[1:]]
    assert tables == [[*name.split("_", maxsplit=1), "missing"] for name in ALL]
    assert " ".join(others).startswith(f"functions, triggers, views {len(definitions.known())} missing")
    assert schema(empty) == {}


def test_status_for_programs(call: Call, empty: Place) -> None:
    call("migrate", "--to", "3", settings=empty.settings)
    said = json.loads(call("migrate", "--status", "--json", settings=empty.settings).out)
    assert said["current"] == 3
    assert [entry["number"] for entry in said["applied"]] == [1, 2, 3]
    assert [entry["number"] for entry in said["pending"]] == list(range(4, LAST.number + 1))
    assert (said["unknown"], said["changed"]) == ([], [])


def test_status_of_a_database_from_the_future_is_told_not_refused(call: Call, future: Place) -> None:
    said = call("migrate", "--status", "--json", settings=future.settings)
    assert said.code == 0
    assert json.loads(said.out)["unknown"] == [9999]


def test_up_to_down_to_and_all_the_way(call: Call, empty: Place) -> None:
    done = call("migrate", "--to", "2", "--json", settings=empty.settings)
    assert json.loads(done.out) == {"direction": "up", "applied": ALL[:2], "retention": {}}
    two = schema(empty)
    call("migrate", settings=empty.settings)
    one_back = call("migrate", "--down", "--yes", "--json", settings=empty.settings)
    assert json.loads(one_back.out) == {"direction": "down", "applied": [str(LAST)]}
    assert call("migrate", "--down", "--to", "2", "--yes", settings=empty.settings).code == 0
    assert schema(empty) == two
    assert call("migrate", "--down", "--to", "0", "--yes", settings=empty.settings).code == 0
    assert schema(empty) == {}


@pytest.mark.parametrize("answer", ["n\n", "\n", ""])
def test_going_back_asks_first(call: Call, migrated: Place, answer: str) -> None:
    before = schema(migrated)
    refused = call("migrate", "--down", settings=migrated.settings, stdin=answer)
    assert (refused.code, refused.out.strip()) == (1, "")
    assert "deletes the tables" in refused.err
    assert "Traceback" not in refused.err
    assert schema(migrated) == before
    assert call("migrate", "--down", settings=migrated.settings, stdin="y\n").code == 0
    assert schema(migrated) != before


def test_a_number_that_no_migration_has(call: Call, empty: Place) -> None:
    refused = call("migrate", "--to", "4711", settings=empty.settings)
    assert refused.code == 2
    assert refused.complaint == f"There is no migration 4711; this program knows 1 to {LAST.number}."


def _psql(url: str, script: str) -> "subprocess.CompletedProcess[str]":
    bundled = [folder / "psql" for folder in binaries.list_folders(None)]
    psql = shutil.which("psql") or next((str(program) for program in bundled if program.is_file()), None)
    if psql is None:
        pytest.skip(missing("psql"))
    return subprocess.run(
        [psql, "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", url],
        input=script,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.both
def test_the_printed_sql_is_what_psql_takes(call: Call, empty: Place, migrated: Place) -> None:
    up = call("migrate", "--sql", settings=empty.settings)
    assert up.code == 0
    assert schema(empty) == {}, "printing must not apply anything"
    applied = _psql(empty.owner_url, up.out)
    assert (applied.returncode, applied.stderr) == (0, "")
    assert schema(empty) == schema(migrated)
    assert call("migrate", settings=empty.settings).err.splitlines()[-1] == "nothing to do"

    down = call("migrate", "--sql", "--down", "--to", "1", settings=empty.settings)
    undone = _psql(empty.owner_url, down.out)
    assert (undone.returncode, undone.stderr) == (0, "")
    assert json.loads(call("migrate", "--status", "--json", settings=empty.settings).out)["current"] == 1


def test_processes_that_start_together_migrate_once(
    empty: Place, migrated: Place, tmp_path: Path, server: TestServer
) -> None:
    """Must be seen: every replica of a deployment may run `headrace migrate` when it starts. Ten at once, without the
    processes, are in ``tests/migrations/test_runner.py``."""
    started = [
        subprocess.Popen(
            [*HEADRACE, "migrate", "--json"],
            cwd=tmp_path,
            env=environment(empty.settings),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    try:
        ended = [process.communicate(timeout=100) for process in started]
    finally:
        for process in started:
            if process.poll() is None:
                process.kill()
                process.wait()
    assert [process.returncode for process in started] == [0] * 3, [err for _, err in ended]
    applied = sorted((json.loads(out)["applied"] for out, _ in ended), key=len)
    assert applied == [[]] * 2 + [ALL]
    assert schema(empty) == schema(migrated)
