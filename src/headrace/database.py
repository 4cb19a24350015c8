"""The connection to PostgreSQL: a pool, transactions, and notifications.

Transactions begin only in routes, commands and loops (``async with db.transaction() as tx``). All functions below take
the ``Tx`` and cannot commit, so that related changes are committed together.
"""

import asyncio
import os
import socket
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Self, cast
from urllib.parse import urlsplit

import asyncpg
import orjson

from headrace import clock, hosts, logs
from headrace.database_errors import (
    LOST,
    DatabaseBusy,
    DatabaseUnavailable,
    explained,
    refusal,
)
from headrace.transactions import Borrowed, PoolConnection
from headrace.transactions import Isolation as Isolation
from headrace.transactions import Row as Row
from headrace.transactions import Tx as Tx

log = logs.get(__name__)


_BACKSTOP_S = 5.0
_ROLLBACK_WITHIN_SECONDS = 2.0
# A connection of the pool that was not used for this long is closed: a burst of work must not hold the server's.
_IDLE_LIFETIME_S = 15.0
# Where notifications do not arrive.
_POLL_INTERVAL_S = 1.0
# Between two connections of a listener.
_FIRST_PAUSE_S = 0.1
_MAX_PAUSE_S = 5.0


@dataclass(frozen=True, slots=True)
class DatabaseConfig:
    """The address of the database, and timeouts.

    ``pooled``: the address is a pooler in transaction mode, such as PgBouncer. Each transaction may use another server
    connection, so no session state is kept: no prepared statements and no session limits (set them for the role: ALTER
    ROLE … SET idle_in_transaction_session_timeout); statement timeouts are enforced by this client. Notifications do
    not arrive, so listeners poll every second.
    """

    url: str = field(repr=False)  # a password may be in it
    role: str = "headrace"  # the role of this process, shown in pg_stat_activity
    pool_min: int = 1
    pool_max: int = 10
    connect_timeout: timedelta = timedelta(seconds=5)
    statement_timeout: timedelta = timedelta(seconds=30)
    idle_in_transaction_timeout: timedelta = timedelta(seconds=60)
    pooled: bool = False
    named: str = "HEADRACE_DATABASE_URL"  # the setting that messages name when the address is wrong

    def for_role(self, role: str) -> Self:
        return replace(self, role=role)

    @property
    def application_name(self) -> str:
        return f"headrace {self.role} {socket.gethostname()}:{os.getpid()}"[:63]

    @property
    def place(self) -> str:
        """Host, port and database for messages: the URL without its password."""
        parts = urlsplit(self.url)
        # Parsed by hand: urlsplit cannot read several hosts with ports (host1:5432,host2:5432).
        hosts = parts.netloc.rpartition("@")[2] or "the local socket"
        return f"{hosts if ':' in hosts else f'{hosts}:5432'}{parts.path}"


@dataclass(frozen=True, slots=True)
class Note:
    """One notification. ``resumed`` marks a new connection: notifications may have been missed, so poll."""

    channel: str
    payload: str
    resumed: bool = False


class Json(bytes):
    """Encoded JSON for a jsonb parameter."""

    __slots__ = ()


