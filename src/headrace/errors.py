"""Every error a caller can meet, in one tree.

HeadraceError
├── NotFound      there is no such thing, or it is not yours
├── Invalid       the request itself is wrong and will stay wrong
├── Conflict      right in itself, but not in the present state: read again, then decide
├── Denied        who you are does not allow it
│   └── Unauthenticated   nobody knows who you are
├── Exhausted     a limit is reached: later
│   └── QuotaExhausted    it costs more than is left: next period, or with a larger plan
└── Unavailable   something we depend on does not answer: try again

Packages derive their own errors from the kinds and give each a stable ``code``. The message is safe to show to
anyone; ``details`` carries typed facts for programs. ``operator_message`` may name what only operators may read, and
goes to the log and the operator's terminal. ``web`` maps kinds to HTTP statuses, ``cli`` to exit codes.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import ClassVar


class HeadraceError(Exception):
    """Something went wrong that Headrace foresaw."""

    code: ClassVar[str] = "error"

    def __init__(self, message: str | None = None, **details: object) -> None:
        self.message = message or (self.__doc__ or type(self).__name__).partition("\n")[0]
        self.details: Mapping[str, object] = details
        super().__init__(self.message)

    @property
    def operator_message(self) -> str:
        """The message with inner addresses, paths and reasons: for the log and the operator's terminal alone."""
        return self.message


def reason_of(exc: BaseException) -> str:
    """Why it failed, for the log."""
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

    A kind, and not an error of ``billing``: schedules and programs must tell it from a request that is wrong.
    """

    code = "quota_exhausted"


class Unavailable(HeadraceError):
    """A service that this needs does not answer."""

    code = "unavailable"

    def __init__(self, message: str | None = None, *, retry_after: timedelta | None = None, **details: object) -> None:
        super().__init__(message, **details)
        self.retry_after = retry_after
