"""What a claim costs: nothing for lanes that the worker cannot take and for tasks whose time has not come.

One user made everybody's tasks slow with 10,000 distinct labels, limit keys or delays: each survey visited every lane.
"""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from headrace import ids
from headrace.database import Database, Tx
from headrace.tasks import retention
from headrace.tasks.caps import Caps
from headrace.tasks.catalog import RegistryCatalog
from headrace.tasks.context import TaskContext
from headrace.tasks.errors import LabelsUndeclared, TooManyLanes
from headrace.tasks.followers import Followers
from headrace.tasks.model import TaskSpec
from headrace.tasks.registry import Registry
from headrace.tasks.service import Tasks, retry_task, submit_task, submit_tasks
from headrace.tasks.submit import Submitter
from headrace.tasks.worker import store
from tests.tasks.conftest import Bench
from tests.tasks.people import enter, hire, person

LANES = 2000
LATER = timedelta(days=1)

READ = """
SELECT coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0)::bigint
FROM pg_stat_xact_user_tables
WHERE schemaname = 'headrace' AND relname IN ('tasks', 'task_queue', 'task_lanes', 'task_routes')
"""


def _specs(kind: str) -> list[TaskSpec]:
    later = datetime.now(UTC) + LATER
    make: dict[str, Callable[[int], TaskSpec]] = {
        "labels of no worker": lambda n: TaskSpec("mine", labels={"n": str(n)}),
        "a type of other workers": lambda n: TaskSpec("theirs", limit_key=str(n)),
        "a queue of other workers": lambda n: TaskSpec("mine", queue="theirs", limit_key=str(n)),
        "limit keys and a delay": lambda n: TaskSpec("mine", limit_key=str(n), run_at=later),
        "priorities and a delay": lambda n: TaskSpec("mine", priority=-n, run_at=later + timedelta(seconds=n)),
    }
    return [make[kind](n) for n in range(LANES)]


@pytest.mark.parametrize(
    "kind",
    [
        "labels of no worker",
        "a type of other workers",
        "a queue of other workers",
        "limit keys and a delay",
        "priorities and a delay",
    ],
)
async def test_a_survey_reads_no_rows_of_lanes_that_it_cannot_take(owner_tx: Tx, kind: str) -> None:
    """One user slowed everybody's tasks with thousands of lanes that no worker could take."""
    registry = Registry()
    for name in ("mine", "theirs"):
        registry.task(name, events=False)(lambda _context, _payload: None)
    submitter = Submitter(RegistryCatalog(registry), Followers())
    worker = await enter(owner_tx, ["mine"])
    await submitter.submit_many(owner_tx, _specs(kind), user_id=ids.SYSTEM_USER)
    await submitter.submit(owner_tx, TaskSpec("mine"), user_id=ids.SYSTEM_USER)
    before = await owner_tx.fetchval(READ)
    asked = ["default"], ["mine"], {"zone": "a", "gpu": "b"}
    rows = await owner_tx.fetch(store.SURVEY, *asked, -(2**31), -1, 256)
    taken = await owner_tx.fetch(store.CLAIM_FIRST, worker.number, *asked, 10, 10)
    read = await owner_tx.fetchval(READ) - before
    assert len([row for row in rows if row["lane_id"] is not None]) == len(taken) == 1
    assert read < 50


async def test_a_survey_goes_on_where_the_last_one_stopped(owner_tx: Tx) -> None:
    registry = Registry()
    for name in "abc":
        registry.task(name, events=False)(lambda _context, _payload: None)
    submitter = Submitter(RegistryCatalog(registry), Followers())
    specs = [TaskSpec(name, limit_key=str(n % 7), priority=n % 3) for name in "abc" for n in range(42)]
    await submitter.submit_many(owner_tx, specs, user_id=ids.SYSTEM_USER)
    seen: list[tuple[int, int]] = []
    after = (-(2**31), -1)
    while rows := await owner_tx.fetch(store.SURVEY, None, list("abc"), {}, *after, 10):
        seen += [(row["precedence"], row["lane_id"]) for row in rows]
        after = seen[-1]
    assert len(seen) == len(set(seen)) == 3 * 7 * 3
    assert [precedence for precedence, _ in seen] == sorted(precedence for precedence, _ in seen)


