"""Minutes are measured once, cheaply, and told as plots."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from math import ceil
from random import Random

import pytest

from headrace import ids
from headrace.admin.overview.service import count_workers
from headrace.admin.statistics import loop, store
from headrace.admin.statistics.model import Durations, Range
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
    assert sum(point.ran.counts) == sum(point.waited.counts) == 10  # the one that was canceled never ran
    assert point.ran.quantile(0.5) == pytest.approx(0.2, rel=0.02)
    assert point.ran.quantile(0.95) == point.ran.longest == 20
    assert point.slots_busy == 0
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
        assert (found[MINUTE].submitted, found[MINUTE].succeeded, sum(found[MINUTE].ran.counts)) == (50, 50, 50)
        await tx.execute("DELETE FROM headrace.tasks")
    async with db.transaction() as tx:
        await measure(tx, now=NOW + timedelta(minutes=4))
        found = {point.at: point for point in (await read_statistics(tx, Range.HOUR, now=NOW)).points}
        assert (found[MINUTE].submitted, sum(found[MINUTE].ran.counts)) == (50, 50)


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


LASTED = """
INSERT INTO headrace.tasks
  (id, user_id, task_type, title, status, queue, created_at, run_at, started_at, finished_at, updated_at)
SELECT 'tsk_' || $2 || n, $1, $2, 'work', 'SUCCEEDED', 'default',
       $3::timestamptz - (waited + ran) * interval '1 second',
       $3::timestamptz - (waited + ran) * interval '1 second', $3::timestamptz - ran * interval '1 second', $3, $3
FROM unnest($4::double precision[], $5::double precision[]) WITH ORDINALITY AS given (waited, ran, n)
"""
SHAPES: dict[str, Callable[[Random], float]] = {
    "lognormal": lambda chance: chance.lognormvariate(2, 2),
    "two peaks": lambda chance: chance.uniform(0.02, 0.05) if chance.random() < 0.9 else chance.gauss(900, 30),
    "heavy tail": lambda chance: 0.5 * chance.paretovariate(1.1),
}


def exact(values: Sequence[float], share: float) -> float:
    return sorted(values)[ceil(share * len(values)) - 1]


async def test_percentiles_of_ten_thousand_durations_are_within_two_percent_and_below_the_longest(tx: Tx) -> None:
    """The plot once showed 95 % waiting less than 3,375 s where the longest wait was 2,309 s."""
    chance = Random(37)
    lasted = {
        name: ([shape(chance) for _ in range(10_000)], [shape(chance) for _ in range(10_000)])
        for name, shape in SHAPES.items()
    }
    for name, (waited, ran) in lasted.items():
        await tx.execute(LASTED, ids.SYSTEM_USER, name, MINUTE, waited, ran)
    await measure(tx, now=NOW)
    for name, (waited, ran) in lasted.items():
        found = await read_statistics(tx, Range.DAY, task_type=name, now=NOW)
        assert set(found.types) == set(SHAPES)
        for shown, values in ((found.points[-1].waited, waited), (found.points[-1].ran, ran)):
            assert shown.longest == pytest.approx(max(values), abs=1e-5)
            for share in (0.5, 0.9, 0.95, 0.99, 0.999, 1):
                assert shown.quantile(share) == pytest.approx(exact(values, share), rel=0.02)
                assert (shown.quantile(share) or 0) <= (shown.longest or 0)
    together = (await read_statistics(tx, Range.HOUR, now=NOW)).points[-1].ran
    everything = [value for _, ran in lasted.values() for value in ran]
    assert together.quantile(0.95) == pytest.approx(exact(everything, 0.95), rel=0.02)


@pytest.mark.parametrize("seconds", [0.0, 0.0004, 3.0, 2309.0])
def test_a_percentile_of_one_task_is_its_duration_and_of_none_is_none(seconds: float) -> None:
    assert Durations().quantile(0.5) is None
    for position in (0, 1200):
        assert Durations([position], [1], seconds).quantile(0.95) <= seconds  # type: ignore[operator]


OWN_ASSET = """
INSERT INTO headrace.assets (id, user_id, media_type, origin_name, mime_type, size_bytes, sha256, storage_key)
VALUES ('ast_1', $1, 'IMAGE', 'cat.png', 'image/png', 1, repeat('a', 64), 'a/b')
"""


async def test_questions_to_the_owner_are_apart_from_failures(tx: Tx) -> None:
    await tx.execute(OWN_ASSET, ids.SYSTEM_USER)
    for name, code in (("a", "NO_MARK"), ("b", "POOR_RESULT"), ("c", "CRASHED")):
        await ended(tx, name, "FAILED", "default", MINUTE, ran=1, many=2)
        await tx.execute(
            "UPDATE headrace.tasks SET error_code = $2, task_type = 'IMAGE', input_asset_id = 'ast_1', mode = 'AUTO', "
            "quality_level = 'STANDARD', output_format = 'png', updated_at = finished_at + interval '1 us' "
            "WHERE id LIKE 'tsk_' || $1 || '%'",
            name,
            code,
        )
    await ended(tx, "own", "FAILED", "default", MINUTE, ran=1)
    await tx.execute("UPDATE headrace.tasks SET error_code = 'NO_MARK' WHERE id = 'tsk_own1'")
    await measure(tx, now=NOW)
    point = (await read_statistics(tx, Range.HOUR, now=NOW)).points[-1]
    assert (point.failed, point.needs_input) == (7, 4)


async def test_busy_slots_are_never_more_than_slots(tx: Tx) -> None:
    """The plot showed 62 running tasks above 51 slots: tasks that were fetched early, and workers that stop."""
    await tx.execute(
        "INSERT INTO headrace.workers (id, host, pid, types, concurrency, running, lease, stopping_at) "
        "VALUES ('w', 'h', 1, '{}', 4, 4, '1 min', NULL), ('v', 'h', 1, '{}', 4, 5, '1 min', now())"
    )
    await measure(tx, now=NOW)
    point = (await read_statistics(tx, Range.HOUR, now=NOW)).points[-1]
    assert (point.slots_busy, point.slots) == (9, 9)
    workers = await count_workers(tx)
    assert (workers.running, workers.slots) == (9, 9)
