"""Errors of locks."""

from datetime import timedelta

from headrace.errors import Conflict, Exhausted, Invalid, NotFound


class LockInvalid(Invalid):
    """A property of the lock request is not valid."""

    code = "lock_invalid"


class LockHeld(Conflict):
    """Another holder has this lock: try again later, or wait for it."""

    code = "lock_held"

    def __init__(self, message: str | None = None, *, retry_after: timedelta | None = None, **details: object) -> None:
        super().__init__(message, **details)
        self.retry_after = retry_after


class LockLost(Conflict):
    """This lock is no longer held: it was not renewed in time, or was force-released. Stop the guarded work."""

    code = "lock_lost"


class LockNotFound(NotFound):
    """This lock is not held."""

    code = "lock_not_found"


class TooManyLocks(Exhausted):
    """You hold the maximum number of locks: release some first."""

    code = "too_many_locks"
