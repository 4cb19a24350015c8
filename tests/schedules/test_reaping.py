"""What dead workers held of schedules: whoever settles it, and waits for a schedule, keeps no other one meanwhile.

Or two of them would wait for each other, and try again, for ever.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from headrace.assembly.followers import followers
from headrace.database import Tx
from headrace.schedules.service import run_schedule
from headrace.tasks import reaping
from headrace.tasks.context import TaskContext
from headrace.tasks.model import Transition
from headrace.tasks.reaping import Reaped, Reaper
from tests.schedules.conftest import Clockwork, miscounted
from tests.tasks.people import hire, take

LOCK = "SELECT pg_backend_pid() FROM headrace.scheduled_tasks WHERE uid = $1 FOR NO KEY UPDATE"
WAITING_FOR = "SELECT pid FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))"


async def fired(clockwork: Clockwork, name: str, **spec: Any) -> tuple[str, str]:
    """A schedule with one run; gives its uid and the run's task."""
    schedule = await clockwork.create(name, max_retries=0, **spec)
    async with clockwork.db.transaction() as tx:
        await run_schedule(tx, clockwork.tasks, clockwork.caller, schedule.uid)
    (run,) = await clockwork.runs(schedule.uid)
    return schedule.uid, run["task_id"]


@asynccontextmanager
async def reaping_waits_for(clockwork: Clockwork, uid: str) -> AsyncIterator["asyncio.Task[Reaped]"]:
    """All workers are silent, and whoever settles what they held has come to this schedule, which somebody else has."""
    await clockwork.db.fetch_alone("UPDATE headrace.workers SET heartbeat_at = now() - interval '1 hour'")
    async with asyncio.TaskGroup() as group, clockwork.db.transaction() as tx:
        holder = await tx.fetchval(LOCK, uid)
        reaper = Reaper(clockwork.db, clockwork.registry, clockwork.followers)
        settling = group.create_task(reaper.run_once())
        async with asyncio.timeout(60):
            while not await clockwork.db.fetch_alone(WAITING_FOR, holder):
                await asyncio.sleep(0.005)
        yield settling


async def states(clockwork: Clockwork, *uids: str) -> list[str]:
    return [run["state"] for uid in uids for run in await clockwork.runs(uid)]


async def test_what_a_worker_held_is_settled_before_that_of_another_is_waited_for(
    clockwork: Clockwork, monkeypatch: pytest.MonkeyPatch
) -> None:  # S-11
    monkeypatch.setattr(reaping, "SILENT", reaping.SILENT.replace("random()", "number"))
    first, _ = await fired(clockwork, "first")
    await take(clockwork, await hire(clockwork))
    second, _ = await fired(clockwork, "second")
    await take(clockwork, await hire(clockwork))
    async with reaping_waits_for(clockwork, second) as settling:
        assert await states(clockwork, first, second) == ["interrupted", "pending"]
    assert settling.result() == Reaped(workers=2, tasks=2)
    assert await states(clockwork, first, second) == ["interrupted", "interrupted"]
    assert await miscounted(clockwork.db) == []


class Refuses:
    """A follower that wants nothing to do with one task."""

    task_id = ""

    async def follow(self, tx: Tx, transitions: Sequence[Transition]) -> None:  # noqa: ARG002
        if any(each.task_id == self.task_id for each in transitions):
            raise RuntimeError("not this one")


async def test_the_parts_of_a_refused_batch_are_settled_one_after_the_other(clockwork: Clockwork) -> None:  # S-11
    refuses = Refuses()
    clockwork.followers = followers(refuses=refuses)

    @clockwork.registry.task("followed", followers=("refuses",))
    async def followed(_: TaskContext, __: Any) -> None: ...

    first, _ = await fired(clockwork, "first", task_type="followed")
    second, _ = await fired(clockwork, "second", task_type="followed")
    third, refused = await fired(clockwork, "third", task_type="followed")
    await take(clockwork, await hire(clockwork))
    refuses.task_id = refused
    async with reaping_waits_for(clockwork, second) as settling:
        assert await states(clockwork, first, second, third) == ["interrupted", "pending", "pending"]
    assert settling.result() == Reaped(workers=0, tasks=2)
    assert await states(clockwork, first, second, third) == ["interrupted", "interrupted", "pending"]
    assert await miscounted(clockwork.db) == []
