"""Failover: a host that drops packets without a word must not keep the others from being tried."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import pytest

from headrace import hosts
from headrace.database import Database, DatabaseConfig
from headrace.database_errors import DatabaseUnavailable
from headrace.hosts import hosts_of
from tests.conftest import TestServer


@pytest.fixture
def black_hole() -> Iterator[int]:
    """A port where connections are made and nobody ever answers, as behind a firewall that drops packets."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    hosts._next.clear()
    yield
    hosts._next.clear()


def several(url: str, *before: int, query: str = "") -> str:
    parts = urlsplit(url)
    login, _, place = parts.netloc.rpartition("@")
    places = ",".join([*(f"127.0.0.1:{port}" for port in before), place])
    return parts._replace(netloc=f"{login}@{places}", query=query).geturl()


@pytest.fixture
def url(server: TestServer) -> str:
    return server.superuser_url


async def test_a_black_hole_costs_its_own_timeout_and_once(url: str, black_hole: int) -> None:
    """asyncpg's timeout is for all hosts together: no attempt would ever get to the second one."""
    dsn = several(url, black_hole, query="target_session_attrs=read-write")
    first = await hosts.connect(dsn, timeout=60, host_timeout=3)  # also for the host that answers, however busy
    await first.close()
    # The host that answered comes first now: with all the time in the world, the black hole would use it up.
    async with asyncio.timeout(50):
        second = await hosts.connect(dsn, timeout=60, host_timeout=600)
    assert await second.fetchval("SELECT 1") == 1
    await second.close()


async def test_an_attempt_that_is_canceled_in_a_black_hole_is_followed_by_one_at_the_next_host(
    url: str, black_hole: int
) -> None:
    """The pool's own limit may be shorter than what several dead hosts take together."""
    dsn = several(url, black_hole, black_hole)
    for _ in range(2):
        with pytest.raises(TimeoutError):
            await hosts.connect(dsn, timeout=0.2, host_timeout=600)
    connection = await hosts.connect(dsn, timeout=50, host_timeout=600)
    await connection.close()


async def test_the_pool_and_listeners_get_past_a_black_hole(
    server: TestServer, database_url: str, black_hole: int
) -> None:
    dsn = several(database_url, black_hole, query=urlsplit(database_url).query)
    config = DatabaseConfig(dsn, connect_timeout=timedelta(seconds=60))
    async with await Database.connect(config) as db:
        assert (await db.fetch_alone("SELECT 1 AS one"))[0]["one"] == 1


async def test_no_host_that_answers_is_something_that_passes(black_hole: int) -> None:
    dsn = f"postgresql://x:y@127.0.0.1:{black_hole},127.0.0.1:{black_hole}/z"
    with pytest.raises(DatabaseUnavailable):
        await Database.connect(DatabaseConfig(dsn, connect_timeout=timedelta(seconds=0.2)))


async def test_only_standbys_are_something_that_passes(url: str) -> None:
    """Between the end of the old primary and the promotion of the next one."""
    parts = urlsplit(url)
    dsn = several(url, parts.port or 5432, query="target_session_attrs=standby")
    with pytest.raises(ConnectionError, match="no host of this address is standby"):
        await hosts.connect(dsn, timeout=60)


async def test_prefer_standby_takes_a_primary_where_there_is_no_standby(url: str) -> None:
    parts = urlsplit(url)
    dsn = several(url, parts.port or 5432, query="target_session_attrs=prefer-standby")
    connection = await hosts.connect(dsn, timeout=60)
    await connection.close()


@asynccontextmanager
async def connected(url: str) -> AsyncIterator["asyncpg.Connection[Any]"]:
    connection = await hosts.connect(url, timeout=60, server_settings=hosts.SERVER_SETTINGS)
    try:
        yield connection
    finally:
        await connection.close()


async def test_both_ends_notice_a_peer_that_vanished(url: str) -> None:
    async with connected(url) as connection:
        transport: Any = connection._transport  # type: ignore[attr-defined]
        ours = transport.get_extra_info("socket")
        assert ours.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 10_000
        assert await connection.fetchval("SHOW tcp_user_timeout") == "10000"
        assert await connection.fetchval("SHOW tcp_keepalives_idle") == "5"


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("postgresql://u:p@a:1,b:2/d", [("a", 1), ("b", 2)]),
        ("postgresql://u:p@a,b/d", [("a", None), ("b", None)]),
        ("postgresql://u:p%40@[::1]:1,[fe80::2]/d", [("::1", 1), ("fe80::2", None)]),
        ("postgresql:///d?host=a,b&port=1,2", [("a", 1), ("b", 2)]),
        ("postgresql:///d?host=a,b&port=7", [("a", 7), ("b", 7)]),
        ("postgresql:///d?host=/run/postgresql", [("/run/postgresql", None)]),
        ("postgresql:///d", []),
    ],
)
def test_hosts_of_a_url(url: str, found: list[tuple[str, int | None]]) -> None:
    assert hosts_of(url) == found
