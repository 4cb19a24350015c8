"""How a handler outside the loop can end, beside its result and the exceptions that it raises on purpose.

TaskCanceled            it stopped because it was asked to
└── Killed              it did not stop, and was killed when its grace was over
HeadraceError
├── HandlerFailed       it raised in its child process
├── BadResult           what it gave back is not JSON, or too large (headrace.tasks.errors)
├── Crashed             its process died
├── ReportFailed        inside a handler: the worker could not write what it reported
└── ProgramBroken       no child can be started, or the handler's module cannot be imported there (Unavailable)

``Fatal``, ``Snooze``, ``LeaseLost`` and ``PayloadInvalid`` come out of a child as themselves.
"""

from datetime import timedelta
from enum import StrEnum
from typing import ClassVar

from headrace.errors import HeadraceError, Unavailable
from headrace.tasks.errors import TaskCanceled
from headrace.tasks.model import ErrorCode


class Killed(TaskCanceled):
    """It did not stop when it was asked to, and was killed; none of its processes runs any more."""


class HandlerFailed(HeadraceError):
    """A handler raised where its exception itself cannot be brought over; this carries what people need of it."""

    code = "handler_failed"
    error_code: ClassVar[ErrorCode] = ErrorCode.ERROR

    def __init__(self, type_name: str, message: str, traceback: str) -> None:
        self.type_name = type_name
        self.traceback = traceback  # ends with the type and the message, as Python prints it
        super().__init__(f"{type_name}: {message}" if message else type_name)


class CrashCause(StrEnum):
    """What a process died of."""

    TIME = "time"  # it ran, or computed, longer than it may
    MEMORY = "memory"
    ITSELF = "itself"  # a fault of its own, or killed from outside


class Crashed(HeadraceError):
    """The process of the handler died."""

    code = "crashed"
    error_code: ClassVar[ErrorCode] = ErrorCode.CRASHED

    def __init__(self, message: str, *, cause: CrashCause = CrashCause.ITSELF) -> None:
        super().__init__(message)
        self.cause = cause


class ReportFailed(HeadraceError):
    """What the handler reported could not be written."""

    code = "report_failed"


class ProgramBroken(Unavailable):
    """No child process can be started, or the module with the handler cannot be imported in one.

    ``retry_after`` says when the next try is made; until then every run gets this at once.
    """

    code = "program_broken"
    error_code: ClassVar[ErrorCode] = ErrorCode.CRASHED

    def __init__(self, message: str, *, retry_after: timedelta | None = None) -> None:
        super().__init__(message, retry_after=retry_after)
