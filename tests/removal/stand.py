"""The whole product in this process, with a worker for removal whose children are real, and a receiver of webhooks."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastapi import FastAPI

from headrace import settings
from headrace.assembly.deployment import Deployment
from headrace.assembly.files import files_storage
from headrace.assembly.followers import followers
from headrace.assembly.relay import relaying
from headrace.assembly.worker import worker_config
from headrace.database import Database, DatabaseConfig, Row
from headrace.removal.order import StageOrder
from headrace.removal.report import Report
from headrace.removal.service.config import RemoverConfig
from headrace.removal.service.passwords import PURPOSE
from headrace.removal.service.progress import Pace
from headrace.removal.service.removal_task import Remover
from headrace.removal.service.task_types import QUEUE, removal_types
from headrace.settings import Settings
from headrace.storage import Storage
from headrace.tasks.worker.config import WorkerConfig
from headrace.tasks.worker.loop import Worker
from headrace.vault import Vault, derive_key
from tests.edge import stand
from tests.web.world import World, whole_api
from tests.webhooks.receiver import Receiver, receiving

RIGHTS = {"basis": "OWNER", "statement": "my own"}
ENDS = ("SUCCEEDED", "FAILED", "CANCELED")


class Watched(Remover):
    """Lets a test do something when a stage is about to be given to a child."""

    before: Callable[[StageOrder], Any] | None = None

    async def in_child(self, order: StageOrder, pace: Pace) -> Report:
        if self.before is not None:
            self.before(order)
        return await super().in_child(order, pace)


@dataclass
class Service:
    world: World
    app: FastAPI
    remover: Watched
    receiver: Receiver
    storage: Storage
    chosen: Settings
    worker_stop: asyncio.Event  # set, only other processes work

    @property
    def db(self) -> Database:
        return self.world.db

    async def upload(self, path: Path) -> str:
        reply = await self.world.send("POST", f"/v1/assets?name={path.name}", path.read_bytes())
        asset_id: str = reply.json()["id"]
        return asset_id

    async def order(self, *asset_ids: str, **more: Any) -> Any:
        body = {"asset_ids": list(asset_ids), "rights": RIGHTS, **more}
        return (await self.world.send("POST", "/v1/removals", body)).json()

    async def clean(self, asset_id: str, **more: Any) -> Any:
        """Order it, and wait for its end; gives the removal."""
        return await self.over((await self.order(asset_id, **more))["items"][0]["id"])

    async def over(self, task_id: str) -> Any:
        async with asyncio.timeout(120):
            while True:
                removal = (await self.world.send("GET", f"/v1/removals/{task_id}")).json()
                if removal["status"] in ENDS:
                    return removal
                await asyncio.sleep(0.05)

    async def steps(self, task_id: str) -> list[tuple[str, str, int]]:
        items = (await self.world.send("GET", f"/v1/tasks/{task_id}/steps")).json()["items"]
        return [(each["name"], each["status"], each["attempt"]) for each in items]

    async def ledger(self, task_id: str) -> list[tuple[str, int]]:
        rows = await self.db.fetch_alone(
            "SELECT status, consume_unit FROM headrace.usage_ledger WHERE task_id = $1 ORDER BY status <> 'HELD'",
            task_id,
        )
        return [(row["status"], row["consume_unit"]) for row in rows]

    async def rows(self, sql: str, *args: object) -> list[Row]:
        return list(await self.db.fetch_alone(sql, *args))


@asynccontextmanager
async def serving(database_url: str, folder: Path) -> AsyncIterator[Service]:
    config = DatabaseConfig(database_url, role="test")
    place = Deployment(config, config, embedded=False)
    async with whole_api(database_url, data_dir=folder / "data", webhook_local_targets=True) as (world, app):
        chosen = settings.load(
            files_url=str(world.files),
            data_dir=folder / "data",
            webhook_local_targets=True,
            secret_key=stand.SECRET.decode(),
            relay_poll_interval="50ms",
        )
        storage = Storage(files_storage(chosen))
        async with (
            receiving() as receiver,
            relaying(chosen, place),
            Watched(
                world.db,
                storage,
                folder / "scratch",
                RemoverConfig(processes=1, spare=0),
                Vault(derive_key(stand.SECRET, PURPOSE)),
            ) as remover,
            working(chosen, world.db, remover) as stop,
        ):
            endpoint = {"name": "ours", "url": receiver.url, "subscribed_events": ["task.succeeded", "task.failed"]}
            await world.send("POST", "/v1/webhooks/endpoints", endpoint)
            yield Service(world, app, remover, receiver, storage, chosen, stop)


@asynccontextmanager
async def working(chosen: Settings, db: Database, remover: Remover) -> AsyncIterator[asyncio.Event]:
    config: WorkerConfig = worker_config(chosen, queues=[QUEUE], labels={})
    stop = asyncio.Event()
    worker = Worker(db, removal_types(remover), followers(), config)
    running = asyncio.create_task(worker.run(stop))
    try:
        yield stop
    finally:
        stop.set()
        await running
