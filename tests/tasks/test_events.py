"""Tasks tell of themselves through the outbox: what, when, in which order, and nothing more."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headrace import ids
from headrace.access import Caller
from headrace.database import Database, Tx
from headrace.outbox.catalogue import EVENT_TYPES, faults
from headrace.tasks.catalog import declare_types
from headrace.tasks.context import TaskContext
from headrace.tasks.errors import Fatal, Snooze
from headrace.tasks.events import OutboxFollower
from headrace.tasks.execution import Backoff
from headrace.tasks.followers import Followers
from headrace.tasks.model import Change, TaskSpec, Transition
from headrace.tasks.service import cancel_task, retry_task, submit_task
from tests.outbox.hearing import want
from tests.tasks.conftest import Bench
from tests.tasks.people import person, tasks_of

AT_ONCE = Backoff(first=timedelta(0))
FIELDS = {
    "task_id",
    "type",
    "user_id",
    "title",
    "key",
    "labels",
    "status",
    "attempt",
    "retries",
    "max_attempts",
    "queue",
    "priority",
    "schedule_id",
    "current_step",
    "progress",
    "error_code",
    "error_message",
    "run_at",
    "created_at",
    "started_at",
    "finished_at",
}


@pytest.fixture
async def telling(bench: Bench) -> Bench:
    bench.followers = Followers({"outbox": OutboxFollower()})
    await want(bench.db)
    return bench


async def told(db: Database, task_id: str) -> list[tuple[str, dict[str, Any]]]:
    """The task's events in the order of the outbox, each with its payload."""
    rows = await db.fetch_alone(
        "SELECT event_type, payload_json FROM headrace.outbox_events WHERE aggregate_id = $1 ORDER BY id", task_id
    )
    return [(row["event_type"], row["payload_json"]) for row in rows]


def parts(events: list[tuple[str, dict[str, Any]]], *names: str) -> list[tuple[Any, ...]]:
    return [(kind.removeprefix("task."), *(payload[name] for name in names)) for kind, payload in events]


@pytest.mark.both
async def test_a_task_tells_of_its_whole_life(telling: Bench) -> None:
    @telling.registry.task("noop")
    async def noop(context: TaskContext, payload: Any) -> None: ...

    task_id = await telling.submit("noop", {"password": "hunter2"}, trace_id="trace-1")
    async with telling.working():
        await telling.over(task_id)
    events = await told(telling.db, task_id)
    assert parts(events, "status", "attempt", "progress") == [
        ("created", "QUEUED", 0, 0),
        ("started", "RUNNING", 1, 0),
        ("succeeded", "SUCCEEDED", 1, 100),
    ]
    row = await telling.row(task_id)
    for _, payload in events:
        assert payload.keys() == FIELDS
        assert (payload["task_id"], payload["type"], payload["user_id"]) == (task_id, "noop", ids.SYSTEM_USER)
        assert datetime.fromisoformat(payload["created_at"]) == row["created_at"]
        assert "hunter2" not in str(payload)
    times = [
        [payload[name] and datetime.fromisoformat(payload[name]) for name in ("started_at", "finished_at")]
        for _, payload in events
    ]
    assert times == [[None, None], [row["started_at"], None], [row["started_at"], row["finished_at"]]]
    kept = await telling.db.fetch_alone(
        "SELECT DISTINCT event_version, aggregate_type, trace_id FROM headrace.outbox_events"
    )
    assert [tuple(row) for row in kept] == [(1, "task", "trace-1")]


@pytest.mark.both
async def test_a_failure_tells_its_last_line_and_keeps_the_stack_to_itself(telling: Bench) -> None:
    @telling.registry.task("fails", max_attempts=2, backoff=AT_ONCE)
    async def fails(context: TaskContext, payload: Any) -> None:
        raise ValueError("there is no paper")

    task_id = await telling.submit("fails")
    async with telling.working():
        await telling.over(task_id)
    events = await told(telling.db, task_id)
    assert parts(events, "status", "attempt", "retries", "error_code", "error_message") == [
        ("created", "QUEUED", 0, 0, None, None),
        ("started", "RUNNING", 1, None, None, None),  # told together with what came of it
        ("retried", "QUEUED", 1, 1, "error", "ValueError: there is no paper"),
        ("started", "RUNNING", 2, 1, None, None),
        ("failed", "FAILED", 2, 1, "error", "ValueError: there is no paper"),
    ]
    assert "Traceback" in (await telling.row(task_id))["error_message"]


