"""Locks that outlive a transaction: for one thing at a time, over any number of machines.

>>> async with locks.hold(db, "reports/monthly", ttl=timedelta(seconds=30), purpose="closing June") as lock:
...     await write(report, fence=lock.fence)

``hold`` is for code with a database; ``acquire``, ``renew`` and ``release`` for what keeps the token itself.
"""

from typing import TYPE_CHECKING

from headrace import lazily

if TYPE_CHECKING:
    from headrace.locks.errors import LockHeld, LockInvalid, LockLost, LockNotFound
    from headrace.locks.holding import Held, hold
    from headrace.locks.model import Claim, Grant, Lock, LockState
    from headrace.locks.service import acquire_lock, force_release_lock, list_locks, release_lock, renew_lock
    from headrace.locks.store import Filter, expire
    from headrace.locks.taking import acquire, confirm, release, renew, when_free

__all__ = [
    "Claim",
    "Filter",
    "Grant",
    "Held",
    "Lock",
    "LockHeld",
    "LockInvalid",
    "LockLost",
    "LockNotFound",
    "LockState",
    "acquire",
    "acquire_lock",
    "confirm",
    "expire",
    "force_release_lock",
    "hold",
    "list_locks",
    "release",
    "release_lock",
    "renew",
    "renew_lock",
    "when_free",
]

__getattr__ = lazily.names_of(
    __name__,
    {
        "model": "Claim Grant Lock LockState",
        "errors": "LockHeld LockInvalid LockLost LockNotFound",
        "taking": "acquire confirm release renew when_free",
        "holding": "Held hold",
        "store": "Filter expire",
        "service": "acquire_lock force_release_lock list_locks release_lock renew_lock",
    },
)
