"""Unfinished request bodies are capped for each user and each address."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest
from fastapi import FastAPI

from headrace.database import Database
from headrace.web import middleware
from tests.edge import stand

HALF = b'{"name": '


@pytest.fixture
def app(no_db: Database, monkeypatch: pytest.MonkeyPatch) -> FastAPI:
    monkeypatch.setattr(middleware, "MAX_PER_CREDENTIAL", 2)
    monkeypatch.setattr(middleware, "MAX_PER_ADDRESS", 3)
    return stand.app(no_db)


@asynccontextmanager
async def dripping(app: FastAPI, *bodies: tuple[str, str]) -> AsyncIterator[None]:
    """Bodies that do not end, by address and user."""
    begun, release = asyncio.Semaphore(0), asyncio.Event()

    async def drip() -> AsyncIterator[bytes]:
        yield HALF
        begun.release()
        await release.wait()
        yield b'"x"}'

    async def send(address: str, user: str) -> int:
        async with client_at(app, address) as client:
            return (await client.post("/v1/things", content=drip(), headers=headers_of(user))).status_code

    sending = [asyncio.create_task(send(*each)) for each in bodies]
    async with asyncio.timeout(60):
        for _ in bodies:
            await begun.acquire()
        try:
            yield
        finally:
            release.set()
            assert 429 not in await asyncio.gather(*sending)


def client_at(app: FastAPI, address: str) -> httpx2.AsyncClient:
    transport = httpx2.ASGITransport(app=app, client=(address, 1), raise_app_exceptions=False)
    return httpx2.AsyncClient(transport=transport, base_url="http://test")


def headers_of(user: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {user}", "Content-Type": "application/json"}


async def answer(app: FastAPI, address: str, user: str) -> tuple[int, str | None]:
    async with client_at(app, address) as client:
        reply = await client.post("/v1/things", content=HALF + b'"x"}', headers=headers_of(user))
    return reply.status_code, reply.json().get("code")


async def test_one_users_unfinished_bodies_are_capped_whatever_their_route(app: FastAPI) -> None:
    """Two thousand unfinished bodies of one account gave everybody 503, also where the body was no file."""
    async with dripping(app, ("192.0.2.1", "u_eve"), ("192.0.2.2", "u_eve")):
        assert await answer(app, "192.0.2.3", "u_eve") == (429, "too_many_open_bodies")
        assert (await answer(app, "192.0.2.3", "u_ada"))[0] != 429
    assert (await answer(app, "192.0.2.3", "u_eve"))[0] != 429


async def test_unfinished_bodies_of_one_address_are_capped_whoever_sends_them(app: FastAPI) -> None:
    several = [(f"2001:db8::{number}", f"u_{number}") for number in (1, 2, 3)]  # of IPv6 a network is one address
    async with dripping(app, *several):
        assert await answer(app, "2001:db8::9", "u_9") == (429, "too_many_open_bodies")
        assert (await answer(app, "2001:db9::9", "u_9"))[0] != 429
        async with client_at(app, "2001:db8::9") as client:  # what has no body goes on
            assert (await client.get("/healthz")).status_code == 200
    assert (await answer(app, "2001:db8::9", "u_9"))[0] != 429
