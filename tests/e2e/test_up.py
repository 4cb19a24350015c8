"""``headrace up`` as a person uses it: one command, one folder, and nothing left behind."""

import json
import shutil
import signal
import stat
import threading
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

from headrace import embedded_postgres
from headrace.embedded_postgres.account import Account
from tests.clusters import copy_cluster, migrated_cluster
from tests.e2e.conftest import MakeFolder, Start
from tests.e2e.program import (
    CHEAP,
    eventually,
    is_deserted,
    is_over,
    is_ready,
    layout_of,
    log_in,
    postmaster_of,
    run_program,
    running_in,
)

pytestmark = pytest.mark.long


def test_from_an_empty_folder_to_the_second_day(folder: Path, start: Start) -> None:
    """Start, log in, start once more by mistake, stop with Ctrl-C, start again: all with the default settings."""
    first = start("up", folder=folder)
    first.until_ready()
    url, (name, password) = first.url(), first.login()
    kept = folder / ".headrace" / "first-password"
    assert (kept.read_text(), stat.filemode(kept.stat().st_mode)) == (f"{name}\n{password}\n", "-rw-------")
    assert log_in(url, name, "not the password").status_code == 401
    assert {path.name for path in folder.iterdir()} == {".headrace"}

    again = run_program("up", folder=folder)
    assert (again.code, again.out) == (0, "")
    assert again.err == f"Headrace is already running at {url} (process {first.process.pid}).\n"

    assert first.stop(signal.SIGINT) == 0
    assert running_in(folder) == []
    said = first.err.splitlines()
    assert said[-2:] == ["stopping", "stopped; the data stays in .headrace"]
    assert (
        first.out.splitlines()[-1]
        == f"Log in as {name} with the password {password} (it stays in .headrace/first-password)"
    )
    assert [line for line in said if '"process.stopping"' in line]
    assert password not in first.err
    assert not any(password in path.read_text(errors="replace") for path in folder.rglob("*.log"))

    key = folder / ".headrace" / "secret.key"
    key.rename(folder / "elsewhere")
    second = start("up", folder=folder)
    second.until_ready()
    assert ".headrace/secret.key is missing" not in first.err
    assert second.err.count("warning: .headrace/secret.key is missing") == 1
    assert key.read_text() != (folder / "elsewhere").read_text()
    assert second.login() == (name, password)  # nobody has used it yet
    assert log_in(second.url(), name, password).status_code == 200
    assert eventually(lambda: not kept.exists())

    assert second.stop(signal.SIGTERM) == 0
    assert running_in(folder) == []
    assert second.err.splitlines()[-1] == "stopped; the data stays in .headrace"
    assert password not in second.out.splitlines()[-1]


def test_what_is_killed_comes_back(folder: Path, start: Start) -> None:
    copy_cluster(migrated_cluster(), layout_of(folder).home)
    first = start("up", folder=folder, settings=CHEAP)
    name, password = first.login()
    processes = running_in(folder)
    assert len(processes) > 3  # the keeper, the postmaster and its children
    first.kill()
    assert is_deserted(folder), "killing `up` must not leave its PostgreSQL"
    assert eventually(lambda: all(is_over(process) for process in processes))

    second = start("up", folder=folder, settings=CHEAP)
    second.until_ready()
    assert log_in(second.url(), name, password).status_code == 200
    killed = postmaster_of(folder)
    killed.kill()
    assert eventually(lambda: is_over(killed), within=60)
    # What /readyz says may be a second old.
    assert eventually(lambda: log_in(second.url(), name, password).status_code == 200)
    assert is_ready(second.url())
    assert postmaster_of(folder) != killed
    assert second.stop() == 0
    assert running_in(folder) == []