@pytest.mark.parametrize(
    ("worker_labels", "fits"),
    [({}, False), ({"gpu": "a", "zone": "x"}, True), ({f"l{n}": "x" for n in range(12)}, False)],
)
async def test_a_worker_takes_what_its_labels_satisfy(owner_tx: Tx, worker_labels: dict[str, str], fits: bool) -> None:
    registry = Registry()
    registry.task("mine", events=False)(lambda _context, _payload: None)
    submitter = Submitter(RegistryCatalog(registry), Followers())
    labels = {"gpu": "a"} if len(worker_labels) < 9 else {"l3": "x"}
    await submitter.submit(owner_tx, TaskSpec("mine", labels=labels), user_id=ids.SYSTEM_USER)
    rows = await owner_tx.fetch(store.SURVEY, None, ["mine"], worker_labels, -(2**31), -1, 10)
    assert bool(rows) == (fits or len(worker_labels) > 8)


async def test_the_first_submit_into_a_lane_blocks_no_other_while_it_is_open(bench: Bench) -> None:
    """The first submit into a new lane, uncommitted, held up every other submit into it."""

    @bench.registry.task("fresh")
    async def fresh(context: TaskContext, payload: Any) -> None: ...

    async with bench.db.transaction() as slow:
        mine = await bench.submitter.submit(slow, TaskSpec("fresh"), user_id=ids.SYSTEM_USER)
        async with asyncio.timeout(30):
            theirs = await bench.submit("fresh")
            also = await bench.submitter.submit_now(bench.db, [TaskSpec("fresh")], user_id=ids.SYSTEM_USER)
    async with bench.working():
        await bench.over(mine, theirs, *also)


async def test_releasing_a_delayed_task_wakes_workers_that_sleep(bench: Bench) -> None:
    """The worker that releases it may not be one that can take it."""
    bench.registry.task("later")(lambda _context, _payload: None)
    await bench.submit("later", run_at=datetime.now(UTC) + timedelta(days=1))
    worker = await hire(bench)
    await store.set_asleep(bench.db, worker, asleep=True)
    await _execute(bench.db, "UPDATE headrace.task_queue SET run_at = now()")
    woken = asyncio.Event()
    listener = await asyncpg.connect(bench.db.config.url)
    try:
        await listener.add_listener("headrace_tasks", lambda *_: woken.set())
        assert (await bench.db.fetch_alone("SELECT headrace.release_delayed(10) AS released"))[0]["released"] == 1
        async with asyncio.timeout(60):
            await woken.wait()
    finally:
        await listener.close()


async def test_rows_of_an_earlier_release_are_taken_all_the_same(bench: Bench) -> None:
    """A program that knows no routes writes rows without one, with the number of a lane that may be gone."""

    @bench.registry.task("old")
    async def old(context: TaskContext, payload: Any) -> None: ...

    tasks = [await bench.submit("old"), await bench.submit("old", run_at=datetime.now(UTC) + timedelta(hours=1))]
    async with bench.db.transaction() as tx:
        await tx.execute("UPDATE headrace.task_queue SET route_id = 0, delayed = false, lane_id = lane_id + 1000")
    async with bench.working():
        await bench.over(tasks[0])
    [row] = await bench.db.fetch_alone("SELECT task_id, delayed FROM headrace.task_queue")
    assert (row["task_id"], row["delayed"]) == (tasks[1], True)


async def test_idle_lanes_are_retired_and_deleted_a_day_later(bench: Bench) -> None:
    """Lanes were never deleted: a limit key for each customer made one for each, for ever."""
    bench.registry.task("work")(lambda _context, _payload: None)

    async def purge() -> list[bool]:
        async with bench.db.transaction() as tx:
            await retention.retire_lanes(tx, 100)
        rows = await bench.db.fetch_alone(
            "SELECT retired_at IS NOT NULL AS retired FROM headrace.task_lanes ORDER BY id"
        )
        return [row["retired"] for row in rows]

    await bench.submit("work", limit_key="busy")
    idle = await bench.submit("work", limit_key="idle")
    await _execute(bench.db, "DELETE FROM headrace.task_queue WHERE task_id = $1", idle)
    assert await purge() == [False, False]  # too young
    await _execute(bench.db, "UPDATE headrace.task_lanes SET created_at = now() - interval '25 hours'")
    assert await purge() == [False, True]
    again = await bench.submit("work", limit_key="idle")  # gets another lane
    assert await purge() == [False, True, False]
    await _execute(
        bench.db, "UPDATE headrace.task_lanes SET retired_at = now() - interval '25 hours' WHERE retired_at < now()"
    )
    assert await purge() == [False, False]
    async with bench.working():
        await bench.over(again)


