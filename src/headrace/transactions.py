"""An open transaction, as the functions of every package receive it, and its beginning and end."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal, TypeAlias

import asyncpg
import orjson

Row = asyncpg.Record
Isolation = Literal["read_committed", "repeatable_read", "serializable"]
_BEGIN: Mapping[Isolation, str] = {
    "read_committed": "BEGIN ISOLATION LEVEL READ COMMITTED",
    "repeatable_read": "BEGIN ISOLATION LEVEL REPEATABLE READ",
    "serializable": "BEGIN ISOLATION LEVEL SERIALIZABLE",
}
PoolConnection: TypeAlias = "asyncpg.pool.PoolConnectionProxy[Any]"


@dataclass(frozen=True, slots=True)
class Deferred:
    """A statement that runs with the COMMIT. ``refused`` translates its error, or returns None for one of others."""

    sql: str
    refused: Callable[[asyncpg.PostgresError], Exception | None] | None
    last: bool  # it locks what others wait for


def literal(value: object) -> str:
    """A jsonb as SQL, for messages without parameters. In hexadecimal digits no value can be taken for SQL."""
    text = orjson.dumps(value, option=orjson.OPT_UTC_Z)
    return f"convert_from(decode('{text.hex()}', 'hex'), 'UTF8')::jsonb"


class Tx:
    """The connection of an open transaction: it reads and writes, and cannot commit."""

    __slots__ = ("_savepoints", "connection", "deferred")

    def __init__(
        self, connection: "asyncpg.pool.PoolConnectionProxy[Any] | asyncpg.Connection[Any]", *, defers: bool = False
    ) -> None:
        self.connection = connection
        self.deferred: list[Deferred] | None = [] if defers else None
        self._savepoints = 0  # that are open

    async def fetch(self, sql: str, *args: object) -> list[Row]:
        return await self.connection.fetch(sql, *args)

    async def fetchrow(self, sql: str, *args: object) -> Row | None:
        return await self.connection.fetchrow(sql, *args)

    async def fetchval(self, sql: str, *args: object) -> Any:
        return await self.connection.fetchval(sql, *args)

    async def execute(self, sql: str, *args: object) -> None:
        await self.connection.execute(sql, *args)

    async def count(self, sql: str, *args: object) -> int:
        """Run a write and return the number of affected rows: the check of every guarded update."""
        status = await self.connection.execute(sql, *args)
        return int(status.rpartition(" ")[2])

    async def executemany(self, sql: str, args: Iterable[Sequence[object]]) -> None:
        await self.connection.executemany(sql, args)

    def defer(
        self,
        sql: str,
        value: object,
        *,
        refused: Callable[[asyncpg.PostgresError], Exception | None] | None = None,
        last: bool = False,
    ) -> bool:
        """Run this in one message with the COMMIT, which saves its round trip; ``last`` of all that is deferred, if it
        locks what others wait for.

        ``{given}`` in the statement stands for the value, a jsonb. An error that ``refused`` translates is raised at
        the end of the transaction, which is rolled back. False if it must run at once: this transaction does not defer,
        or a savepoint is open, whose caller handles the refusal.
        """
        if self.deferred is None or self._savepoints:
            return False
        self.deferred.append(Deferred(sql.replace("{given}", literal(value)), refused, last))
        return True

    @asynccontextmanager
    async def savepoint(self) -> AsyncIterator[None]:
        """A part that may fail without aborting the transaction."""
        await self.connection.execute("SAVEPOINT part")
        self._savepoints += 1
        try:
            yield
        except BaseException:
            # Released, too: a savepoint of the same name that remained would hide an outer one.
            await self.connection.execute("ROLLBACK TO SAVEPOINT part; RELEASE SAVEPOINT part")
            raise
        finally:
            self._savepoints -= 1
        await self.connection.execute("RELEASE SAVEPOINT part")

    async def roll_back_to(self, savepoint: str) -> None:
        """Undo all since a savepoint of the transaction's ``opening``."""
        await self.connection.execute(f"ROLLBACK TO SAVEPOINT {savepoint}")
        if self.deferred is not None:
            self.deferred.clear()


class _State(Enum):
    """Whether a transaction is open. It is not known after a BEGIN or COMMIT that was canceled."""

    NONE = 0
    OPEN = 1
    UNKNOWN = 2


class Borrowed:
    """A connection of the pool, and the transaction that is open on it.

    Not asyncpg's Transaction, which sends BEGIN and COMMIT in messages of their own.
    """

    __slots__ = ("_state", "connection")

    def __init__(self, connection: "PoolConnection") -> None:
        self.connection = connection
        self._state = _State.NONE

    async def begin(self, *, isolation: Isolation, readonly: bool, opening: str) -> None:
        self._state = _State.UNKNOWN
        try:
            await self.connection.execute(f"{_BEGIN[isolation]}{' READ ONLY' if readonly else ''}; {opening}")
        except asyncpg.PostgresError:  # of the opening
            self._state = _State.OPEN
            raise
        self._state = _State.OPEN

    async def commit(self, deferred: Sequence[Deferred]) -> None:
        self._state = _State.UNKNOWN
        try:
            ordered = sorted(deferred, key=lambda each: each.last)
            await self.connection.execute("; ".join([*(each.sql for each in ordered), "COMMIT"]))
        except asyncpg.PostgresError as exc:
            self._state = _State.OPEN  # or ended by a COMMIT that failed, which the connection knows
            for each in deferred:
                if each.refused is not None and (refused := each.refused(exc)) is not None:
                    raise refused from exc
            raise
        self._state = _State.NONE

    async def roll_back(self) -> None:
        if self._state is _State.UNKNOWN:
            # Whether a transaction is open is known when the canceled statement has been answered.
            with suppress(asyncpg.PostgresError):  # it is, and has failed
                await self.connection.execute("SELECT")
        if self._state is not _State.NONE and self.connection.is_in_transaction():
            with suppress(asyncpg.QueryCanceledError):  # of the statement before it, which came late
                await self.connection.execute("ROLLBACK")
        if self.connection.is_in_transaction():
            await self.connection.execute("ROLLBACK")
