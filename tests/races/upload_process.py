"""Uploads in a process that dies, or is cut off from PostgreSQL, at a chosen point.

``python -m tests.races.upload_process DATABASE_URL SUPERUSER_URL FOLDER`` reads lines ``METHOD HARM POINT`` and answers
each with how the child ended. A point is before or after a commit, or before or after the storage moves a file in.
"""

import asyncio
import os
import resource
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import psycopg

from headrace.database import Database, DatabaseConfig, Tx
from headrace.storage import Storage, StorageConfig
from tests.assets import stand
from tests.assets.plain import PlainInspector
from tests.assets.stand import png
from tests.edge import stand as edge

USER = edge.USER
LARGE = 3_000_000


class Harm:
    """Counts the points, and does the harm at one of them."""

    def __init__(self, kind: str, point: int, superuser: str) -> None:
        self._kind = kind
        self._left = point
        self._superuser = superuser

    def pass_by(self) -> None:
        self._left -= 1
        if self._left != 0:
            return
        if self._kind == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if self._kind == "cut":
            with psycopg.connect(self._superuser, autocommit=True) as connection:
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE datname = current_database() AND application_name LIKE '%doomed%'"
                )


class DoomedDatabase(Database):
    harm: Harm | None = None

    @asynccontextmanager
    async def transaction(self, **options: Any) -> AsyncIterator[Tx]:
        async with super().transaction(**options) as tx:
            yield tx
            if self.harm is not None:
                self.harm.pass_by()
        if self.harm is not None:
            self.harm.pass_by()


class DoomedStorage(Storage):
    harm: Harm | None = None

    async def move_in(self, name: str, file: Path) -> None:
        assert self.harm is not None
        self.harm.pass_by()
        await super().move_in(name, file)
        self.harm.pass_by()


async def upload(url: str, superuser: str, folder: str, method: str, kind: str, point: int) -> None:
    harm = Harm(kind, point, superuser)
    storage = DoomedStorage(StorageConfig(f"file://{folder}"))
    storage.harm = harm
    async with await DoomedDatabase.connect(DatabaseConfig(url, role="doomed", pool_max=2)) as db:
        db.harm = harm
        app = stand.app(db, stand.files(storage, PlainInspector(), Path(folder) / ".." / "scratch"))
        async with edge.client(app, Authorization=f"Bearer {USER}") as client:
            if kind == "full":
                resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, resource.RLIM_INFINITY))
            content = png(shade=point, tail=LARGE if kind == "full" else 100)
            await (in_parts if method == "parts" else at_once)(client, content)


async def at_once(client: httpx2.AsyncClient, content: bytes) -> None:
    tell(await client.post("/v1/assets", content=content))


async def in_parts(client: httpx2.AsyncClient, content: bytes) -> None:
    begun = await client.post("/v1/uploads", json={"name": "x.png", "size_bytes": len(content)})
    if begun.is_success:
        path = f"/v1/uploads/{begun.json()['id']}"
        sent = await client.put(f"{path}/parts/1", content=content)
        if sent.is_success:
            tell(await client.post(f"{path}/complete"))
        else:
            tell(sent)


def tell(answer: httpx2.Response) -> None:
    os.write(2, f"{answer.status_code} {answer.json().get('code')}\n".encode())
    if answer.status_code == 503 and answer.json()["code"] == "storage_full":
        os._exit(28)


def main(url: str, superuser: str, folder: str) -> None:
    for line in sys.stdin:
        method, kind, point = line.split()
        child = os.fork()  # nothing of asyncio has begun here
        if child == 0:
            os.dup2(2, 1)  # its logs are not what is read from here
            asyncio.run(upload(url, superuser, folder, method, kind, int(point)))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:4])
