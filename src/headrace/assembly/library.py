"""From a program's choices to Headrace inside it: the verbs of tasks, and a worker for the program's types."""

import asyncio
from contextlib import AsyncExitStack

from headrace.assembly.followers import followers
from headrace.assets.results import HandlerResults
from headrace.database import Database
from headrace.storage.model import storage_config
from headrace.tasks.catalog import RegistryCatalog, StoredCatalog
from headrace.tasks.registry import Registry
from headrace.tasks.service import Tasks
from headrace.tasks.submit import SubmitConfig, Submitter
from headrace.tasks.worker.config import WorkerConfig
from headrace.tasks.worker.loop import Worker


def open_tasks(registry: Registry | None, *, payload_limit: int) -> Tasks:
    """What the verbs of tasks work with: submits the registry's types, cancels and retries tasks of every type."""
    following = followers()
    submitter = Submitter(RegistryCatalog(registry or Registry()), following, SubmitConfig(payload_limit=payload_limit))
    return Tasks(submitter, StoredCatalog(), following)


async def run_worker(
    db: Database, registry: Registry, tasks: Tasks, config: WorkerConfig, *, files_url: str | None, stop: asyncio.Event
) -> None:
    """Run the registry's tasks until ``stop``; ``files_url`` is where handlers save files."""
    async with AsyncExitStack() as stack:
        results = None
        if files_url is not None:
            results = await stack.enter_async_context(HandlerResults(storage_config(files_url)))
        await Worker(db, registry, tasks.followers, config, results=results).run(stop)