async def test_a_group_of_failures_tells_a_line_with_words(telling: Bench) -> None:
    @telling.registry.task("group", max_attempts=1)
    async def group(context: TaskContext, payload: Any) -> None:
        raise ExceptionGroup("two", [ValueError("first"), KeyError("second")])

    task_id = await telling.submit("group")
    async with telling.working():
        await telling.over(task_id)
    assert parts(await told(telling.db, task_id), "error_message")[-1] == ("failed", "KeyError: 'second'")


async def test_snoozing_refusing_and_canceling_are_told(telling: Bench) -> None:
    @telling.registry.task("odd")
    async def odd(context: TaskContext, payload: dict[str, Any]) -> None:
        if payload["way"] == "fatal":
            raise Fatal("never")
        if payload["way"] == "wait":
            await asyncio.sleep(60)
        if context.attempt == 1:
            raise Snooze(timedelta(0))

    fatal, snoozed, canceled = [await telling.submit("odd", {"way": way}) for way in ("fatal", "snooze", "wait")]
    async with telling.working():
        await telling.over(fatal, snoozed)
        await telling.until(canceled, lambda row: row["status"] == "RUNNING")
        async with telling.db.transaction() as tx:
            await tx.execute("UPDATE headrace.task_queue SET cancel_requested = true WHERE task_id = $1", canceled)
        await telling.over(canceled)
    assert parts(await told(telling.db, fatal), "error_code", "error_message")[-1] == ("failed", "fatal", "never")
    assert parts(await told(telling.db, snoozed), "attempt", "error_code") == [
        ("created", 0, None),
        ("started", 1, None),
        ("retried", 1, None),
        ("started", 2, None),
        ("succeeded", 2, None),
    ]
    assert parts(await told(telling.db, canceled), "status")[-1] == ("canceled", "CANCELED")


async def test_steps_are_told_only_where_the_type_asks_for_it(telling: Bench) -> None:
    async def walk(context: TaskContext, payload: Any) -> None:
        async with context.step("fetch"):
            await context.progress(40)
        async with context.step("print"):
            pass

    telling.registry.task("loud", step_events=True)(walk)
    telling.registry.task("quiet")(walk)
    loud, quiet = await telling.submit("loud"), await telling.submit("quiet")
    async with telling.working():
        await telling.over(loud, quiet)
    assert parts(await told(telling.db, loud), "current_step", "progress") == [
        ("created", None, 0),
        ("started", None, 0),
        ("step_changed", "fetch", 0),
        ("step_changed", "print", 40),
        ("succeeded", "print", 100),
    ]
    assert [kind for kind, _ in await told(telling.db, quiet)] == ["task.created", "task.started", "task.succeeded"]


async def test_a_type_without_events_writes_none(telling: Bench) -> None:
    @telling.registry.task("silent", events=False)
    async def silent(context: TaskContext, payload: Any) -> None: ...

    task_id = await telling.submit("silent")
    async with telling.working():
        await telling.over(task_id)
    assert await told(telling.db, task_id) == []


async def check_catalogue(db: Database) -> int:
    """Every event that is there fits its schema; gives how many there are."""
    rows = await db.fetch_alone("SELECT event_type, event_version, payload_json FROM headrace.outbox_events")
    wrong = [
        (row["event_type"], fault)
        for row in rows
        for fault in faults(row["event_type"], row["event_version"], row["payload_json"])
    ]
    assert wrong == []
    return len(rows)


async def test_every_event_of_a_task_fits_its_schema(telling: Bench) -> None:
    @telling.registry.task("shaky", steps=("one",), step_events=True, max_attempts=2, backoff=AT_ONCE)
    async def shaky(context: TaskContext, payload: Any) -> None:
        async with context.step("one"):
            if payload != "good":
                raise ValueError("no\nluck")

    ada, tasks = await person(telling), tasks_of(telling)
    good, bad = await telling.submit("shaky", "good"), await telling.submit("shaky", "bad")
    async with telling.working():
        await telling.over(good, bad)
        async with telling.db.transaction() as tx:
            task = await submit_task(tx, tasks, ada, TaskSpec("shaky", run_at=datetime.now(UTC) + timedelta(days=1)))
            await cancel_task(tx, tasks, ada, task.id)
            await retry_task(tx, tasks, ada, task.id)
    kinds = {row[0] for row in await telling.db.fetch_alone("SELECT event_type FROM headrace.outbox_events")}
    assert kinds == {known.name for known in EVENT_TYPES if known.group == "task"}
    assert await check_catalogue(telling.db) >= 10


