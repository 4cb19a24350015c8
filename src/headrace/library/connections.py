"""One statement with one parameter on a connection of somebody else's, whichever library it comes from.

The libraries are recognised by the names of their classes and never imported: who does not use one need not have it.
"""

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from headrace.connections import UnknownConnection, library_of, unknown
from headrace.database import Tx

Statement = Callable[[str], str]
"""The SQL, given how its one parameter is written."""


async def fetch(connection: Any, statement: Statement, value: str) -> list[str]:
    """Run it in the connection's transaction; gives the first column."""
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
    """The same for a program without an event loop."""
    found = _run(connection, statement, value)
    if inspect.isawaitable(found):
        if inspect.iscoroutine(found):
            found.close()  # it has not begun
        raise UnknownConnection("This connection is asynchronous: await submit() instead.")
    return _first_column(found.fetchall())


def _run(connection: Any, statement: Statement, value: str) -> Any:
    """Start it the library's way; gives rows, a cursor, or something to await that gives one of those."""
    if isinstance(connection, Tx):
        connection = connection.connection
    match library_of(connection):
        case "asyncpg":
            return connection.fetch(statement("$1::text"), value)
        case "psycopg":
            return connection.execute(statement("%s"), (value,))
        case "sqlalchemy":
            # Whoever has a connection has the module.
            text = sys.modules["sqlalchemy"].text
            return connection.execute(text(statement(":value")), {"value": value})
    raise unknown(connection)


def _first_column(rows: Iterable[Any]) -> list[str]:
    return [_first(row) for row in rows]


def _first(row: Any) -> str:
    # Rows come as the program likes them: psycopg and SQLAlchemy can make them dicts or objects of any kind.
    if isinstance(row, Mapping):
        return str(next(iter(row.values())))
    if isinstance(row, Sequence) or hasattr(row, "__getitem__"):
        return str(row[0])
    return str(row.task_id)


def message_of(exc: BaseException) -> str:
    """PostgreSQL's own sentence in an error of whichever library."""
    inner = getattr(exc, "orig", None) or exc
    primary = getattr(getattr(inner, "diag", None), "message_primary", None) or getattr(inner, "message", None)
    said = str(primary or inner).partition("\n")[0].rpartition(">: ")[2]
    return f"{said[:1].upper()}{said[1:]}."


def detail_of(exc: BaseException) -> str | None:
    """PostgreSQL's DETAIL in an error of whichever library."""
    inner = getattr(exc, "orig", None) or exc
    detail = getattr(getattr(inner, "diag", None), "message_detail", None) or getattr(inner, "detail", None)
    if (
        detail is None and inner.__cause__ is not None
    ):  # SQLAlchemy's asyncpg dialect wraps the driver's error once more
        return detail_of(inner.__cause__)
    return detail
