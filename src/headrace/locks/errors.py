"""What can go wrong with locks."""

from datetime import timedelta

from headrace.errors import Conflict, Exhausted, Invalid, NotFound


class LockInvalid(Invalid):
    """A lock cannot be asked for like this."""

    code = "lock_invalid"


class LockHeld(Conflict):
    """Somebody else holds this lock: try again later, or wait for it."""

    code = "lock_held"

    def __init__(self, message: str | None = None, *, retry_after: timedelta | None = None, **details: object) -> None:
        super().__init__(message, **details)
        self.retry_after = retry_after


class LockLost(Conflict):
    """This lock is not held any more: it was not renewed in time, or was taken away. Stop what it guarded."""

    code = "lock_lost"


class LockNotFound(NotFound):
    """Nobody holds this lock."""

    code = "lock_not_found"


class TooManyLocks(Exhausted):
    """You hold as many locks as one user may: release some of them first."""

    code = "too_many_locks"
