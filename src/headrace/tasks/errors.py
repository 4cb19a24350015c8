"""Errors of tasks, and the exceptions by which a handler reports its own failure."""

from datetime import timedelta
from typing import ClassVar

from headrace.errors import Conflict, Denied, Exhausted, HeadraceError, Invalid, NotFound, Unavailable
from headrace.tasks.model import ErrorCode


class TaskNotFound(NotFound):
    """There is no such task."""

    code = "task_not_found"


class QueueNotFound(NotFound):
    """The queue is unknown: it never held a task, no type uses it, and it has no settings."""

    code = "queue_not_found"


class UnknownTaskType(Invalid):
    """No worker has ever registered this task type."""

    code = "unknown_task_type"


class FollowerMissing(Unavailable):
    """A task type is followed by something that this process does not have."""

    code = "follower_missing"


class PayloadInvalid(Invalid):
    """The payload does not fit the task type."""

    code = "payload_invalid"


class PayloadTooLarge(Invalid):
    """The payload is larger than tasks may carry: store the data elsewhere and send its address."""

    code = "payload_too_large"


class TypeDenied(Denied):
    """Tasks of this type may be submitted by administrators alone."""

    code = "task_type_denied"


class OverCap(Invalid):
    """A task asks for more than users may; ``details.cap`` says of what."""

    code = "over_cap"


class QueueUndeclared(Invalid):
    """The queue is not declared: leave it out, or name one of a type, a worker or an administrator."""

    code = "queue_undeclared"


class LabelsUndeclared(Invalid):
    """No worker has all of these labels: leave them out, or ask the operator to start a worker with them."""

    code = "labels_undeclared"


class TooManyLanes(Exhausted):
    """Tasks of this user wait under too many different limit keys, labels and priorities."""

    code = "too_many_lanes"


class TooManyOpenTasks(Exhausted):
    """Too many tasks of this user wait or run."""

    code = "too_many_open_tasks"


class TaskSpecInvalid(Invalid):
    """The task cannot be submitted like this."""

    code = "task_invalid"


class IdempotencyKeyReused(Invalid):
    """This key was used for another task: take a fresh one for each."""

    code = "task_key_reused"


class TaskOver(Conflict):
    """The task is over already."""

    code = "task_over"


class TaskNotOver(Conflict):
    """The task is not over yet: cancel it first."""

    code = "task_not_over"


class TaskChanged(Conflict):
    """The task was changed meanwhile: read it again."""

    code = "task_changed"


class LeaseLost(Conflict):
    """The task was taken from this worker, because it was silent for too long; its work on the task does not count."""

    code = "lease_lost"


class ExtensionRefused(Conflict):
    """This run may not take longer than it was given."""

    code = "extension_refused"


class UnitsRefused(Conflict):
    """A task cannot have used more units than are held for it."""

    code = "units_refused"


class WorkerGone(Conflict):
    """This worker was given up, because it was silent for too long."""

    code = "worker_gone"


class BadResult(Invalid):
    """What the handler gave back cannot be stored."""

    code = "bad_result"
    error_code: ClassVar[ErrorCode] = ErrorCode.BAD_RESULT


class ResultFileUnreadable(BadResult):
    """There is no readable file at the path that was given to save_result."""

    code = "result_file_unreadable"


class ResultFilesUnavailable(Unavailable):
    """This worker has no storage for result files: in a program of your own give Headrace(files_url=…)."""

    code = "result_files_unavailable"


# -- what a handler raises on purpose


class Fatal(HeadraceError):
    """The task failed and trying again would not help.

    ``error_code`` among the details is what ``tasks.error_code`` says then: a word of the type's own, of at most 16
    characters.

    >>> raise Fatal("The file is no picture.", error_code="NO_PICTURE")
    """

    code = "fatal"

    @property
    def error_code(self) -> str:
        """What ``tasks.error_code`` will say."""
        return str(self.details.get("error_code", ErrorCode.FATAL))[:16]


class Snooze(Exception):
    """Not now: run the task again after a while, without spending an attempt.

    >>> raise Snooze(timedelta(minutes=5))
    """

    def __init__(self, delay: timedelta) -> None:
        self.delay = delay
        super().__init__(f"run again in {delay}")


class TaskCanceled(BaseException):
    """The task was canceled.

    Not an ``Exception``: a handler that catches everything to carry on must not swallow it by accident.
    """
