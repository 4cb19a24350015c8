"""``headrace submit``, ``tasks``, ``queues``, ``workers``: what an operator does to tasks, and what the trail says."""

import asyncio
import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from headrace import ids
from headrace.cli.tasks import attempts
from tests.cli.conftest import Call, Place
from tests.e2e.program import HEADRACE, Done, Program, environment, eventually

PROGRAM = """
import asyncio
from headrace import Fatal, Registry

registry = Registry()

@registry.task("greet")
async def greet(context, payload):
    await context.progress(50)
    return {"hello": payload.get("name")}

@registry.task("fail", max_attempts=1)
async def fail(context, payload):
    await context.log("about to fail")
    raise Fatal("there is no paper")

@registry.task("sleep")
async def sleep(context, payload):
    await asyncio.sleep(60)
"""

Headrace = Callable[..., Done]


@pytest.fixture
def headrace(call: Call, migrated: Place) -> Headrace:
    """The command line on a migrated database that knows the types of PROGRAM."""
    _run(migrated, "INSERT INTO headrace.task_types (name) VALUES ('greet'), ('fail'), ('sleep')")
    return lambda *words, **more: call(*words, settings=migrated.settings, **more)


@pytest.fixture
def worker(tmp_path: Path, migrated: Place) -> Iterator[Program]:
    folder = tmp_path / "program"
    folder.mkdir()
    (folder / "shop.py").write_text(PROGRAM)
    program = Program("worker", "shop:registry", folder=folder, settings=migrated.settings)
    yield program
    program.close()


def _run(place: Place, sql: str) -> Any:
    async def act() -> Any:
        connection = await asyncpg.connect(place.owner_url)
        try:
            return await connection.fetch(sql)
        finally:
            await connection.close()

    return asyncio.run(act())


def trail(place: Place) -> list[tuple[str, str, str, str]]:
    rows = _run(
        place,
        """SELECT action, resource ->> 'type', "user" ->> 'uid', user_agent FROM headrace.audit_events ORDER BY seq""",
    )
    return [tuple(row) for row in rows]


# -- submitting


def test_a_task_is_submitted_as_the_product_itself_and_audited(headrace: Headrace, migrated: Place) -> None:
    done = headrace(
        "submit", "greet", "--payload", '{"name": "Ada"}', "--title", "Hi", "--queue", "q", "--priority", "3"
    )
    assert done.code == 0, done.err
    task_id = ids.check(done.out.strip(), "tsk")
    task = json.loads(headrace("tasks", "show", task_id, "--json").out)
    assert (task["payload"], task["title"], task["queue"], task["priority"]) == ({"name": "Ada"}, "Hi", "q", 3)
    assert task["user_id"] == ids.SYSTEM_USER
    [(action, resource, user, agent)] = trail(migrated)
    assert (action, resource, user) == ("created", "task", ids.SYSTEM_USER)
    assert agent.startswith("headrace submit (")


def test_the_payload_comes_from_a_file_or_from_standard_input(headrace: Headrace, tmp_path: Path) -> None:
    (tmp_path / "order.json").write_text('{"name": "file"}')
    ways: list[tuple[str, dict[str, str]]] = [("@order.json", {}), ("-", {"stdin": '{"name": "pipe"}'})]
    for (given, more), name in zip(ways, ("file", "pipe"), strict=True):
        done = headrace("submit", "greet", "--payload", given, "--json", **more)
        assert json.loads(done.out)["payload"] == {"name": name}


def test_options_of_a_task(headrace: Headrace) -> None:
    words = [
        "--run-at",
        "2030-01-02T03:04:05Z",
        "--max-attempts",
        "7",
        "--timeout",
        "90",
        "--labels",
        "gpu=a100,zone=b",
    ]
    task = json.loads(headrace("submit", "greet", *words, "--json").out)
    assert (task["run_at"], task["max_attempts"], task["timeout_seconds"]) == ("2030-01-02T03:04:05Z", 7, 90)
    assert task["labels"] == {"gpu": "a100", "zone": "b"}