async def test_no_event_is_told_of_what_was_rolled_back(telling: Bench) -> None:
    @telling.registry.task("noop")
    async def noop(context: TaskContext, payload: Any) -> None: ...

    with pytest.raises(ZeroDivisionError):
        async with telling.db.transaction() as tx:
            await telling.submitter.submit(tx, TaskSpec("noop"), user_id=ids.SYSTEM_USER)
            raise ZeroDivisionError
    assert await telling.db.fetch_alone("SELECT FROM headrace.outbox_events") == []


async def test_hundreds_of_tasks_each_tell_their_story_in_order(telling: Bench) -> None:
    @telling.registry.task("flaky", backoff=AT_ONCE)
    async def flaky(context: TaskContext, payload: Any) -> None:
        if context.attempt == 1 and payload["number"] % 3 == 0:
            raise ValueError

    task_ids = [await telling.submit("flaky", {"number": number}) for number in range(300)]
    async with telling.working(concurrency=50):
        await telling.over(*task_ids)
    once = ["task.created", "task.started", "task.succeeded"]
    twice = ["task.created", "task.started", "task.retried", "task.started", "task.succeeded"]
    for number, task_id in enumerate(task_ids):
        assert [kind for kind, _ in await told(telling.db, task_id)] == (once if number % 3 else twice)


async def test_an_event_for_a_task_that_is_not_there_is_refused(tx: Tx) -> None:
    gone = Transition(Change.SUCCEEDED, ids.new("tsk"), "noop", ids.SYSTEM_USER, attempt=1)
    with pytest.raises(Exception, match="aggregate_id"):
        await OutboxFollower(always=True).follow(tx, [gone])


HEADERS = "SELECT event_type, trace_id, headers_json FROM headrace.outbox_events WHERE aggregate_id = $1 ORDER BY id"


async def test_events_carry_the_trace_and_the_request_that_made_them(telling: Bench) -> None:
    @telling.registry.task("noop")
    async def noop(context: TaskContext, payload: Any) -> None: ...

    ada, tasks = await person(telling), tasks_of(telling)

    def asking(request_id: str) -> Caller:
        return replace(ada, who=replace(ada.who, request_id=request_id, trace_id="trace-1"))

    async with telling.db.transaction() as tx:
        task = await submit_task(tx, tasks, asking("req-1"), TaskSpec("noop"))
        await cancel_task(tx, tasks, asking("req-2"), task.id)
        await retry_task(tx, tasks, asking("req-3"), task.id)
    async with telling.working():
        await telling.over(task.id)
    rows = await telling.db.fetch_alone(HEADERS, task.id)
    assert [(row["event_type"].removeprefix("task."), row["headers_json"].get("request_id")) for row in rows] == [
        ("created", "req-1"),
        ("canceled", "req-2"),
        ("revived", "req-3"),
        ("started", None),
        ("succeeded", None),
    ]
    assert {row["headers_json"]["trace_id"] for row in rows} == {"trace-1"}

    silent = await telling.submit("noop")
    assert [row["headers_json"] for row in await telling.db.fetch_alone(HEADERS, silent)] == [None]


@pytest.mark.parametrize("way", ["program", "request", "SQL"])
async def test_a_task_tells_its_title_key_and_labels(telling: Bench, way: str) -> None:
    """A receiver of `task.failed` had to call back to learn which invoice it was about."""
    telling.registry.task("bill")(lambda _context, _payload: None)
    async with telling.db.transaction() as tx:
        await declare_types(tx, telling.registry)
    labels = {"region": "eu"}
    async with telling.db.transaction() as tx:
        if way == "SQL":
            task_id = await tx.fetchval(
                "SELECT headrace.submit('bill', title => 'Invoice 4711', labels => $1, idempotency_key => 'inv-4711')",
                labels,
            )
        else:
            key: dict[str, Any] = {"idempotency_key" if way == "program" else "request_key": "inv-4711"}
            spec = TaskSpec("bill", title="Invoice 4711", labels=labels, **key)
            task_id = await telling.submitter.submit(tx, spec, user_id=ids.SYSTEM_USER)
    [(_, payload)] = await told(telling.db, task_id)
    assert (payload["title"], payload["key"], payload["labels"]) == ("Invoice 4711", "inv-4711", labels)
    plain = await telling.submit("bill")
    [(_, payload)] = await told(telling.db, plain)
    assert (payload["title"], payload["key"], payload["labels"]) == ("bill", None, {})
