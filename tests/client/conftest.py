"""Servers for the client: the real API on a real socket, and one that answers as a test tells it to."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn

from headrace import ids
from headrace.admin.bulk.routes import create_router as bulk
from headrace.admin.outbox.routes import router as events
from headrace.admin.overview.routes import create_router as overview
from headrace.admin.overview.service import Operators
from headrace.assembly.followers import followers
from headrace.billing.ledger_routes import router as usage
from headrace.client import Client, RetryPolicy
from headrace.locks.routes import router as locks
from headrace.risks.routes import router as risks
from headrace.schedules.routes import create_router as schedules
from headrace.tasks.catalog import StoredCatalog
from headrace.tasks.live import open_watch
from headrace.tasks.routes import create_router
from headrace.tasks.service import Tasks
from headrace.tasks.submit import Submitter
from headrace.web.app import create_app
from headrace.web.config import WebConfig
from tests.edge import stand
from tests.tasks.conftest import Bench, bench

__all__ = ["bench"]

SCOPES = "tasks:read,tasks:write,schedules:read,schedules:write,locks:read,locks:write,billing:read"
ADMIN_KEY = f"{ids.SYSTEM_USER},ADMIN,admin,{SCOPES}"
IMPATIENT = RetryPolicy(retries=0)

App = Callable[[Any, Any, Any], Awaitable[None]]


@asynccontextmanager
async def served(app: Any) -> AsyncIterator[str]:
    """The app on a free port; gives its address."""
    bound = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(
        uvicorn.Config(app, log_config=None, lifespan="off", timeout_graceful_shutdown=1, access_log=False)
    )
    serving = asyncio.create_task(server.serve(sockets=[bound]))
    try:
        while not server.started:
            await asyncio.sleep(0.005)
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"
    finally:
        server.should_exit = True
        await serving


@pytest.fixture
async def api(bench: Bench) -> AsyncIterator[str]:
    """The API of tasks, schedules and locks, on the bench's database."""
    catalog, following = StoredCatalog(remember_seconds=0), followers()
    ours = Tasks(Submitter(catalog, following), catalog, following)
    async with open_watch(bench.db) as watch:
        app = create_app(
            stand.services(bench.db),
            WebConfig(),
            routers=[
                bulk(ours),
                create_router(ours, watch),
                schedules(ours),
                locks,
                usage,
                events,
                overview(Operators()),
                risks,
            ],
        )
        async with served(app) as url:
            yield url
            watch.stop()


@pytest.fixture
async def client(api: str) -> AsyncIterator[Client]:
    async with Client(api, ADMIN_KEY) as opened:
        yield opened


class Script:
    """A server that gives one prepared answer after the other, the last for ever; it remembers what it was asked."""

    def __init__(self, *answers: tuple[int, dict[str, str], bytes]) -> None:
        self._answers = list(answers)
        self.asked: list[tuple[str, str, dict[str, str], bytes]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        self.asked.append((scope["method"], scope["path"], headers, body))
        status, given, content = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        raw = [(name.lower().encode(), value.encode()) for name, value in given.items()]
        await send({"type": "http.response.start", "status": status, "headers": raw})
        await send({"type": "http.response.body", "body": content})