def test_a_time_in_the_past_is_taken_and_said(headrace: Headrace) -> None:
    done = headrace("submit", "greet", "--run-at", "2020-01-02T03:04:05Z")
    assert (done.code, done.out.startswith("tsk_")) == (0, True)
    assert "2020-01-02T03:04:05Z is in the past: it may start at once" in done.err


def test_one_key_gives_one_task(headrace: Headrace) -> None:
    first, again = (headrace("submit", "greet", "--idempotency-key", "k").out for _ in range(2))
    assert first == again
    refused = headrace("submit", "greet", "--payload", "[]", "--idempotency-key", "k")
    assert (refused.code, refused.complaint) == (
        2,
        "This Idempotency-Key was used for another request: use a new key for each new request.",
    )


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["unheard.of"], 2, "No worker has ever registered the task type 'unheard.of'; known are: fail, greet, sleep."),
        (["great"], 2, "No worker has ever registered the task type 'great'; did you mean greet?"),
        (["greet", "--payload", "{"], 2, "What --payload holds is not JSON:"),
        (["greet", "--payload", "@missing.json"], 2, "missing.json cannot be read:"),
        (["greet", "--payload", '"\\u0000"'], 2, "Text must be valid Unicode without the character U+0000."),
        (["greet", "--run-at", "soon"], 2, "--run-at takes a time like 2026-03-01T08:00:00Z, not 'soon'."),
        (["greet", "--run-at", "2030-01-02T03:04"], 2, "--run-at needs a zone: 2030-01-02T03:04Z for UTC"),
        (["greet", "--run-at", "2030-01-02"], 2, "--run-at needs a zone: 2030-01-02T00:00Z for UTC"),
        (["greet", "--run-at", "2030-01-02+08:00"], 2, "--run-at needs a time of day before the zone:"),
        (["greet", "--labels", "gpu"], 2, "--labels takes key=value, not 'gpu'."),
        (["greet", "--priority", "10000000"], 2, "priority: Input should be less than or equal to 1000000"),
        (["greet", "--limit-key", ""], 2, "limit_key: "),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_cannot_be_submitted_is_said_in_a_line(headrace: Headrace, words: list[str], code: int, says: str) -> None:
    done = headrace("submit", *words)
    assert done.code == code
    assert done.complaint.startswith(says)


@pytest.mark.parametrize("seconds", ["nan", "inf", "1e10"])
def test_no_timeout_is_too_large_to_be_refused(headrace: Headrace, seconds: str) -> None:
    done = headrace("submit", "greet", "--timeout", seconds)
    assert (done.code, "'--timeout'" in done.err) == (2, True)


@pytest.mark.parametrize(
    ("status", "attempt", "retries", "shown"),
    [("QUEUED", 0, 0, "0/2"), ("RUNNING", 1, 0, "1/2"), ("QUEUED", 3, 0, "0/2"), ("RUNNING", 4, 1, "2/2"),
     ("SUCCEEDED", 4, 1, "2/2"), ("FAILED", 2, 1, "2/2"), ("CANCELED", 0, 0, "0/2")],
)  # fmt: skip
def test_a_snooze_uses_no_try_up(status: str, attempt: int, retries: int, shown: str) -> None:
    assert attempts({"status": status, "attempt": attempt, "retries": retries, "max_attempts": 2}) == shown


# -- waiting


def test_waiting_prints_the_result_or_fails(headrace: Headrace, worker: Program) -> None:
    done = headrace("submit", "greet", "--payload", '{"name": "Ada"}', "--wait")
    assert (done.code, json.loads(done.out)) == (0, {"hello": "Ada"}), worker.err
    failed = headrace("submit", "fail", "--wait")
    assert (failed.code, failed.out) == (1, "")
    assert "is FAILED: there is no paper" in failed.err
    as_json = headrace("submit", "fail", "--wait", "--json")
    task = json.loads(as_json.out)
    assert (as_json.code, task["status"], task["error_code"]) == (1, "FAILED", "fatal")
    lines = headrace("tasks", "logs", task["id"]).out.splitlines()
    assert [line.split("UTC ")[1] for line in lines] == [
        "1 LOG         about to fail",
        "1 FAILED      there is no paper",
    ]
    assert [line["status"] for line in json.loads(headrace("tasks", "logs", task["id"], "--json").out)] == [
        "LOG",
        "FAILED",
    ]


