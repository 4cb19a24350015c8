"""From settings to workers: of a program and the product's own tasks, or of the product's own tasks alone."""

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
from headrace.assets.results import HandlerResults
from headrace.cpus import available_cpus
from headrace.database import Database
from headrace.settings import Settings
from headrace.tasks.registry import Registry
from headrace.tasks.worker.config import WorkerConfig
from headrace.tasks.worker.loop import Worker

_OWN_TASKS_AT_ONCE = 4


@asynccontextmanager
async def open_worker(
    chosen: Settings, deployment: Deployment, program: Registry, config: WorkerConfig
) -> AsyncIterator[tuple[Database, Worker]]:
    """A worker for a program's tasks and the product's own, which the caller runs, and its database."""
    # A worker frozen while it writes has lost its lease after this; its locks must not stay for longer.
    connection = replace(deployment.app, idle_in_transaction_timeout=config.lease)
    async with await deployment.connect(connection) as db, HandlerResults(files_storage(chosen)) as results:
        types = with_maintenance(program, maintenance(chosen, db))
        yield db, Worker(db, types, followers(file_config(chosen)), config, results=results)


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
async def maintaining(chosen: Settings, deployment: Deployment) -> AsyncIterator[Worker]:
    """A worker for the product's own tasks alone, in this process: they wait for the database most of the time."""
    config = replace(worker_config(chosen, queues=[QUEUE], labels={}), concurrency=_OWN_TASKS_AT_ONCE)
    connection = replace(
        deployment.app.for_role("worker"), pool_max=OWN_TASKS_POOL, idle_in_transaction_timeout=config.lease
    )
    stop = asyncio.Event()
    async with await deployment.connect(connection) as db, asyncio.TaskGroup() as group:
        working = Worker(
            db,
            with_maintenance(Registry(), maintenance(chosen, db)),
            followers(file_config(chosen)),
            config,
        )
        group.create_task(working.run(stop))
        try:
            yield working
        finally:
            stop.set()
