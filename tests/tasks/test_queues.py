"""Queues, workers and types: what is in them, and what administrators decide about them."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headrace.access import Caller, PreconditionFailed, Role
from headrace.database import Database
from headrace.tasks import queues
from headrace.tasks.catalog import declare_types
from headrace.tasks.context import TaskContext
from headrace.tasks.errors import QueueNotFound
from headrace.tasks.queues import Queue
from headrace.tasks.store import queues as store
from tests.tasks.conftest import Bench
from tests.tasks.people import hire, person, take, trail


@pytest.fixture
def bench(bench: Bench) -> Bench:
    @bench.registry.task("report.build", queue="reports", max_running_per_key=2)
    async def build(context: TaskContext, payload: Any) -> None:
        """Builds a report."""
        await asyncio.sleep(60)

    @bench.registry.task("mail.send")
    async def send(context: TaskContext, payload: Any) -> None: ...

    return bench


async def listed(db: Database) -> dict[str, Queue]:
    async with db.transaction(readonly=True) as tx:
        return {queue.rules.name: queue for queue in await queues.list_queues(tx)}


async def test_a_queue_says_what_waits_runs_and_is_delayed(bench: Bench) -> None:
    worker = await hire(bench)
    await bench.submit("mail.send")
    assert len(await take(bench, worker)) == 1
    for priority in (0, 0, 5):
        await bench.submit("mail.send", priority=priority)
    await bench.submit("mail.send", run_at=datetime.now(UTC) + timedelta(hours=1))
    await bench.submit("mail.send", run_at=datetime.now(UTC) - timedelta(minutes=10))
    await bench.submit("report.build")
    found = await listed(bench.db)
    assert sorted(found) == ["default", "reports"]
    contents = found["default"].contents
    assert (contents.waiting, contents.delayed, contents.running, contents.exact) == (4, 1, 1, True)
    assert contents.oldest_waiting_seconds is not None
    assert 600 <= contents.oldest_waiting_seconds < 660
    assert (found["reports"].contents.waiting, found["reports"].contents.running) == (1, 0)
    assert found["reports"].rules.paused_at is None


async def test_people_are_shown_their_own_share_of_a_queue(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    ada, eve, worker = await person(bench, "ada"), await person(bench, "eve"), await hire(bench)
    await bench.submit("mail.send", user_id=ada.user_id)
    assert len(await take(bench, worker)) == 1
    for caller, number in ((ada, 2), (eve, 5)):
        for _ in range(number):
            await bench.submit("mail.send", user_id=caller.user_id)
    await bench.submit("report.build", user_id=eve.user_id)

    async def share(caller: Caller) -> dict[str, tuple[int, int, bool]]:
        async with bench.db.transaction(readonly=True) as tx:
            found = await queues.list_queues(tx, user_id=caller.user_id)
        return {each.rules.name: (each.contents.waiting, each.contents.running, each.contents.exact) for each in found}

    assert await share(ada) == {"default": (2, 1, True), "reports": (0, 0, True)}
    assert await share(eve) == {"default": (5, 0, True), "reports": (1, 0, True)}
    # Where not every lane was looked at, nobody is told that they have nothing.
    monkeypatch.setattr(store, "COUNT_WAITING", store.COUNT_WAITING.replace(str(store.MAX_LANES), "2"))
    assert (await share(ada))["reports"] == (0, 0, False)


async def test_queues_are_known_by_types_by_tasks_and_by_what_was_said(bench: Bench) -> None:
    root = await person(bench, "root", role=Role.ADMIN)
    async with bench.db.transaction() as tx:
        await declare_types(tx, bench.registry)
        await queues.pause_queue(tx, root, "spoken", create=True)
    await bench.submit("mail.send", queue="used")
    found = await listed(bench.db)
    assert sorted(found) == ["default", "reports", "spoken", "used"]
    assert found["default"].contents == store.Contents()
    assert found["default"].rules.version == 0


async def test_nothing_starts_from_a_paused_queue_until_it_is_resumed(bench: Bench) -> None:
    root = await person(bench, "root", role=Role.ADMIN)
    async with bench.db.transaction() as tx:
        paused = await queues.pause_queue(tx, root, "default")
        again = await queues.pause_queue(tx, root, "default")
    assert paused.paused_at is not None
    assert again == paused
    task = await bench.submit("mail.send")
    async with bench.working(poll_every=timedelta(minutes=10)):
        await asyncio.sleep(0.3)
        assert (await bench.row(task))["attempt"] == 0
        async with bench.db.transaction() as tx:
            resumed = await queues.resume_queue(tx, root, "default")
        await bench.over(task)  # the worker was woken: its next look would come too late
    assert (resumed.paused_at, resumed.version) == (None, paused.version + 1)
    assert [row["action"] for row in await trail(bench.db)] == ["disabled", "enabled"]
    assert {row["resource"]["identifier"] for row in await trail(bench.db)} == {"default"}


async def test_a_queue_that_nothing_knows_is_not_paused_by_a_slip_of_the_pen(bench: Bench) -> None:
    root = await person(bench, "root", role=Role.ADMIN)
    async with bench.db.transaction() as tx:
        for verb in (queues.pause_queue, queues.resume_queue):
            with pytest.raises(QueueNotFound, match="Nothing knows a queue nosuch"):
                await verb(tx, root, "nosuch")
        assert "nosuch" not in [queue.rules.name for queue in await queues.list_queues(tx)]
        assert (await queues.pause_queue(tx, root, "nosuch", create=True)).paused_at is not None
        assert (await queues.resume_queue(tx, root, "nosuch")).paused_at is None


async def test_a_stale_word_about_a_queue_changes_nothing(bench: Bench) -> None:  # W-09
    root = await person(bench, "root", role=Role.ADMIN)
    async with bench.db.transaction() as tx:
        rules = await queues.limit_queue(tx, root, "default", max_running=3)
        for verb in (queues.pause_queue, queues.resume_queue):
            with pytest.raises(PreconditionFailed):
                await verb(tx, root, "default", expected=rules.version - 1)
        with pytest.raises(PreconditionFailed):
            await queues.limit_queue(tx, root, "default", max_running=4, expected=rules.version - 1)
        assert await store.lock_rules(tx, "default") == rules


async def test_a_limit_counts_what_was_running_before_it_was_set(bench: Bench) -> None:
    root, worker = await person(bench, "root", role=Role.ADMIN), await hire(bench)
    for _ in range(10):
        await bench.submit("mail.send")
    assert len(await take(bench, worker, most=4)) == 4
    async with bench.db.transaction() as tx:
        await queues.limit_queue(tx, root, "default", max_running=5)
    assert len(await take(bench, worker, most=10)) == 1
    async with bench.db.transaction() as tx:
        rules = await queues.limit_queue(tx, root, "default", max_running=None)
    assert rules.max_running is None
    assert len(await take(bench, worker, most=10)) == 5


async def test_limiting_waits_for_rows_that_a_worker_is_writing(bench: Bench) -> None:
    root, worker = await person(bench, "root", role=Role.ADMIN), await hire(bench)
    await bench.submit("mail.send")
    (claimed,) = await take(bench, worker)
    held, release = asyncio.Event(), asyncio.Event()

    async def report() -> None:
        async with bench.db.transaction() as tx:
            await tx.execute("SELECT FROM headrace.task_queue WHERE seq = $1 FOR UPDATE", claimed.seq)
            held.set()
            await release.wait()

    reporting = asyncio.create_task(report())
    await held.wait()
    asyncio.get_running_loop().call_later(0.2, release.set)
    async with bench.db.transaction() as tx:
        await queues.limit_queue(tx, root, "default", max_running=1)
    await reporting
    await bench.submit("mail.send")
    assert await take(bench, worker) == []


async def test_workers_say_what_they_hold_and_when_they_were_heard_of(bench: Bench) -> None:
    worker, silent = await hire(bench, labels={"gpu": "a100"}), await hire(bench)
    task = await bench.submit("report.build", queue="slow")
    await take(bench, worker)
    async with bench.db.transaction() as tx:
        await tx.execute(
            "UPDATE headrace.workers SET heartbeat_at = now() - interval '1 minute' WHERE id = $1", silent.id
        )
        await tx.execute(
            "INSERT INTO headrace.workers (id, host, pid, types, concurrency, lease, ended_at, ending) "
            "VALUES ('wrk_old', 'h', 1, '{}', 1, '1 s', now(), 'STOPPED')"
        )
        seen, gone = await queues.list_workers(tx)
    assert (seen.id, seen.alive, seen.labels, seen.types) == (worker.id, True, {"gpu": "a100"}, bench.registry.names)
    (held,) = seen.holds
    assert (held.task_id, held.task_type, held.queue, held.attempt) == (task, "report.build", "slow", 1)
    assert (gone.id, gone.alive, list(gone.holds)) == (silent.id, False, [])


async def test_types_are_listed_with_who_is_there_to_run_them(bench: Bench) -> None:
    async with bench.db.transaction() as tx:
        await declare_types(tx, bench.registry)
    await hire(bench, types=["mail.send"])
    async with bench.db.transaction() as tx:
        mail, report = await queues.list_types(tx)
    assert (mail.name, mail.workers, report.name, report.workers) == ("mail.send", 1, "report.build", 0)
    assert (report.queue, report.max_running_per_key, report.description) == ("reports", 2, "Builds a report.")


BACKLOG = """
WITH lane AS (
  SELECT assigned.*
  FROM generate_series(1, 50) AS n,
       LATERAL headrace.assign_lane('default', 'mail.send', 'u_' || n, '', '{}', false) AS assigned
)
INSERT INTO headrace.task_queue (run_at, lane_id, route_id, precedence, task_id)
SELECT now() - interval '1 minute', lane.lane_id, lane.route_id, 0, 'tsk_' || n
FROM lane, generate_series(1, $1::int) AS n
"""


async def test_counting_stops_at_its_bound_and_says_so(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    async with bench.db.transaction() as tx:
        await tx.execute(BACKLOG, 2100)  # 105,000 in 50 lanes, of which each is counted up to 2,000
    (queue,) = (await listed(bench.db)).values()
    assert (queue.contents.waiting, queue.contents.exact) == (100_000, False)


@pytest.mark.slow
async def test_listing_is_quick_with_a_million_waiting(bench: Bench) -> None:
    async with bench.db.transaction() as tx:
        await tx.execute("SET LOCAL statement_timeout = 0")
        await tx.execute(BACKLOG, 20_000)
    for _ in range(2):
        started = time.monotonic()
        (queue,) = (await listed(bench.db)).values()
        spent = time.monotonic() - started
    assert queue.contents.waiting == 100_000
    assert spent < 0.5