def test_whoever_stops_waiting_is_told_that_the_task_goes_on(
    headrace: Headrace, migrated: Place, tmp_path: Path
) -> None:
    with subprocess.Popen(
        [*HEADRACE, "submit", "sleep", "--wait"],
        cwd=tmp_path,
        env=environment(migrated.settings),
        stderr=subprocess.PIPE,
        text=True,
    ) as waiting:
        deadline = time.monotonic() + 60
        while not _run(migrated, "SELECT FROM headrace.tasks"):
            assert time.monotonic() < deadline
        time.sleep(0.5)
        waiting.send_signal(signal.SIGINT)
        assert waiting.wait(60) == 130
        assert waiting.stderr is not None
        assert "the task continues; `headrace tasks show tsk_" in waiting.stderr.read()


# -- looking and changing


def test_tasks_are_listed_filtered_and_shown(headrace: Headrace) -> None:
    made = [headrace("submit", "greet", "--queue", f"q{number % 2}").out.strip() for number in range(4)]
    headrace("tasks", "cancel", made[0])
    listed = json.loads(headrace("tasks", "list", "--json").out)
    assert [task["id"] for task in listed] == list(reversed(made))
    assert json.loads(headrace("tasks", "list", "--internal", "--json").out) == listed
    assert "payload" not in listed[0]
    assert len(json.loads(headrace("tasks", "list", "--limit", "2", "--json").out)) == 2
    assert [task["id"] for task in json.loads(headrace("tasks", "list", "--status", "canceled", "--json").out)] == [
        made[0]
    ]
    assert len(json.loads(headrace("tasks", "list", "--queue", "q1", "--type", "greet", "--json").out)) == 2
    table = headrace("tasks", "list").out.splitlines()
    assert table[0].split()[:3] == ["id", "status", "type"]
    assert len(table) == 5
    shown = headrace("tasks", "show", made[0]).out
    assert made[0] in shown
    assert "CANCELED" in shown


def test_long_lists_come_whole(headrace: Headrace, migrated: Place) -> None:
    _run(migrated, "SELECT headrace.submit('greet') FROM generate_series(1, 450)")
    assert len(json.loads(headrace("tasks", "list", "--limit", "1000", "--json").out)) == 450


def test_tasks_are_canceled_and_tried_again_all_or_none(headrace: Headrace, migrated: Place) -> None:
    one, two = (headrace("submit", "greet").out.strip() for _ in range(2))
    assert headrace("tasks", "cancel", one, two).out == f"{one} is CANCELED\n{two} is CANCELED\n"
    assert headrace("tasks", "retry", one).out == f"{one} is QUEUED\n"
    refused = headrace("tasks", "retry", two, one)
    assert (refused.code, refused.complaint.partition(":")[0]) == (4, one)
    missing = headrace("tasks", "cancel", one, "tsk_none")
    assert (missing.code, missing.complaint) == (3, "tsk_none: There is no such task. The others are as they were.")
    assert json.loads(headrace("tasks", "show", one, "--json").out)["status"] == "QUEUED"
    assert headrace("tasks", "show", "tsk_none").code == 3
    actions = [(action, agent.split(" (")[0]) for action, _, _, agent in trail(migrated)]
    assert actions.count(("updated", "headrace tasks cancel")) == 2
    assert actions.count(("updated", "headrace tasks retry")) == 1