async def test_a_submitter_remembers_lanes_for_an_hour(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.registry.task("work")(lambda _context, _payload: None)
    submitter = bench.submitter
    for _ in range(2):
        await submitter.submit_now(bench.db, [TaskSpec("work")], user_id=ids.SYSTEM_USER)
    await _execute(bench.db, "UPDATE headrace.task_lanes SET retired_at = now()")
    monkeypatch.setattr("headrace.tasks.submit._LANES_KEPT_S", -1.0)
    await submitter.submit_now(bench.db, [TaskSpec("work")], user_id=ids.SYSTEM_USER)
    rows = await bench.db.fetch_alone(
        "SELECT lane_id, count(*) AS tasks FROM headrace.task_queue GROUP BY 1 ORDER BY 1"
    )
    assert [row["tasks"] for row in rows] == [2, 1]


async def test_users_are_held_to_labels_of_workers_and_a_number_of_lanes(bench: Bench) -> None:
    bench.registry.task("work", limit_key="payload.customer")(lambda _context, _payload: None)
    bench.registry.task("free")(lambda _context, _payload: None)
    ada, root = await person(bench), await person(bench, "root")
    tasks = Tasks(bench.submitter, RegistryCatalog(bench.registry), bench.followers, Caps(lanes=5))
    await hire(bench, types=["work"], labels={"gpu": "a", "zone": "x"})
    async with bench.db.transaction() as tx:
        await submit_task(tx, tasks, ada, TaskSpec("free", labels={"gpu": "a"}))
        for labels in ({"gpu": "b"}, {"gpu": "a", "made": "up"}):
            with pytest.raises(LabelsUndeclared):
                await submit_task(tx, tasks, ada, TaskSpec("free", labels=labels))
        customers = [TaskSpec("work", {"customer": n}) for n in range(4)]
        await submit_tasks(tx, tasks, ada, customers * 2)
        await submit_tasks(tx, tasks, ada, [TaskSpec("free")] * 3)  # the lane that the type has anyway
        one_more = (TaskSpec("work", {"customer": 9}), TaskSpec("free", limit_key="k"), TaskSpec("free", priority=-1))
        for spec in one_more:
            with pytest.raises(TooManyLanes):
                await submit_task(tx, tasks, ada, spec)
        await submit_task(tx, tasks, root, one_more[0])  # others have theirs


async def test_retrying_does_not_evade_the_number_of_lanes(bench: Bench) -> None:
    bench.registry.task("free")(lambda _context, _payload: None)
    ada = await person(bench)
    tasks = Tasks(bench.submitter, RegistryCatalog(bench.registry), bench.followers, Caps(lanes=2))
    async with bench.db.transaction() as tx:
        first = await submit_task(tx, tasks, ada, TaskSpec("free", limit_key="a"))
        await tx.execute("DELETE FROM headrace.task_queue")
        await tx.execute("UPDATE headrace.tasks SET status = 'CANCELED', finished_at = now(), queue_seq = NULL")
    fresh = Tasks(bench.submitter, RegistryCatalog(bench.registry), bench.followers, Caps(lanes=2))
    async with bench.db.transaction() as tx:
        await submit_tasks(tx, fresh, ada, [TaskSpec("free", limit_key=key) for key in "bc"])
        with pytest.raises(TooManyLanes):
            await retry_task(tx, fresh, ada, first.id)


async def _execute(db: Database, sql: str, *args: object) -> None:
    async with db.transaction() as tx:
        await tx.execute(sql, *args)
