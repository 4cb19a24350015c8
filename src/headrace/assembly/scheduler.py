"""From settings to a scheduler at work."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from headrace.admin.maintenance import ensure_schedules, with_maintenance
from headrace.assembly import retention
from headrace.assembly.connections import FROZEN_FOR, SCHEDULER_POOL
from headrace.assembly.deployment import Deployment
from headrace.assembly.files import file_config
from headrace.assembly.followers import followers
from headrace.assembly.maintenance import maintenance
from headrace.assembly.tasks import submit_config
from headrace.assembly.waiting import until_reachable
from headrace.schedules.due import MisfireConfig
from headrace.schedules.loop import Scheduler, SchedulerConfig
from headrace.settings import Settings
from headrace.tasks.catalog import StoredCatalog
from headrace.tasks.registry import Registry
from headrace.tasks.submit import Submitter


def scheduler_config(chosen: Settings) -> SchedulerConfig:
    return SchedulerConfig(
        poll_every=chosen.scheduler_poll_interval,
        listen=chosen.worker_listen,
        misfires=MisfireConfig(after=chosen.scheduler_misfire_after, most=chosen.scheduler_catch_up),
    )


@asynccontextmanager
async def scheduling(chosen: Settings, deployment: Deployment) -> AsyncIterator[Scheduler]:
    """A scheduler at work on a few connections of its own."""
    # A scheduler that is frozen while it fires must not keep its schedules from the others for long.
    config = replace(
        deployment.app.for_role("scheduler"), pool_max=SCHEDULER_POOL, idle_in_transaction_timeout=FROZEN_FOR
    )
    stop = asyncio.Event()
    async with await deployment.connect(config) as db, asyncio.TaskGroup() as group:
        own_types = with_maintenance(Registry(), maintenance(chosen, db))
        await until_reachable(lambda: ensure_schedules(db, own_types, retention.ROWS), notify=deployment.notify)
        scheduler = Scheduler(
            db,
            Submitter(StoredCatalog(), followers(file_config(chosen)), submit_config(chosen)),
            scheduler_config(chosen),
        )
        firing = group.create_task(scheduler.run(stop))
        try:
            yield scheduler
        finally:
            stop.set()
            await asyncio.wait([firing])
