"""The tree of all errors.

HeadraceError
├── NotFound      there is no such thing, or it is not yours
├── Invalid       the request is wrong, also if repeated
├── Conflict      valid, but not in the present state: read again, then decide
├── Denied        the caller lacks permission
│   └── Unauthenticated   the caller is unknown
├── Exhausted     a limit is reached: try later
│   └── QuotaExhausted    it costs more units than are left: next period, or a larger plan
└── Unavailable   a dependency does not answer: try again

Packages derive their own errors from these kinds and give each a stable ``code``. The message is safe for any reader;
``details`` has typed facts for programs. ``operator_message`` may contain internal names, for the log and the
operator's terminal. ``web`` maps kinds to HTTP statuses, ``cli`` to exit codes.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import ClassVar


class HeadraceError(Exception):
    """An expected error."""

    code: ClassVar[str] = "error"

    def __init__(self, message: str | None = None, **details: object) -> None:
        self.message = message or (self.__doc__ or type(self).__name__).partition("\n")[0]
        self.details: Mapping[str, object] = details
        super().__init__(self.message)

    @property
    def operator_message(self) -> str:
        """The message with internal addresses, paths and reasons: only for the log and the operator's terminal."""
        return self.message


def reason_of(exc: BaseException) -> str:
    """The reason of a failure, for the log."""
    return exc.operator_message if isinstance(exc, HeadraceError) else str(exc)


class NotFound(HeadraceError):
    """There is no such thing here."""

    code = "not_found"


class Invalid(HeadraceError):
    """The request is not valid."""

    code = "invalid"


class Conflict(HeadraceError):
    """The present state does not allow this."""

    code = "conflict"


class Denied(HeadraceError):
    """You may not do this."""

    code = "denied"


class Unauthenticated(Denied):
    """Log in or send an API key."""

    code = "unauthenticated"


class Exhausted(HeadraceError):
    """A limit is reached."""

    code = "exhausted"

    def __init__(self, message: str | None = None, *, retry_after: timedelta | None = None, **details: object) -> None:
        super().__init__(message, **details)
        self.retry_after = retry_after


class QuotaExhausted(Exhausted):
    """This costs more units than are left; ``details`` has ``needed``, ``left`` and ``renews_at``.

    A kind, not an error of ``billing``, because schedules and programs must distinguish it from an invalid request.
    """

    code = "quota_exhausted"


class Unavailable(HeadraceError):
    """A service that this needs does not answer."""

    code = "unavailable"

    def __init__(self, message: str | None = None, *, retry_after: timedelta | None = None, **details: object) -> None:
        super().__init__(message, **details)
        self.retry_after = retry_after