@pytest.mark.slow
def test_ctrl_c_says_that_postgresql_stays_up_for_another_process(folder: Path, start: Start) -> None:
    """ "stopped" while PostgreSQL runs on for a worker: a copy of the folder would be of no moment in particular."""
    copy_cluster(migrated_cluster(), layout_of(folder).home)
    first = start("up", folder=folder, settings=CHEAP)
    first.until_ready()
    with embedded_postgres.attach(embedded_postgres.EmbeddedConfig(folder / ".headrace")):
        assert first.stop(signal.SIGINT) == 0
        assert first.err.splitlines()[-1].startswith("stopped, but PostgreSQL stays up for another process")
    assert running_in(folder) == []


@pytest.mark.slow
def test_up_outlives_the_drop_of_its_schema_and_says_so_in_a_line(folder: Path, start: Start) -> None:
    """It died with "this should not have happened" and took PostgreSQL away from the restore that was under way."""
    copy_cluster(migrated_cluster(), layout_of(folder).home)
    first = start("up", folder=folder, settings=CHEAP)
    first.until_ready()
    assert run_program("backup", "b", folder=folder).code == 0
    drop = ("database", "psql", "--owner", "--", "-qc", "DROP SCHEMA headrace CASCADE")
    assert run_program(*drop, folder=folder).code == 0
    # A loop may log the missing schema first, while the API's connections are still open.
    assert eventually(lambda: "PostgreSQL alone stays up" in first.err)
    postmaster = postmaster_of(folder)
    restored = run_program("restore", "b", "--verify", "--replace", folder=folder)
    assert restored.code == 0, restored.err
    assert first.running
    assert postmaster_of(folder) == postmaster
    assert first.stop(signal.SIGINT) == 7
    assert "this should not have happened" not in first.err
    assert first.err.splitlines()[-1].startswith("headrace: Headrace's schema was dropped")

    second = start("up", folder=folder, settings=CHEAP)
    second.until_ready()
    assert second.stop() == 0


@pytest.mark.slow
def test_doctor_sees_for_how_long_a_transaction_has_blocked_others(folder: Path, start: Start) -> None:
    """On the embedded server it named the session of a program's role without the age of its transaction."""
    copy_cluster(migrated_cluster(), layout_of(folder).home)
    start("up", folder=folder, settings=CHEAP).until_ready()
    url = run_program("database", "schema", "shop", folder=folder).out.strip()
    lock = "SELECT pg_advisory_xact_lock(1)"
    with ExitStack() as stack:
        holder, waiter = (stack.enter_context(psycopg.connect(url, application_name=name)) for name in ("import", "w"))
        holder.execute(lock)
        thread = threading.Thread(target=lambda: waiter.execute(lock))
        thread.start()

        def found() -> dict[str, str]:
            findings = json.loads(run_program("doctor", "--json", folder=folder).out)
            return {each["check"]: each["message"] for each in findings}

        assert eventually(lambda: "(import), whose transaction has been open for" in found()["locks"])
        holder.commit()
        thread.join(60)


@pytest.mark.slow
def test_up_on_an_empty_database_says_that_another_one_was_there(folder: Path, start: Start) -> None:
    """After its schema was dropped the next `up` made an empty database, and everything looked healthy."""
    copy_cluster(migrated_cluster(), layout_of(folder).home)
    assert run_program("admin", "create", "ada", folder=folder, settings=CHEAP).code == 0
    assert run_program("audit", "seal", folder=folder).code == 0
    assert "sealed" in run_program("doctor", folder=folder).out
    drop = ("database", "psql", "--owner", "--", "-qc", "DROP SCHEMA headrace CASCADE")
    assert run_program(*drop, folder=folder).code == 0
    again = start("up", folder=folder, settings=CHEAP)
    again.until_ready()
    (warning,) = [line for line in again.err.splitlines() if "that this database does not have" in line]
    assert warning.startswith("warning: ")
    assert "headrace restore FILE --replace" in warning
    findings = json.loads(run_program("doctor", "--json", folder=folder).out)
    (sealing,) = [each for each in findings if each["check"] == "sealing"]
    assert sealing["verdict"] == "warning"
    assert "that this database does not have" in sealing["message"]
    assert again.stop() == 0