class Database:
    """A pool of connections to one PostgreSQL."""

    def __init__(self, config: DatabaseConfig, pool: "asyncpg.Pool[Any]") -> None:
        self.config = config
        self._pool = pool
        # The last returned connection, kept for the next caller: the pool's own work between two uses costs more than
        # a short statement.
        self._kept: PoolConnection | None = None
        self._asking = 0  # callers that wait for the pool; they have priority over keeping
        self._ending: set[asyncio.Task[None]] = set()  # rollbacks of interrupted transactions

    @classmethod
    async def connect(cls, config: DatabaseConfig) -> Self:
        """Open the pool; ``DatabaseRefused`` and ``DatabaseUnavailable`` say what to correct."""
        try:
            pool: asyncpg.Pool[Any] = await asyncpg.create_pool(
                connect=cast("Any", _connect_for_pool),
                min_size=config.pool_min,
                max_size=config.pool_max,
                max_inactive_connection_lifetime=_IDLE_LIFETIME_S,
                init=_prepare,
                reset=_skip_reset,
                **_arguments(config),
            )
        except Exception as exc:
            raise refusal(config.url, config.place, config.named, exc) from exc
        return cls(config, pool)

    async def close(self) -> None:
        """Wait five seconds for connections to be returned, then terminate them."""
        self._asking += 1  # permanently: returned connections go to the pool, which waits for them
        try:
            async with asyncio.timeout(5):
                if (kept := await self._take_kept()) is not None:
                    await self._pool.release(kept)
                await self._pool.close()
        except TimeoutError:
            self._pool.terminate()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @asynccontextmanager
    async def transaction(
        self,
        *,
        isolation: Isolation = "read_committed",
        readonly: bool = False,
        opening: str = "",
        defers: bool = False,
    ) -> AsyncIterator[Tx]:
        """One transaction: committed at the end, rolled back by any exception.

        ``opening`` are statements that go with BEGIN in one message: constants, numbers and
        ``transactions.literal``. With ``defers``, ``Tx.defer`` moves statements to the COMMIT; their refusals are
        raised where the transaction ends.
        """
        with explained():
            async with self._connection() as borrowed:
                await borrowed.begin(isolation=isolation, readonly=readonly, opening=opening)
                yield (tx := Tx(borrowed.connection, defers=defers))
                await borrowed.commit(tx.deferred or ())

    @asynccontextmanager
    async def autocommit(self) -> AsyncIterator[Tx]:
        """Statements that are a transaction each, without the round trips of BEGIN and COMMIT: for reads that need no
        common snapshot, and for a single write."""
        with explained():
            async with self._connection() as borrowed:
                yield Tx(borrowed.connection)

    async def fetch_alone(self, sql: str, *args: object) -> list[Row]:
        """One statement as its own transaction: one round trip instead of three with BEGIN and COMMIT."""
        with explained():
            async with self._connection() as borrowed:
                return await borrowed.connection.fetch(sql, *args)

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator["Borrowed"]:
        connection = await self._take_kept() or await self._acquire()
        try:
            yield (borrowed := Borrowed(connection))
        except BaseException:
            # A statement may be running: its cancellation must be awaited, and anyio cancels at each await until the
            # scope is left. So the rollback is a separate task.
            ending = asyncio.create_task(self._roll_back_and_release(borrowed))
            self._ending.add(ending)
            ending.add_done_callback(self._ending.discard)
            await asyncio.shield(ending)
            raise
        if self._kept is None and not self._asking and _is_open(connection):
            self._kept = connection
        else:
            await self._release(connection)

    async def _take_kept(self) -> "PoolConnection | None":
        connection, self._kept = self._kept, None
        if connection is None or _is_open(connection):
            return connection
        await self._release(connection)  # it was closed meanwhile; the pool opens another one
        return None

    async def _acquire(self) -> "PoolConnection":
        self._asking += 1
        try:
            # Not the pool's own timeout, which creates a task for each acquire.
            async with asyncio.timeout(self.config.connect_timeout.total_seconds()):
                return await self._pool.acquire()
        except (TimeoutError, asyncpg.TooManyConnectionsError) as exc:
            raise DatabaseBusy("No connection to the database is free; try again in a moment.") from exc
        except OSError as exc:
            raise DatabaseUnavailable from exc
        finally:
            self._asking -= 1

    async def _roll_back_and_release(self, borrowed: "Borrowed") -> None:
        with suppress(*LOST, asyncpg.PostgresError, OSError, TimeoutError):  # the pool discards it
            try:
                async with asyncio.timeout(_ROLLBACK_WITHIN_SECONDS):
                    await borrowed.roll_back()
            except TimeoutError:
                await self._end_session(borrowed.connection)
        # The session may not have ended yet: the pool would reset it, which is logged as an error.
        if _is_open(borrowed.connection) and borrowed.connection.is_in_transaction():
            borrowed.connection.terminate()
        await self._release(borrowed.connection)

    async def _end_session(self, connection: "PoolConnection") -> None:
        """End a session whose statement goes on: its transaction would keep its locks until that statement's limit.

        PostgreSQL ignores a cancellation that overtakes its statement."""
        if self.config.pooled:  # the pooler's process id is not the server's
            return
        log.warning("database.session_ended", pid=connection.get_server_pid())
        async with connect_alone(self.config) as other:
            await other.execute(f"SELECT pg_terminate_backend({connection.get_server_pid()})")

    async def _release(self, connection: "PoolConnection") -> None:
        try:
            await self._pool.release(connection, timeout=self.config.connect_timeout.total_seconds())
        except (*LOST, asyncpg.PostgresError, OSError) as exc:
            # It broke after the answer. The transaction is committed, and the pool has discarded the connection.
            log.warning("database.connection_lost", error=type(exc).__name__)

    async def listen(self, *channels: str, keepalive: timedelta = timedelta(seconds=30)) -> AsyncGenerator[Note, None]:
        """Notifications of these channels for ever, over a separate connection that is reopened when lost.

        A note with ``resumed`` set opens each connection. Close the iterator (``contextlib.aclosing``) to stop.
        """
        while self.config.pooled:
            yield Note("", "", resumed=True)
            await asyncio.sleep(_POLL_INTERVAL_S)
        delay = _FIRST_PAUSE_S
        while True:
            began = time.monotonic()
            try:
                connection = await hosts.connect(**_arguments(self.config.for_role("listener")))
            except (*LOST, OSError, TimeoutError, asyncpg.PostgresError) as exc:
                log.warning("listener.unreachable", error=type(exc).__name__, retry_in=delay)
            else:
                try:
                    async with aclosing(_notes(connection, channels, keepalive.total_seconds())) as notes:
                        async for note in notes:
                            yield note
                except (*LOST, OSError, TimeoutError, asyncpg.PostgresError) as exc:  # also of LISTEN itself
                    log.warning("listener.lost", error=type(exc).__name__)
                finally:
                    connection.terminate()
                # A connection that is closed at once (by a pooler, a firewall) counts as none.
                if time.monotonic() - began > _MAX_PAUSE_S:
                    delay = _FIRST_PAUSE_S
            await asyncio.sleep(delay)
            delay = min(delay * 2, _MAX_PAUSE_S)


