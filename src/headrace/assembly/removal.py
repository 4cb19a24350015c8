"""From settings to removal: a worker for the four media in this process, whose work is done in children."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from headrace.assembly.connections import REMOVAL_POOL
from headrace.assembly.deployment import DataFolderClosed, Deployment
from headrace.assembly.files import file_config, files_storage
from headrace.assembly.followers import followers
from headrace.assembly.secret_key import SecretKeyMissing, secret_key
from headrace.assembly.worker import worker_config
from headrace.cpus import available_cpus
from headrace.removal.service.config import RemoverConfig, is_installed
from headrace.removal.service.passwords import PURPOSE
from headrace.removal.service.task import Remover
from headrace.removal.service.task_types import QUEUE, removal_types
from headrace.settings import Settings
from headrace.storage import Storage
from headrace.tasks.worker.loop import Worker
from headrace.vault import Vault, derive_key


def processes(chosen: Settings) -> int:
    """How many files this process works on at once; none where it cannot."""
    if not is_installed():
        return 0
    # Each has two threads.
    return max(1, available_cpus() // 2) if chosen.removal_processes is None else chosen.removal_processes


def removes(chosen: Settings, queues: Sequence[str] | None) -> bool:
    """Whether a worker of these queues also removes marks."""
    return processes(chosen) > 0 and (queues is None or QUEUE in queues)


def remover_config(chosen: Settings, count: int) -> RemoverConfig:
    seconds = int(chosen.removal_step_timeout.total_seconds())
    return RemoverConfig(
        processes=count,
        memory_bytes=int(chosen.removal_memory),
        cpu_seconds=4 * seconds,
        wall_seconds=seconds,
        look_seconds=chosen.removal_detection_timeout.total_seconds(),
    )


def _vault(chosen: Settings) -> Vault | None:
    """What opens documents' passwords; a worker without the deployment's secret leaves those documents to others."""
    try:
        return Vault(derive_key(secret_key(chosen), PURPOSE))
    except (SecretKeyMissing, DataFolderClosed):
        return None


@asynccontextmanager
async def removing(
    chosen: Settings,
    deployment: Deployment,
    *,
    queues: Sequence[str] | None = None,
    labels: Mapping[str, str] | None = None,
) -> AsyncIterator[Worker | None]:
    """A worker for removal beside whatever else this process does; None where it is not to have one.

    One of its own: it takes no more than it can work on, while another runs fifty at once.
    """
    if not removes(chosen, queues):
        yield None
        return
    count = processes(chosen)
    config = replace(worker_config(chosen, queues=[QUEUE], labels=labels or {}), concurrency=count)
    connection = replace(
        deployment.app.for_role("worker"), pool_max=REMOVAL_POOL, idle_in_transaction_timeout=config.lease
    )
    storage = Storage(files_storage(chosen))
    stop = asyncio.Event()
    try:
        async with (
            await deployment.connect(connection) as db,
            Remover(db, storage, config.scratch, remover_config(chosen, count), _vault(chosen)) as remover,
            asyncio.TaskGroup() as group,
        ):
            worker = Worker(db, removal_types(remover), followers(file_config(chosen)), config)
            group.create_task(worker.run(stop))
            try:
                yield worker
            finally:
                stop.set()
    finally:
        await storage.close()
