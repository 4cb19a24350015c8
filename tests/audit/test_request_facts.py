"""A-06: what a request says about itself reaches the trail right, or not at all."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvicorn

from headrace.admin.audit.routes import router
from headrace.audit import events
from headrace.audit.events import EventFilter
from headrace.database import Database
from headrace.web.app import create_app
from headrace.web.config import WebConfig
from tests.edge import stand

ADMIN = {"Authorization": f"Bearer {stand.USER},ADMIN"}
OURS = WebConfig(trusted_proxies=(ip_network("10.0.0.0/8"), ip_network("127.0.0.0/8")))


@contextlib.asynccontextmanager
async def serving(db: Database, socket: Path) -> AsyncIterator[httpx2.AsyncClient]:
    """A real server on a Unix socket."""
    app = create_app(stand.services(db), OURS, routers=[router])
    server = uvicorn.Server(uvicorn.Config(app, uds=str(socket), log_config=None, lifespan="off"))
    running = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    try:
        async with httpx2.AsyncClient(
            transport=httpx2.AsyncHTTPTransport(uds=str(socket)), base_url="http://there", headers=ADMIN
        ) as client:
            yield client
    finally:
        server.should_exit = True
        await running


async def last_event(db: Database) -> Any:
    async with db.transaction() as tx:
        (event,) = await events.list_events(tx, EventFilter(), limit=1)
    return event


async def test_a_unix_socket_has_no_address_and_no_header_gives_it_one(db: Database, tmp_path: Path) -> None:
    async with serving(db, tmp_path / "api.sock") as client:
        for forged in ({}, {"X-Forwarded-For": "203.0.113.9"}):
            reply = await client.get("/v1/audit/events", headers=forged)
            assert reply.status_code == 200
            assert (await last_event(db)).client_ip is None


@pytest.mark.parametrize(
    ("peer", "forwarded", "kept"),
    [
        ("203.0.113.9", ["127.0.0.1, 10.0.0.1"], "203.0.113.9"),
        ("10.0.0.1", ["127.0.0.1, 198.51.100.2, 203.0.113.9"], "203.0.113.9"),
        ("10.0.0.1", ["203.0.113.9, 10.0.0.2, garbage"], "10.0.0.1"),
        ("10.0.0.1", [", ".join(["198.51.100.1"] * 500)], "198.51.100.1"),
        ("2001:db8::9", [], "2001:db8::9"),
        ("10.0.0.1", ["[2001:DB8::9]:443"], "2001:db8::9"),
        ("::ffff:203.0.113.9", [], "203.0.113.9"),
        ("fe80::1%eth0", [], "fe80::1"),
    ],
)
async def test_forged_chains_reach_the_trail_as_nothing(
    db: Database, peer: str, forwarded: list[str], kept: str
) -> None:
    app = create_app(stand.services(db), OURS, routers=[router])
    async with stand.client(app, peer=peer, **ADMIN) as client:
        sent = [("X-Forwarded-For", line) for line in forwarded]
        assert (await client.get("/v1/audit/events", headers=sent)).status_code == 200
    assert (await last_event(db)).client_ip == kept


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("order-17_a.b", True),
        ("x" * 128, True),
        ("x" * 129, False),
        ("", False),
        ("a b", False),
        ("'; DROP TABLE audit_events; --", False),
        ("\u6c34".encode().decode("latin-1"), False),
        ("../../etc/passwd", False),
        ("\x7f", False),
    ],
)
async def test_an_absurd_request_id_is_replaced(db: Database, given: str, kept: bool) -> None:
    app = create_app(stand.services(db), OURS, routers=[router])
    async with stand.client(app, peer="203.0.113.9", **ADMIN) as client:
        reply = await client.get("/v1/audit/events", headers=[(b"X-Request-Id", given.encode("latin-1"))])
    event = await last_event(db)
    assert event.request_id == reply.headers["X-Request-Id"]
    assert (event.request_id == given) == kept
    assert kept or event.request_id.startswith("req_")
    assert event.request_method == "GET"
