"""Minutes are measured once, cheaply, and told as plots."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from headrace import ids
from headrace.admin.statistics import loop, store
from headrace.admin.statistics.model import BOUNDS, Range, quantile
from headrace.admin.statistics.service import Measured, measure, read_statistics
from headrace.database import Database, Tx

NOW = datetime(2026, 3, 1, 12, 30, 20, tzinfo=UTC)
MINUTE = datetime(2026, 3, 1, 12, 29, tzinfo=UTC)
ENDED = """
INSERT INTO headrace.tasks
  (id, user_id, task_type, title, status, queue, created_at, run_at, started_at, finished_at, updated_at)
SELECT 'tsk_' || $8 || n, $1, 'work', 'work', $2, $3, $4, $4, $5, $6, $6 FROM generate_series(1, $7) AS n
"""


async def ended(tx: Tx, name: str, status: str, queue: str, at: datetime, *, ran: float, many: int = 1) -> None:
    finished = at + timedelta(seconds=ran + 2)
    started = None if status == "CANCELED" else at + timedelta(seconds=2)
    await tx.execute(ENDED, ids.SYSTEM_USER, status, queue, at, started, finished, many, name)


async def test_a_minute_is_what_ended_in_it_and_what_was_there(tx: Tx) -> None:
    await ended(tx, "a", "SUCCEEDED", "default", MINUTE, ran=0.2, many=9)
    await ended(tx, "b", "FAILED", "default", MINUTE, ran=20)
    await ended(tx, "c", "CANCELED", "mail", MINUTE, ran=1)
    await ended(tx, "d", "SUCCEEDED", "mail", MINUTE - timedelta(minutes=3), ran=1)
    await ended(tx, "e", "SUCCEEDED", "mail", MINUTE + timedelta(minutes=1), ran=1)  # its minute is not over
    await tx.execute(
        "INSERT INTO headrace.workers (id, host, pid, types, concurrency, lease) VALUES ('w', 'h', 1, '{}', 7, '1 min')"
    )
    assert await measure(tx, now=NOW) == Measured(minutes=10)
    assert await measure(tx, now=NOW) == Measured()

    found = await read_statistics(tx, Range.HOUR, now=NOW)
    assert [point.at for point in found.points] == [MINUTE - timedelta(minutes=9 - n) for n in range(10)]
    point = found.points[-1]
    assert (point.submitted, point.succeeded, point.failed, point.canceled) == (11, 9, 1, 1)
    assert (point.waiting, point.running, point.workers, point.slots) == (0, 0, 1, 7)
    assert found.points[-4].succeeded == 1
    assert found.points[-4].waiting is None  # nobody looked then
    assert sum(point.ran) == sum(point.waited) == 10  # the one that was canceled never ran
    assert 0.1 <= (quantile(point.ran, 0.5) or 0) <= 0.25
    assert 10 < (quantile(point.ran, 0.95) or 0) <= 30
    assert [series.name for series in found.queues] == ["default", "mail"]
    assert found.queues[0].failed[-1] == 1
    day = await read_statistics(tx, Range.DAY, now=NOW)
    assert [point.succeeded for point in day.points] == [10]
    assert day.points[0].waiting == 0


async def test_what_is_older_than_a_week_goes(tx: Tx) -> None:
    await measure(tx, now=NOW)
    assert (await measure(tx, now=NOW + timedelta(days=9))).forgotten == 10
    assert [point.at.day for point in (await read_statistics(tx, Range.WEEK, now=NOW + timedelta(days=9))).points] == [
        10
    ]


async def test_processes_that_measure_at_once_measure_each_minute_once(db: Database) -> None:
    done = await asyncio.gather(*(loop.run_once(db) for _ in range(4)))
    assert sorted(each.minutes for each in done) == [0, 0, 0, 10]


async def test_submissions_that_commit_after_their_minute_was_measured_are_counted(db: Database) -> None:
    """A transaction of 200 seconds with 50 tasks: none of them was ever counted."""
    async with db.transaction() as tx:
        await measure(tx, now=NOW - timedelta(minutes=1))
    async with db.transaction() as slow:
        await ended(slow, "slow", "SUCCEEDED", "default", MINUTE, ran=1, many=50)
        async with db.transaction() as tx:
            await ended(tx, "quick", "SUCCEEDED", "default", MINUTE, ran=1, many=7)
        for later in (0, 1, 2):
            async with db.transaction() as tx:
                await measure(tx, now=NOW + timedelta(minutes=later))
        async with db.transaction() as tx:  # what is gone meanwhile was counted
            await tx.execute("DELETE FROM headrace.tasks WHERE id LIKE 'tsk_quick%'")
    async with db.transaction() as tx:
        await measure(tx, now=NOW + timedelta(minutes=3))
        found = {point.at: point for point in (await read_statistics(tx, Range.HOUR, now=NOW)).points}
        assert (found[MINUTE].submitted, found[MINUTE].succeeded, sum(found[MINUTE].ran)) == (50, 50, 50)
        await tx.execute("DELETE FROM headrace.tasks")
    async with db.transaction() as tx:
        await measure(tx, now=NOW + timedelta(minutes=4))
        found = {point.at: point for point in (await read_statistics(tx, Range.HOUR, now=NOW)).points}
        assert (found[MINUTE].submitted, sum(found[MINUTE].ran)) == (50, 50)


async def test_minutes_are_not_counted_again_when_no_transaction_was_open(db: Database) -> None:
    for later in (0, 1):
        async with db.transaction() as tx:
            await measure(tx, now=NOW + timedelta(minutes=later))
    async with db.transaction() as tx:
        # Others on this server may have open transactions: as if there had been none.
        await tx.execute("UPDATE headrace.statistics_minutes SET oldest_xid = next_xid")
        assert await store.find_unsettled(tx, MINUTE + timedelta(minutes=2)) == []
        await tx.execute("UPDATE headrace.statistics_minutes SET oldest_xid = next_xid - 1 WHERE minute > $1", MINUTE)
        await tx.execute("UPDATE headrace.statistics_minutes SET next_xid = next_xid - 1 WHERE minute < $1", MINUTE)
        unsettled = await store.find_unsettled(tx, MINUTE + timedelta(minutes=2))
        assert unsettled[-1] == MINUTE + timedelta(minutes=1)


@pytest.mark.parametrize(("counts", "share", "value"), [([0] * 20, 0.5, None), ([4] + [0] * 19, 0.5, 0.005)])
def test_a_quantile_lies_within_its_class(counts: list[int], share: float, value: float | None) -> None:
    assert quantile(counts, share) == value
    assert quantile([0] * len(BOUNDS) + [1], 0.5) == BOUNDS[-1]