def test_all_that_match_are_tried_again_after_a_question_with_their_number(headrace: Headrace, worker: Program) -> None:
    for _ in range(2):
        assert headrace("submit", "fail", "--wait").code == 1, worker.err
    refused = headrace("tasks", "retry", "--type", "fail")
    assert (refused.code, "go with --all" in refused.err) == (2, True)
    asked = headrace("tasks", "retry", "--all", "--status", "FAILED", "--type", "fail", stdin="n\n")
    assert (asked.code, "Retry 2 tasks (everybody's; status FAILED; type fail)?" in asked.out) == (1, True)
    done = headrace("tasks", "retry", "--all", "--status", "failed", "--type", "fail", "--yes")
    assert (done.code, done.out) == (0, "2 tasks done, 0 skipped, 0 refused\n"), done.err
    nothing = headrace("tasks", "delete", "--all", "--type", "greet", "--yes")
    assert (nothing.code, nothing.out.startswith("There is nothing to delete")) == (0, True)


def test_headraces_own_tasks_are_in_all_only_where_they_are_named(headrace: Headrace, migrated: Place) -> None:
    _run(migrated, "SELECT headrace.submit('greet'), headrace.submit('headrace.purge', unknown_type => 'wait')")
    asked = headrace("tasks", "cancel", "--all", stdin="n\n")
    assert "Cancel 1 task (everybody's)?" in asked.out
    named = headrace("tasks", "cancel", "--all", "--type", "headrace.purge", stdin="n\n")
    assert "Cancel 1 task (everybody's; type headrace.purge)?" in named.out


def test_statistics_say_what_was_done(headrace: Headrace, migrated: Place) -> None:
    assert headrace("stats").out.startswith("Nothing was measured yet")
    _run(
        migrated,
        "WITH measured AS (INSERT INTO headrace.statistics_minutes (minute, waited, ran) "
        "VALUES (date_trunc('minute', now()) - interval '2 minutes', '{}', '{}') RETURNING minute) "
        "INSERT INTO headrace.statistics_queues (minute, queue, submitted, succeeded, failed, needs_input) "
        "SELECT minute, 'default', 5, 3, 2, 1 FROM measured",
    )
    assert headrace("stats", "--range", "day").out.splitlines()[1].split() == ["5", "3", "2", "1", "0"]
    assert json.loads(headrace("stats", "--json").out)["points"][0]["submitted"] == 5


def test_why_a_task_waits(headrace: Headrace) -> None:
    task_id = headrace("submit", "greet").out.strip()
    headrace("queues", "pause", "default")
    said = headrace("tasks", "why", task_id).out
    assert said.startswith(f"{task_id} is QUEUED\n")
    assert "paused" in said
    reasons = json.loads(headrace("tasks", "why", task_id, "--json").out)["reasons"]
    assert reasons[0]["code"] == "queue_paused"


def test_queues_are_listed_paused_and_resumed(headrace: Headrace, migrated: Place) -> None:
    headrace("submit", "greet", "--queue", "slow")
    assert headrace("queues", "pause", "slow").out == "slow is paused\n"
    queues = {queue["name"]: queue for queue in json.loads(headrace("queues", "list", "--json").out)}
    assert queues["slow"]["waiting"] == 1
    assert queues["slow"]["paused_at"] is not None
    assert "paused since" in headrace("queues", "list").out
    assert json.loads(headrace("queues", "resume", "slow", "--json").out)["paused_at"] is None
    assert ("disabled", "queue") in [(action, resource) for action, resource, *_ in trail(migrated)]


def test_workers_are_listed(headrace: Headrace, worker: Program) -> None:
    assert headrace("submit", "greet", "--wait").code == 0, worker.err
    # One for the program's types and, where what it needs is installed, one for Headrace's media.
    [seen, *_] = sorted(json.loads(headrace("workers", "--json").out), key=lambda each: each["queues"] is not None)
    assert (seen["pid"], seen["alive"], seen["queues"]) == (worker.process.pid, True, None)
    table = headrace("workers").out
    assert seen["id"] in table
    assert "ago" in table
    assert worker.stop(signal.SIGTERM) == 0
    assert eventually(lambda: json.loads(headrace("workers", "--json").out) == [])
