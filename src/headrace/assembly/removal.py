"""From settings to removal: the task types of the four media for a worker of this process, whose work children do."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from headrace.assembly.deployment import DataFolderClosed
from headrace.assembly.files import files_storage
from headrace.assembly.secret_key import SecretKeyMissing, secret_key
from headrace.cpus import available_cpus
from headrace.database import Database
from headrace.removal.service.config import RemoverConfig, is_installed
from headrace.removal.service.passwords import PURPOSE
from headrace.removal.service.removal_task import Remover
from headrace.removal.service.task_types import QUEUE, removal_types
from headrace.settings import Settings
from headrace.storage import Storage
from headrace.tasks.registry import Registry
from headrace.tasks.worker.config import Pool, WorkerConfig
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


@dataclass(frozen=True, slots=True)
class Removal:
    """What a worker needs to remove marks: the types, and slots of their own, no more than it can work on."""

    types: Registry
    pool: Pool


@asynccontextmanager
async def opened_removal(chosen: Settings, db: Database, config: WorkerConfig) -> AsyncIterator[Removal | None]:
    """None where this worker is not to remove marks."""
    if not removes(chosen, config.queues):
        yield None
        return
    count = processes(chosen)
    storage = Storage(files_storage(chosen))
    try:
        async with Remover(db, storage, config.scratch, remover_config(chosen, count), _vault(chosen)) as remover:
            types = removal_types(remover)
            yield Removal(types, Pool(count, frozenset(types.names)))
    finally:
        await storage.close()
