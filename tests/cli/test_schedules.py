"""``headrace schedules``, ``executions``, ``cron`` and ``scheduler``: what an operator does to schedules."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Call, Place
from tests.cli.test_tasks import PROGRAM, _run
from tests.e2e.program import Done, Program, eventually

Headrace = Callable[..., Done]


@pytest.fixture
def headrace(call: Call, migrated: Place) -> Headrace:
    _run(migrated, "INSERT INTO headrace.task_types (name, max_attempts) VALUES ('greet', 3), ('fail', 1)")
    return lambda *words, **more: call(*words, settings=migrated.settings, **more)


def _looked(place: Place) -> int:
    (row,) = _run(place, "SELECT count(*) FROM headrace.audit_events WHERE action = 'read'")
    return int(row[0])


def test_a_schedule_is_made_listed_changed_and_deleted(headrace: Headrace, migrated: Place) -> None:
    made = headrace("schedules", "create", "nightly", "greet", "--cron", "0 2 * * *", "--tz", "Asia/Shanghai")
    assert made.code == 0, made.err
    uid = made.out.strip()
    assert "0 2 * * * (Asia/Shanghai)" in headrace("schedules", "list").out
    changed = headrace("schedules", "update", uid, "--data", '{"name": "Ada"}', "--max-concurrent", "2", "--json")
    shown = json.loads(changed.out)
    assert (shown["data"], shown["max_concurrent"], shown["version"]) == ({"name": "Ada"}, 2, 1)
    assert headrace("schedules", "update", uid).code == 2
    assert "is disabled" in headrace("schedules", "disable", uid).out
    assert "is enabled, due" in headrace("schedules", "enable", uid).out
    assert len(json.loads(headrace("schedules", "next", uid, "--count", "3", "--json").out)) == 3
    run = headrace("schedules", "run", uid).out.strip()
    waiting = headrace("executions", "list", "--schedule", uid).out
    assert (run in waiting, "%" in waiting) == (True, False), "what waits has taken no time and got nowhere"
    assert "No worker is alive" in headrace("executions", "why", run).out
    assert "is CANCELED" in headrace("executions", "cancel", run).out
    assert json.loads(headrace("executions", "show", run, "--json").out)["status"] == "CANCELED"
    assert json.loads(headrace("schedules", "statistics", uid, "--json").out)["total_executions"] == 1
    before = _looked(migrated)
    assert headrace("schedules", "list").code == 0
    assert _looked(migrated) == before + 1, "one look, one event"
    assert headrace("schedules", "delete", uid, "--yes").code == 0
    assert headrace("schedules", "show", uid).code == 3
    events = _run(migrated, "SELECT action, resource_type FROM headrace.audit_events ORDER BY seq")
    changes = [(row["action"], row["resource_type"]) for row in events if row["action"] != "read"]
    assert changes == [
        ("created", "scheduledTask"),
        ("updated", "scheduledTask"),
        ("disabled", "scheduledTask"),
        ("enabled", "scheduledTask"),
        ("created", "execution"),
        ("updated", "task"),
        ("updated", "execution"),
        ("deleted", "scheduledTask"),
    ]


def test_a_type_that_nobody_runs_is_warned_of_and_one_that_is_long_gone_refused(
    headrace: Headrace, call: Call, migrated: Place
) -> None:  # S-02
    made = headrace("schedules", "create", "nightly", "greet", "--cron", "@daily")
    assert made.code == 0
    assert "warning: its runs will wait. No worker is alive." in made.err
    uid = made.out.strip()
    shown = json.loads(headrace("schedules", "show", uid, "--json").out)
    assert [warning["code"] for warning in shown["warnings"]] == ["no_worker"]
    _run(migrated, "UPDATE headrace.task_types SET seen_at = now() - interval '8 days'")
    for words in (["create", "other", "greet", "--cron", "@daily"], ["update", uid, "--priority", "1"]):
        refused = headrace("schedules", *words)
        assert (refused.code, "'greet' is no longer registered" in refused.err) == (2, True), refused.err
    assert headrace("schedules", "disable", uid).code == 0
    assert headrace("schedules", "enable", uid).code == 2
    longer = {**migrated.settings, "HEADRACE_TASK_TYPE_LIFETIME": "30d"}
    assert call("schedules", "enable", uid, settings=longer).code == 0


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["create", "x", "greet", "--cron", "0 0 30 2 *"], 2, "not a cron expression"),
        (["create", "x", "nobody", "--interval", "60"], 2, "nobody"),
        (["create", "x", "greet"], 2, "Set cron"),
        (["create", "x", "greet", "--run-at", "2030-01-02T03:04"], 2, "--run-at needs a zone"),
        (["create", "x", "greet", "--interval", "60", "--tz", "Mars"], 2, "not a time zone"),
        (["show", "sch_none"], 3, "no such schedule"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(headrace: Headrace, words: list[str], code: int, says: str) -> None:
    refused = headrace("schedules", *words)
    assert refused.code == code
    assert says in refused.err
    assert len(refused.err.strip().splitlines()[-1:]) == 1


def test_cron_prints_the_next_runs_without_a_database(call: Call) -> None:
    done = call("cron", "0 2 * * *", "--tz", "Asia/Shanghai", "--count", "2", "--after", "2026-03-01T00:00:00Z")
    assert done.out.splitlines() == [
        "Mon 2026-03-02 02:00:00 +0800   2026-03-01 18:00:00 UTC",
        "Tue 2026-03-03 02:00:00 +0800   2026-03-02 18:00:00 UTC",
    ]
    assert json.loads(call("cron", "@yearly", "--after", "2026-03-01", "--count", "1", "--json").out) == [
        "2027-01-01T00:00:00+00:00"
    ]
    assert call("cron", "0 0 31 2 *").code == 2
    assert call("cron", "0 2 * * *", "--after", "9999-12-31T00:00:00Z").code == 2


@pytest.fixture
def running(tmp_path: Path, migrated: Place) -> Iterator[list[Program]]:
    """A scheduler and a worker, as processes."""
    folder = tmp_path / "program"
    folder.mkdir()
    (folder / "shop.py").write_text(PROGRAM)
    programs = [
        Program("worker", "shop:registry", folder=folder, settings=migrated.settings),
        Program("scheduler", folder=folder, settings=migrated.settings),
    ]
    yield programs
    for program in programs:
        program.close()


def test_a_scheduler_fires_and_a_worker_runs(headrace: Headrace, running: list[Program], migrated: Place) -> None:
    uid = headrace("schedules", "create", "often", "greet", "--interval", "1", "--data", '{"name": "Ada"}').out.strip()

    def succeeded() -> bool:
        shown: list[Any] = json.loads(headrace("executions", "list", "--schedule", uid, "--json").out)
        return len([run for run in shown if run["status"] == "SUCCEEDED"]) >= 2

    assert eventually(succeeded)
