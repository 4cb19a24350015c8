"""Wraps the caller's own connection, of any supported library, as a ``Tx``.

Libraries are recognised by class names and not imported, so that unused ones need not be installed.
"""

import asyncio
import inspect
import re
import sys
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from enum import Enum
from typing import Any

import orjson

from headrace.database import Json, Tx
from headrace.errors import Invalid

_JSON = ("json", "jsonb")


class UnknownConnection(Invalid):
    """This is not a connection of asyncpg, psycopg 3 or SQLAlchemy."""

    code = "unknown_connection"


class NoTransaction(Invalid):
    """This connection has no open transaction: begin one, so that your writes and ours are committed together."""

    code = "no_transaction"


def unknown(connection: Any) -> UnknownConnection:
    name = type(connection).__qualname__
    return UnknownConnection(f"A connection of asyncpg, psycopg 3 or SQLAlchemy is expected here, not a {name}.")


def library_of(connection: Any) -> str | None:
    roots = [parent.__module__.partition(".")[0] for parent in type(connection).__mro__]
    return next((root for root in roots if root in ("asyncpg", "psycopg", "sqlalchemy")), None)


def is_asynchronous(connection: Any) -> bool:
    """Whether it can be used only on its event loop."""
    if isinstance(connection, Tx) or library_of(connection) == "asyncpg":
        return True
    return any(parent.__name__.lower().startswith("async") for parent in type(connection).__mro__)


def sqlstate_of(exc: BaseException) -> str | None:
    """PostgreSQL's SQLSTATE in an error of any library."""
    for each in (exc, getattr(exc, "orig", None), exc.__cause__):
        state = getattr(each, "sqlstate", None) or getattr(each, "pgcode", None)
        if isinstance(state, str):
            return state
    return None


async def transaction_of(connection: Any) -> Tx:
    """The open transaction of a connection; ``UnknownConnection`` or ``NoTransaction`` if there is none."""
    if isinstance(connection, Tx):
        return connection
    match library_of(connection):
        case "asyncpg" if hasattr(connection, "is_in_transaction"):
            return await _of_asyncpg(connection)
        case "psycopg" if hasattr(connection, "autocommit"):
            return _of_psycopg(connection)
        case "sqlalchemy":
            return await transaction_of(await _driver_connection(connection))
    raise unknown(connection)


async def _of_asyncpg(connection: Any) -> Tx:
    if not connection.is_in_transaction():
        raise NoTransaction
    # The program may have set a JSON codec.
    return _AsyncpgTx(connection, json_as_text=isinstance(await connection.fetchval("SELECT '1'::jsonb"), str))


def _of_psycopg(connection: Any) -> Tx:
    # Without autocommit the first statement begins a transaction.
    if connection.autocommit and connection.info.transaction_status == 0:
        raise NoTransaction
    return _PsycopgTx(connection)


async def _driver_connection(connection: Any) -> Any:
    """The driver connection of SQLAlchemy's connection or session, in the same transaction."""
    if hasattr(connection, "get_bind"):  # a session
        connection = await _await_result(connection.connection)
    if not hasattr(connection, "exec_driver_sql"):
        raise unknown(connection)
    # SQLAlchemy begins the transaction with its first statement, which must not bypass it.
    await _await_result(connection.execute, sys.modules["sqlalchemy"].text("SELECT 1"))
    if hasattr(connection, "get_raw_connection"):
        return (await connection.get_raw_connection()).driver_connection
    return connection.connection.driver_connection


async def _await_result(call: Any, *args: object) -> Any:
    """The result of a blocking or asynchronous call; a blocking one runs in a thread."""
    if inspect.iscoroutinefunction(call):
        return await call(*args)
    found = await asyncio.to_thread(call, *args)
    return await found if inspect.isawaitable(found) else found


