"""Exceptions for refusals of the server, chosen by the problem's ``code`` (RFC 9457).

HeadraceError
├── NotFound ─────────── TaskNotFound, ScheduleNotFound, ExecutionNotFound
├── Invalid ──────────── PayloadInvalid, PayloadTooLarge, UnknownTaskType, TaskInvalid, IdempotencyKeyReused
├── Conflict ─────────── TaskOver, TaskNotOver, TaskChanged, LockHeld, LockLost
├── Denied ───────────── Unauthenticated, ScopeMissing, AdminOnly
├── Exhausted ────────── RateLimited, QuotaExhausted
└── Unavailable ──────── Unreachable

Each is also an ``ApiError``, except ``Unreachable``, which has no answer. A code without its own class raises the kind
of its status. ``error.code`` is always the server's.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from headrace import errors
from headrace.errors import HeadraceError


class ApiError(HeadraceError):
    """The server refused, or failed."""

    def __init__(self, problem: Mapping[str, Any], *, status: int, retry_after: timedelta | None = None) -> None:
        self.fields: dict[str, str] = {
            str(each.get("field")): str(each.get("message")) for each in problem.get("errors") or ()
        }
        sentences = [
            str(problem.get("detail") or f"The server answered {status}."),
            *map(": ".join, self.fields.items()),
        ]
        # The kinds have different constructors; their attributes are set here.
        HeadraceError.__init__(self, " ".join(sentences))
        self.details = dict(problem.get("details") or {})
        self.code = str(problem.get("code") or "error")  # type: ignore[misc]  # of the class elsewhere, the answer's here
        self.status = status
        self.retry_after = retry_after
        self.request_id: str | None = problem.get("request_id")


class _NotFound(ApiError, errors.NotFound): ...


class _Invalid(ApiError, errors.Invalid): ...


class _Conflict(ApiError, errors.Conflict): ...


class _Denied(ApiError, errors.Denied): ...


class _Exhausted(ApiError, errors.Exhausted): ...


class _Unavailable(ApiError, errors.Unavailable): ...


class TaskNotFound(_NotFound):
    """There is no such task, or it is not yours."""


class ScheduleNotFound(_NotFound):
    """There is no such schedule, or it is not yours."""


class ExecutionNotFound(_NotFound):
    """There is no such run, or it is not yours."""


class PayloadInvalid(_Invalid):
    """The payload is not valid for the task type."""


class PayloadTooLarge(_Invalid):
    """The payload exceeds the size limit."""


class UnknownTaskType(_Invalid):
    """No worker has ever registered this task type."""


class TaskInvalid(_Invalid):
    """An option of the task is not valid."""


class IdempotencyKeyReused(_Invalid):
    """This idempotency key was used for another request."""


class TaskOver(_Conflict):
    """The task has already ended."""


class TaskNotOver(_Conflict):
    """The task has not ended yet."""


class TaskChanged(_Conflict):
    """The task was changed meanwhile: read it again."""


class LockHeld(_Conflict):
    """Another holder has the lock."""


class LockLost(_Conflict):
    """The lock is no longer held: stop the guarded work."""


class Unauthenticated(_Denied, errors.Unauthenticated):
    """The API key is missing, wrong or revoked."""


class ScopeMissing(_Denied):
    """The API key does not have the required scope."""


class AdminOnly(_Denied):
    """Only an administrator may do this."""


class RateLimited(_Exhausted):
    """Too many requests."""


class QuotaExhausted(_Exhausted, errors.QuotaExhausted):
    """This costs more units than are left; ``details`` has ``needed``, ``left`` and ``renews_at``."""


class Unreachable(errors.Unavailable):
    """The server cannot be reached."""


_BY_CODE: Mapping[str, type[ApiError]] = {
    "task_not_found": TaskNotFound,
    "schedule_not_found": ScheduleNotFound,
    "execution_not_found": ExecutionNotFound,
    "payload_invalid": PayloadInvalid,
    "payload_too_large": PayloadTooLarge,
    "unknown_task_type": UnknownTaskType,
    "task_invalid": TaskInvalid,
    "idempotency_key_reused": IdempotencyKeyReused,
    "task_over": TaskOver,
    "task_not_over": TaskNotOver,
    "task_changed": TaskChanged,
    "precondition_failed": TaskChanged,
    "lock_held": LockHeld,
    "lock_lost": LockLost,
    "unauthenticated": Unauthenticated,
    "scope_missing": ScopeMissing,
    "admin_only": AdminOnly,
    "rate_limited": RateLimited,
    "quota_exhausted": QuotaExhausted,
}
_BY_STATUS: Mapping[int, type[ApiError]] = {
    401: Unauthenticated,
    402: QuotaExhausted,
    403: _Denied,
    404: _NotFound,
    409: _Conflict,
    412: _Conflict,
    429: _Exhausted,
    502: _Unavailable,
    503: _Unavailable,
    504: _Unavailable,
}


def error_of(status: int, problem: Mapping[str, Any], *, retry_after: timedelta | None = None) -> ApiError:
    """The exception for this answer."""
    fallback = _Invalid if 400 <= status < 500 else ApiError
    kind = _BY_CODE.get(str(problem.get("code"))) or _BY_STATUS.get(status, fallback)
    return kind(problem, status=status, retry_after=retry_after)
