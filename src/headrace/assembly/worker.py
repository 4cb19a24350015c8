"""From settings to workers: of a program and the product's own tasks, or of the product's own tasks alone.

A process has one worker, with one heartbeat and one pool of connections. Removal has slots of its own in it."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from headrace.admin.maintenance import QUEUE, with_maintenance
from headrace.assembly.connections import OWN_TASKS_POOL
from headrace.assembly.deployment import Deployment
from headrace.assembly.files import file_config, files_storage
from headrace.assembly.followers import followers
from headrace.assembly.maintenance import maintenance
from headrace.assembly.removal import Removal, opened_removal, removes
from headrace.assets.results import HandlerResults
from headrace.cpus import available_cpus
from headrace.database import Database
from headrace.removal.service.task_types import QUEUE as REMOVAL_QUEUE
from headrace.settings import Settings
from headrace.tasks.registry import Registry
from headrace.tasks.worker.config import WorkerConfig
from headrace.tasks.worker.loop import Worker

_OWN_TASKS_AT_ONCE = 4
REMOVAL = "removal"  # the name of its slots


@asynccontextmanager
async def open_worker(
    chosen: Settings, deployment: Deployment, program: Registry, config: WorkerConfig
) -> AsyncIterator[tuple[Database, Worker]]:
    """A worker for a program's tasks and the product's own, which the caller runs, and its database."""
    # A worker frozen while it writes has lost its lease after this; its locks must not stay for longer.
    connection = replace(deployment.app, idle_in_transaction_timeout=config.lease)
    async with (
        await deployment.connect(connection) as db,
        HandlerResults(files_storage(chosen)) as results,
        opened_removal(chosen, db, config) as removal,
    ):
        types = with_maintenance(program, maintenance(chosen, db))
        yield db, _worker(chosen, db, types, config, removal, results)


def _worker(
    chosen: Settings,
    db: Database,
    types: Registry,
    config: WorkerConfig,
    removal: Removal | None,
    results: HandlerResults | None = None,
) -> Worker:
    if removal is not None:
        for task_type in removal.types:
            types.add(task_type)
        config = replace(config, pools={REMOVAL: removal.pool})
    return Worker(db, types, followers(file_config(chosen)), config, results=results)


def worker_config(chosen: Settings, *, queues: Sequence[str] | None, labels: Mapping[str, str]) -> WorkerConfig:
    return WorkerConfig(
        queues=queues,
        labels=labels,
        concurrency=chosen.worker_concurrency,
        threads=chosen.worker_threads,
        children=chosen.worker_processes or available_cpus(),
        lease=chosen.worker_lease,
        poll_every=chosen.worker_poll_interval,
        listen=chosen.worker_listen,
        shutdown_timeout=chosen.worker_shutdown_timeout,
        result_limit=chosen.task_result_limit,
        scratch=(chosen.worker_scratch_dir or chosen.data_dir / "scratch").resolve(),
    )


@asynccontextmanager
async def working_here(chosen: Settings, deployment: Deployment, *, maintains: bool) -> AsyncIterator[Worker | None]:
    """A worker for the product's own tasks alone, in this process: they wait for the database or for children most of
    the time. ``maintains`` False leaves maintenance to another process. None if nothing is left to do."""
    if not maintains and not removes(chosen, None):
        yield None
        return
    queues = [QUEUE, REMOVAL_QUEUE] if maintains else [REMOVAL_QUEUE]
    config = replace(worker_config(chosen, queues=queues, labels={}), concurrency=_OWN_TASKS_AT_ONCE)
    connection = replace(
        deployment.app.for_role("worker"), pool_max=OWN_TASKS_POOL, idle_in_transaction_timeout=config.lease
    )
    stop = asyncio.Event()
    async with (
        await deployment.connect(connection) as db,
        opened_removal(chosen, db, config) as removal,
        asyncio.TaskGroup() as group,
    ):
        types = with_maintenance(Registry(), maintenance(chosen, db)) if maintains else Registry()
        working = _worker(chosen, db, types, config, removal)
        group.create_task(working.run(stop))
        try:
            yield working
        finally:
            stop.set()