class _ForeignTx(Tx):
    """``Tx`` over ``_run``."""

    __slots__ = ()

    async def _run(self, sql: str, args: Sequence[object]) -> tuple[list[Any], int]:
        """The rows, and the number of affected rows."""
        raise NotImplementedError

    async def fetch(self, sql: str, *args: object) -> list[Any]:
        return (await self._run(sql, args))[0]

    async def fetchrow(self, sql: str, *args: object) -> Any:
        return next(iter(await self.fetch(sql, *args)), None)

    async def fetchval(self, sql: str, *args: object) -> Any:
        row = await self.fetchrow(sql, *args)
        return None if row is None else next(iter(row.values()))

    async def execute(self, sql: str, *args: object) -> None:
        await self._run(sql, args)

    async def count(self, sql: str, *args: object) -> int:
        return (await self._run(sql, args))[1]

    async def executemany(self, sql: str, args: Iterable[Sequence[object]]) -> None:
        for each in args:
            await self._run(sql, each)

    @asynccontextmanager
    async def savepoint(self) -> AsyncIterator[None]:
        await self.execute("SAVEPOINT headrace")
        try:
            yield
        except BaseException:
            await self.execute("ROLLBACK TO SAVEPOINT headrace")
            raise
        await self.execute("RELEASE SAVEPOINT headrace")


class _AsyncpgTx(_ForeignTx):
    __slots__ = ("_json_as_text",)

    def __init__(self, connection: Any, *, json_as_text: bool) -> None:
        super().__init__(connection)
        self._json_as_text = json_as_text

    async def _run(self, sql: str, args: Sequence[object]) -> tuple[list[Any], int]:
        statement = await self.connection.prepare(sql)
        kinds = [kind.name for kind in statement.get_parameters()]
        if any(kind.removesuffix("[]") in _JSON for kind in kinds):
            statement = await self.connection.prepare(_with_json_as_text(sql, kinds))
        rows = [dict(row) for row in await statement.fetch(*map(_json_as_text, kinds, args))]
        if self._json_as_text:
            texts = [each.name for each in statement.get_attributes() if each.type.name in _JSON]
            for row in rows:
                row.update({name: orjson.loads(row[name]) for name in texts if row[name] is not None})
        touched = (statement.get_statusmsg() or "").rpartition(" ")[2]
        return rows, int(touched) if touched.isdigit() else 0


def _with_json_as_text(sql: str, kinds: Sequence[str]) -> str:
    """Send JSON as text with a cast, because the program may have set any JSON codec."""
    for number, kind in enumerate(kinds, start=1):
        array = "[]" if kind.endswith("[]") else ""
        if kind.removesuffix("[]") in _JSON:
            sql = re.sub(rf"\${number}(?![0-9])", f"(${number}::text{array}::{kind})", sql)
    return sql


def _json_as_text(kind: str, value: Any) -> Any:
    if value is None or kind.removesuffix("[]") not in _JSON:
        return value
    if kind.endswith("[]"):
        return [_json_as_text(kind.removesuffix("[]"), each) for each in value]
    return (bytes(value) if isinstance(value, Json) else orjson.dumps(value)).decode()


class _PsycopgTx(_ForeignTx):
    __slots__ = ()

    async def _run(self, sql: str, args: Sequence[object]) -> tuple[list[Any], int]:
        psycopg, by_name = sys.modules["psycopg"], sys.modules["psycopg.rows"].dict_row
        args = [_for_psycopg(value) for value in args]
        if not isinstance(self.connection, psycopg.AsyncConnection):
            return await asyncio.to_thread(
                _run_blocking, psycopg.RawCursor(self.connection, row_factory=by_name), sql, args
            )
        async with psycopg.AsyncRawCursor(self.connection, row_factory=by_name) as cursor:
            await cursor.execute(sql, args or None)
            return await cursor.fetchall() if cursor.description else [], cursor.rowcount


def _run_blocking(cursor: Any, sql: str, args: Sequence[object]) -> tuple[list[Any], int]:
    with cursor:
        cursor.execute(sql, args or None)
        return cursor.fetchall() if cursor.description else [], cursor.rowcount


def _for_psycopg(value: Any) -> Any:
    jsonb = sys.modules["psycopg.types.json"].Jsonb
    match value:
        case Json():
            return jsonb(bytes(value), dumps=bytes)
        case dict():
            return jsonb(value, dumps=orjson.dumps)
        case Enum():
            return value.value
        case list() | tuple():  # a tuple would become a composite
            return [_for_psycopg(each) for each in value]
    return value
