"""Commands' requests to a server elsewhere."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TypeVar

from headrace.cli.place import Server
from headrace.cli.requests import Api
from headrace.client.connection import Connection
from headrace.client.retrying import RetryPolicy

T = TypeVar("T")

_TIMEOUT = timedelta(seconds=30)
_RETRY = RetryPolicy(retries=2)  # a person waits


def perform(server: Server, act: Callable[[Api], Awaitable[T]]) -> T:
    return asyncio.run(_perform(server, act))


async def _perform(server: Server, act: Callable[[Api], Awaitable[T]]) -> T:
    async with connected(server) as api:
        return await act(api)


@asynccontextmanager
async def connected(server: Server) -> AsyncIterator[Api]:
    connection = Connection(server.url, server.key, timeout=_TIMEOUT, retry=_RETRY, transport=None)
    try:
        yield Api(connection)
    finally:
        await connection.close()


def perform_as_person(server: Server, username: str, password: str, act: Callable[[Api], Awaitable[T]]) -> T:
    """Do this in a session of its own, for what a server lets only people do."""
    return asyncio.run(_perform_as_person(server, username, password, act))


async def _perform_as_person(server: Server, username: str, password: str, act: Callable[[Api], Awaitable[T]]) -> T:
    async with connected(Server(server.url, "")) as anonymous:
        session = await anonymous.ask("POST", "/v1/auth/login", body={"username": username, "password": password})
    async with connected(Server(server.url, session["token"])) as person:
        try:
            return await act(person)
        finally:
            await person.ask("POST", "/v1/auth/logout")