@pytest.mark.slow
def test_two_folders_do_not_know_of_each_other(make_folder: MakeFolder, start: Start) -> None:
    folders = [make_folder() for _ in range(2)]
    for folder in folders:
        copy_cluster(migrated_cluster(), layout_of(folder).home)
    programs = [start("up", folder=folder, settings=CHEAP) for folder in folders]
    one, other = programs
    for program in programs:
        program.until_ready()
    assert one.url() != other.url()
    assert layout_of(one.folder).kept.read_text() != layout_of(other.folder).kept.read_text()
    assert log_in(one.url(), *one.login()).status_code == 200
    assert log_in(other.url(), *one.login()).status_code == 401
    for program in programs:
        program.press_ctrl_c()
    assert [program.process.wait(60) for program in programs] == [0, 0]


def test_an_ordinary_user_needs_no_more_than_a_folder(folder: Path, start: Start, ordinary: Account) -> None:
    shutil.chown(folder, ordinary.uid, ordinary.gid)
    program = start("up", folder=folder, settings={**CHEAP, "HOME": str(folder)}, account=ordinary)
    program.until_ready()
    assert log_in(program.url(), *program.login()).status_code == 200
    assert {process.uids().real for process in [program.process_info, *running_in(folder)]} == {ordinary.uid}
    assert {path.name for path in folder.iterdir()} == {".headrace"}
    assert {path.stat().st_uid for path in folder.rglob("*")} == {ordinary.uid}
    assert program.stop() == 0
    assert running_in(folder) == []


@pytest.mark.slow
def test_ctrl_c_while_it_starts(folder: Path, start: Start) -> None:
    program = start("up", folder=folder, settings=CHEAP)
    assert eventually(lambda: "creating the database" in program.err or not program.running, within=60)
    assert program.stop(signal.SIGINT) == 130
    assert "Traceback" not in program.err
    assert is_deserted(folder)
    again = start("up", folder=folder, settings=CHEAP)
    again.until_ready()
    assert log_in(again.url(), *again.login()).status_code == 200
    assert again.stop() == 0


@pytest.mark.slow
def test_two_at_once_in_one_folder_are_one(folder: Path, start: Start) -> None:
    both = [start("up", folder=folder, settings=CHEAP) for _ in range(2)]
    assert eventually(lambda: any(not program.running for program in both), within=60)
    (told,) = [program for program in both if not program.running]
    (runs,) = [program for program in both if program.running]
    assert told.process.returncode == 0
    assert "Headrace is already " in told.err
    runs.until_ready()
    assert runs.stop() == 0


def test_a_program_beside_one_that_is_up_gets_a_worker_or_a_word(folder: Path, start: Start) -> None:
    copy_cluster(migrated_cluster(), layout_of(folder).home)
    assert run_program("init", "shop", folder=folder).code == 0
    project = {**CHEAP, "PYTHONPATH": str(folder / "shop")}
    first = start("up", folder=folder, settings=CHEAP)
    first.until_ready()
    beside = start("up", "--app", "shop.tasks:registry", folder=folder, settings=project)
    assert eventually(lambda: '"worker.entered"' in beside.err or not beside.running), beside.err
    assert "; this is a worker for shop.tasks:registry beside it." in beside.err
    done = run_program("submit", "greet", "--payload", '{"name": "Ada"}', "--wait", folder=folder, settings=project)
    assert "Hello, Ada!" in done.out, done.err + beside.err
    assert beside.stop() == 0
    refused = run_program("up", "--port", "1", folder=folder, settings=CHEAP)
    assert (refused.code, refused.out) == (4, "")
    assert "stop it, then start it with these options" in refused.complaint
    assert first.stop() == 0
