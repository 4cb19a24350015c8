"""Errors of the database, and their translation from exceptions of the driver."""

import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Self
from urllib.parse import urlsplit

import asyncpg
import orjson

from headrace.errors import Invalid, Unavailable

LOST = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # the server closed an idle connection
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    ConnectionError,
)


class DatabaseUnavailable(Unavailable):
    """The database does not answer; try again in a moment."""

    code = "database_unavailable"


class SchemaMissing(DatabaseUnavailable):
    """Headrace's tables are not in the database."""

    code = "schema_missing"


class DatabaseBusy(Unavailable):
    """The database took too long for this; try again in a moment."""

    code = "database_busy"


class RowsLocked(DatabaseBusy):
    """Another transaction has locked a row that this needs; try again when it has ended.

    ``task_ids`` and ``user_ids`` are the affected tasks and users, as far as known.
    """

    code = "rows_locked"

    def __init__(
        self,
        message: str | None = None,
        *,
        task_ids: Iterable[str] = (),
        user_ids: Iterable[str] = (),
        sessions: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        super().__init__(message or _locked_by(sessions), retry_after=timedelta(seconds=1))
        self.task_ids = frozenset(task_ids)
        self.user_ids = frozenset(user_ids)

    @classmethod
    def of(cls, exc: asyncpg.PostgresError) -> Self:
        """The error for the detail that headrace.settle_holds and similar functions raise."""
        facts = orjson.loads(exc.detail) if exc.detail and exc.detail.startswith("{") else {}
        return cls(task_ids=facts.get("task_ids", ()), sessions=facts.get("sessions", ()))


def _locked_by(sessions: Sequence[Mapping[str, Any]]) -> str | None:
    """A message without details of the session, because users see it. ``headrace doctor`` shows them."""
    if not sessions:
        return None
    oldest = max(sessions, key=lambda each: each["age"] or 0)
    age = "" if oldest["age"] is None else f", open for {oldest['age']:.0f} s,"
    return (
        f"The transaction of another database session (pid {oldest['pid']}){age} has locked the units that this needs; "
        "try again when it has ended."
    )


class DatabaseRefused(Invalid):
    """The database refuses the connection."""

    code = "database_refused"


@contextmanager
def explained() -> Iterator[None]:
    """Translate exceptions of the driver; errors about data are not translated."""
    try:
        yield
    except LOST as exc:
        raise DatabaseUnavailable from exc
    except asyncpg.InsufficientResourcesError as exc:
        # Temporary: a full disk will be freed, so callers should retry the write.
        raise DatabaseUnavailable("The database is out of disk space or memory; try again in a moment.") from exc
    except asyncpg.LockNotAvailableError as exc:
        raise RowsLocked.of(exc) from exc
    except (asyncpg.QueryCanceledError, asyncpg.DeadlockDetectedError) as exc:
        raise DatabaseBusy from exc
    except (asyncpg.UndefinedTableError, asyncpg.InvalidSchemaNameError) as exc:
        if '"headrace' not in str(exc):  # another application's table
            raise
        # The schema was dropped to restore a dump: running processes wait for it and do not exit.
        raise SchemaMissing(
            f"The database lacks Headrace's tables ({exc}): its schema was dropped, or a restore is under way. Restore "
            "a backup with `headrace restore`, or make empty tables with `headrace migrate`."
        ) from exc
    except TimeoutError as exc:  # the driver's own timeout: the connection is dead, or the server hangs
        raise DatabaseBusy from exc
    except asyncpg.IntegrityConstraintViolationError as exc:
        # "Failing row contains (…)" quotes the whole row with personal data; it must not be logged.
        exc.detail = None
        raise


def refusal(url: str, place: str, named: str, exc: Exception) -> Exception:
    """An error that says what to correct; unknown exceptions are returned unchanged."""
    if isinstance(exc, ValueError | asyncpg.ClientConfigurationError):  # an InterfaceError too, so it comes first
        password = urlsplit(url).password
        if url.startswith("postgres") and not (password and password in str(exc)):
            return DatabaseRefused(f"{named} is not valid: {' '.join(str(exc).split())}")
        return DatabaseRefused(
            f"{named} is not a PostgreSQL address: it looks like postgresql://user:password@host:5432/database."
        )
    if isinstance(exc, asyncpg.ProtocolViolationError) and "startup parameter" in str(exc):
        return DatabaseRefused(
            f"{place} is a connection pooler that accepts no settings: set HEADRACE_DATABASE_POOLED=true."
        )
    if isinstance(exc, asyncpg.InvalidPasswordError | asyncpg.InvalidAuthorizationSpecificationError):
        return DatabaseRefused(f"PostgreSQL at {place} refuses the user or the password: check {named}.")
    if isinstance(exc, asyncpg.InvalidCatalogNameError):
        return DatabaseRefused(f"There is no such database at {place}: create it, or correct {named}.")
    if isinstance(exc, asyncpg.TooManyConnectionsError):
        return DatabaseUnavailable(f"PostgreSQL at {place} has no connection left: raise max_connections.")
    if isinstance(exc, (*LOST, OSError, TimeoutError, socket.gaierror)):
        return DatabaseUnavailable(f"PostgreSQL at {place} cannot be reached: start it, or correct {named}.")
    return exc
