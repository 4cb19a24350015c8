"""Runs one statement with one parameter on the program's own connection, of any supported library.

Libraries are recognised by class names and not imported, so that unused ones need not be installed.
"""

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from headrace.connections import UnknownConnection, library_of, unknown
from headrace.database import Tx

Statement = Callable[[str], str]
"""Returns the SQL for a placeholder of its one parameter."""


async def fetch(connection: Any, statement: Statement, value: str) -> list[str]:
    """Run it in the connection's transaction; returns the first column."""
    found = _run(connection, statement, value)
    if inspect.isawaitable(found):
        found = await found
    rows = found
    if hasattr(found, "fetchall"):  # a cursor, or SQLAlchemy's result
        rows = found.fetchall()
        if inspect.isawaitable(rows):
            rows = await rows
    return _first_column(rows)


def fetch_blocking(connection: Any, statement: Statement, value: str) -> list[str]:
    """``fetch`` for a program without an event loop."""
    found = _run(connection, statement, value)
    if inspect.isawaitable(found):
        if inspect.iscoroutine(found):
            found.close()  # the coroutine has not started
        raise UnknownConnection("This connection is asynchronous: await submit() instead.")
    return _first_column(found.fetchall())


def _run(connection: Any, statement: Statement, value: str) -> Any:
    """Execute it with the library's method; returns rows, a cursor, or an awaitable of one of these."""
    if isinstance(connection, Tx):
        connection = connection.connection
    match library_of(connection):
        case "asyncpg":
            return connection.fetch(statement("$1::text"), value)
        case "psycopg":
            return connection.execute(statement("%s"), (value,))
        case "sqlalchemy":
            # A connection of this library implies that the module is installed.
            text = sys.modules["sqlalchemy"].text
            return connection.execute(text(statement(":value")), {"value": value})
    raise unknown(connection)


def _first_column(rows: Iterable[Any]) -> list[str]:
    return [_first(row) for row in rows]


def _first(row: Any) -> str:
    # Rows may be dicts or any objects, by the program's row factory.
    if isinstance(row, Mapping):
        return str(next(iter(row.values())))
    if isinstance(row, Sequence) or hasattr(row, "__getitem__"):
        return str(row[0])
    return str(row.task_id)


def message_of(exc: BaseException) -> str:
    """PostgreSQL's message in an error of any library."""
    inner = getattr(exc, "orig", None) or exc
    primary = getattr(getattr(inner, "diag", None), "message_primary", None) or getattr(inner, "message", None)
    said = str(primary or inner).partition("\n")[0].rpartition(">: ")[2]
    return f"{said[:1].upper()}{said[1:]}."


def detail_of(exc: BaseException) -> str | None:
    """PostgreSQL's DETAIL in an error of any library."""
    inner = getattr(exc, "orig", None) or exc
    detail = getattr(getattr(inner, "diag", None), "message_detail", None) or getattr(inner, "detail", None)
    if (
        detail is None and inner.__cause__ is not None
    ):  # SQLAlchemy's asyncpg dialect wraps the driver's error once more
        return detail_of(inner.__cause__)
    return detail
