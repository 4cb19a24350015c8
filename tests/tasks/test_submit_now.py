"""Submitting in a transaction of its own: by whichever way, all or none, in order, and what was asked for."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headrace import ids
from headrace.database import Database
from headrace.tasks.errors import PayloadTooLarge
from headrace.tasks.model import TaskSpec
from tests.tasks.conftest import Bench

LATER = datetime(2031, 5, 6, 7, 8, tzinfo=UTC)


@pytest.fixture
def noting(bench: Bench) -> Bench:
    @bench.registry.task("note", events=False, limit_key="payload.key")
    async def note(_context: object, payload: object) -> object:
        return payload

    return bench


async def submit(bench: Bench, *specs: TaskSpec) -> list[str]:
    return await bench.submitter.submit_now(bench.db, specs, user_id=ids.SYSTEM_USER)


async def stored(db: Database) -> list[str]:
    return [row["task_id"] for row in await db.fetch_alone("SELECT task_id FROM headrace.task_queue ORDER BY seq")]


@pytest.mark.parametrize("count", [1, 2, 1000, 2500])
async def test_thousands_keep_their_order(noting: Bench, count: int) -> None:
    for _ in range(2):  # at first nothing is remembered, and then everything
        await noting.db.fetch_alone("DELETE FROM headrace.task_queue")
        submitted = await submit(noting, *(TaskSpec("note", {"n": n}) for n in range(count)))
        assert await stored(noting.db) == submitted


@pytest.mark.parametrize("count", [1, 1500])
async def test_one_bad_one_and_nothing_is_written(noting: Bench, count: int) -> None:
    await submit(noting, TaskSpec("note", {}))
    good = [TaskSpec("note", {"n": n}) for n in range(count)]
    with pytest.raises(PayloadTooLarge):
        await submit(noting, *good, TaskSpec("note", {"all": "x" * 300_000}))
    assert len(await stored(noting.db)) == 1


async def test_a_value_of_one_row_does_not_reach_the_others(noting: Bench) -> None:
    every: dict[str, Any] = {
        "title": "first", "queue": "apart", "priority": 3, "run_at": LATER, "max_attempts": 7,
        "timeout": timedelta(seconds=9), "labels": {"gpu": "yes"}, "trace_id": "t1",
    }  # fmt: skip
    for specs in (
        [TaskSpec("note", {"key": "k"}, **every), TaskSpec("note", {})],
        [TaskSpec("note", {}), TaskSpec("note", {"key": "k"}, **every)],
        [TaskSpec("note", {"key": "k"}, **every), TaskSpec("note", {"key": "k"}, **every)],
    ):
        rows = [await noting.row(task_id) for task_id in await submit(noting, *specs)]
        for spec, row in zip(specs, rows, strict=True):
            full = spec.title is not None
            assert row["title"] == ("first" if full else "note")
            assert (row["queue"], row["priority"], row["max_attempts"]) == (
                ("apart", 3, 7) if full else ("default", 0, 3)
            )
            assert (row["run_at"] == LATER) is full
            assert (row["timeout_seconds"], row["trace_id"]) == ((9, "t1") if full else (None, None))
            assert (row["labels"], row["limit_key"]) == (({"gpu": "yes"}, "k") if full else (None, None))


async def test_lanes_that_turn_up_on_the_way_are_made(noting: Bench) -> None:
    await submit(noting, TaskSpec("note", {}))
    submitted = await submit(noting, *(TaskSpec("note", {"key": f"k{n % 3}"}) for n in range(1200)))
    keys = await noting.db.fetch_alone(
        "SELECT lane.limit_key, count(*) AS n FROM headrace.task_queue AS q"
        " JOIN headrace.task_lanes AS lane ON lane.id = q.lane_id WHERE q.task_id = ANY ($1) GROUP BY 1 ORDER BY 1",
        submitted,
    )
    assert [(row["limit_key"], row["n"]) for row in keys] == [("k0", 400), ("k1", 400), ("k2", 400)]


async def test_a_woken_worker_takes_the_highest_priority_and_then_the_rest(noting: Bench) -> None:
    async with noting.working(poll_every=timedelta(minutes=10)):
        first = await noting.submit("note", {})
        await noting.over(first)
        mixed = await submit(noting, *(TaskSpec("note", {}, priority=n % 3) for n in range(30)))
        await noting.over(*mixed)  # without waiting for the next look


@pytest.mark.parametrize("options", [{}, {"labels": {"gpu": "yes"}, "run_at": LATER, "title": "t", "limit_key": "k"}])
async def test_tasks_that_differ_in_their_payload_alone_are_stored_as_one_by_one(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    @bench.registry.task("plain", max_attempts=4, timeout=timedelta(seconds=7))
    async def plain(_context: object, payload: object) -> object:
        return payload

    options = {"priority": 2, "trace_id": "t1", "extension": timedelta(seconds=5), **options}
    specs = [TaskSpec("plain", payload, **options) for payload in ({"n": 1}, None, [1, {"ü": None}], "text")]
    together = []
    draft_alike = type(bench.submitter)._draft_alike

    def noted(*args: Any) -> Any:
        together.append(draft_alike(*args))
        return together[-1]

    monkeypatch.setattr(type(bench.submitter), "_draft_alike", noted)
    await submit(bench, *specs)  # remembers the type and the lane
    found = []
    for alike in (True, False):
        if not alike:
            monkeypatch.setattr(type(bench.submitter), "_draft_alike", lambda *_: None)
        submitted = await submit(bench, *specs)
        rows = await bench.db.fetch_alone(
            "SELECT t.*, q.lane_id, q.route_id, q.precedence, q.delayed, q.units FROM unnest($1::text[]) AS id "
            "JOIN headrace.tasks AS t USING (id) JOIN headrace.task_queue AS q ON q.task_id = t.id",
            submitted,
        )
        own = {
            "id",
            "queue_seq",
            "created_at",
            "queued_at",
            "updated_at",
            *(() if "run_at" in options else ("run_at",)),
        }
        found.append([{name: value for name, value in row.items() if name not in own} for row in rows])
    assert together[-1] is not None, "they were drafted one by one"
    assert found[0] == found[1]
    assert [row["payload"] for row in found[0]] == [{"n": 1}, {}, [1, {"ü": None}], "text"]


async def test_a_bad_payload_among_tasks_that_are_alike_refuses_all(bench: Bench) -> None:
    @bench.registry.task("plain")
    async def plain(_context: object, payload: object) -> object:
        return payload

    first = await submit(bench, TaskSpec("plain", {}))
    with pytest.raises(PayloadTooLarge):
        await submit(bench, TaskSpec("plain", {}), TaskSpec("plain", {"all": "x" * 300_000}), TaskSpec("plain", {}))
    assert await stored(bench.db) == first
