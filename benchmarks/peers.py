"""PgQueuer and Procrastinate, each with the settings that served it best (benchmarks of the same kind of machine)."""

import asyncio
import os
from datetime import timedelta

import asyncpg
import procrastinate
from pgqueuer import AsyncpgDriver, PgQueuer, Queries
from pgqueuer.models import Job


async def fill_pgqueuer(url: str, count: int) -> None:
    connection = await asyncpg.connect(url)
    queries = Queries(AsyncpgDriver(connection))
    try:
        for first in range(0, count, 5000):
            size = min(5000, count - first)
            payloads = [b'{"n": %d}' % n for n in range(first, first + size)]
            await queries.enqueue(["noop"] * size, payloads, [0] * size)
    finally:
        await connection.close()


async def clear_pgqueuer(url: str) -> None:
    """Its dead rows and its log, which grows with each round, are not vacuumed while somebody else is measured."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("TRUNCATE pgqueuer, pgqueuer_log")
    finally:
        await connection.close()


async def install_pgqueuer(url: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await Queries(AsyncpgDriver(connection)).install()
    finally:
        await connection.close()


async def work_pgqueuer(url: str, stop: asyncio.Event) -> None:
    connection = await asyncpg.connect(url)
    queue = PgQueuer(AsyncpgDriver(connection))

    @queue.entrypoint("noop")
    async def noop(job: Job) -> None:
        del job

    running = asyncio.create_task(queue.run(batch_size=500, dequeue_timeout=timedelta(seconds=1)))
    await stop.wait()
    queue.shutdown.set()
    await running
    await connection.close()


def procrastinate_app(url: str) -> procrastinate.App:
    app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=url))

    @app.task(name="noop", queue="bench")
    async def noop(n: int) -> None:
        del n

    return app


async def install_procrastinate(url: str) -> None:
    async with procrastinate_app(url).open_async() as app:
        await app.schema_manager.apply_schema_async()


async def fill_procrastinate(url: str, count: int) -> None:
    async with procrastinate_app(url).open_async() as app:
        await app.tasks["noop"].batch_defer_async(*({"n": n} for n in range(count)))


async def work_procrastinate(url: str, stop: asyncio.Event) -> None:
    async with procrastinate_app(url).open_async() as app:
        running = asyncio.create_task(
            app.run_worker_async(
                queues=["bench"],
                concurrency=20,
                delete_jobs="always",
                install_signal_handlers=False,
                name=str(os.getpid()),
            )
        )
        await stop.wait()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