@asynccontextmanager
async def connect_alone(config: DatabaseConfig) -> AsyncIterator["asyncpg.Connection[Any]"]:
    """One connection outside any pool, for migrations and checks that need their own session."""
    try:
        connection = await hosts.connect(**_arguments(config))
    except Exception as exc:
        raise refusal(config.url, config.place, config.named, exc) from exc
    try:
        await _prepare(connection)
        yield connection
    except LOST as exc:
        raise DatabaseUnavailable from exc
    finally:
        with suppress(Exception):
            await connection.close(timeout=2)


async def _notes(
    connection: "asyncpg.Connection[Any]", channels: Sequence[str], keepalive: float
) -> AsyncGenerator[Note, None]:
    arrived: asyncio.Queue[Note | None] = asyncio.Queue()
    connection.add_termination_listener(lambda *_: arrived.put_nowait(None))
    for channel in channels:
        await connection.add_listener(
            channel, lambda _connection, _pid, name, payload: arrived.put_nowait(Note(name, payload))
        )
    yield Note("", "", resumed=True)
    while True:
        try:
            # Not wait_for, which in Python 3.11 swallows a cancellation that coincides with a notification.
            async with asyncio.timeout(keepalive):
                note = await arrived.get()
        except TimeoutError:
            # Without it a silently vanished peer would make us wait for ever.
            await connection.execute("SELECT 1", timeout=keepalive)
            continue
        if note is None:
            return
        yield note


def _arguments(config: DatabaseConfig) -> dict[str, Any]:
    if config.pooled:
        return {
            "dsn": config.url,
            "timeout": config.connect_timeout.total_seconds(),
            "command_timeout": config.statement_timeout.total_seconds(),
            "statement_cache_size": 0,
            "server_settings": {"application_name": config.application_name},  # PgBouncer takes no others
        }
    return {
        "dsn": config.url,
        "timeout": config.connect_timeout.total_seconds(),
        # A fallback for a server that stopped answering; the server's own timeout is shorter.
        "command_timeout": config.statement_timeout.total_seconds() + _BACKSTOP_S,
        "server_settings": {
            "application_name": config.application_name,
            "statement_timeout": _ms(config.statement_timeout),
            "idle_in_transaction_session_timeout": _ms(config.idle_in_transaction_timeout),
            "timezone": "UTC",
            **hosts.SERVER_SETTINGS,
        },
    }


async def _connect_for_pool(dsn: str, **arguments: Any) -> "asyncpg.Connection[Any]":
    return await hosts.connect(dsn, **arguments)


def _ms(duration: timedelta) -> str:
    return str(round(duration.total_seconds() * 1000))


def _is_open(connection: PoolConnection) -> bool:
    try:
        return not connection.is_closed()
    except asyncpg.InterfaceError:  # the pool has taken it back by itself
        return False


async def _skip_reset(_: "asyncpg.Connection[Any]") -> None:
    """Skip the pool's reset query: settings and locks end with their transaction, and listening uses a separate
    connection. The reset would cost a round trip for every transaction."""


async def _prepare(connection: "asyncpg.Connection[Any]") -> None:
    await _teach_json(connection)
    asked_at = clock.ticks()
    clock.measure(await connection.fetchval("SELECT clock_timestamp()"), asked_at=asked_at)


async def _teach_json(connection: "asyncpg.Connection[Any]") -> None:
    # The binary format of jsonb is a version byte and text; callers pass and receive Python objects.
    await connection.set_type_codec(
        "jsonb",
        schema="pg_catalog",
        encoder=_encode_json,
        decoder=lambda data: orjson.loads(data[1:]),
        format="binary",
    )


def _encode_json(value: object) -> bytes:
    return b"\x01" + (value if type(value) is Json else orjson.dumps(value))
