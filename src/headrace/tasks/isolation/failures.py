"""Failures to start or load a child: reported to all that need it, and retried after a growing pause."""

import time
from dataclasses import dataclass
from datetime import timedelta

from headrace import logs
from headrace.tasks.isolation.errors import ProgramBroken

log = logs.get(__name__)

_MAX_PAUSE_SECONDS = 60.0


@dataclass(slots=True)
class _Failure:
    message: str
    times: int
    retry_at: float


class Failures:
    """By what failed, such as the address of a handler."""

    def __init__(self) -> None:
        self._failures: dict[str, _Failure] = {}

    def note(self, what: str, message: str) -> None:
        """It failed again."""
        before = self._failures.get(what)
        if before is None or before.message != message:
            log.error("isolation.program_broken", what=what, error=message)
        times = 0 if before is None else before.times
        pause = min(_MAX_PAUSE_SECONDS, 2.0 ** min(times, 16))
        self._failures[what] = _Failure(message, times + 1, time.monotonic() + pause)

    def forget(self, what: str) -> None:
        self._failures.pop(what, None)

    def known(self, what: str) -> bool:
        return what in self._failures

    def pausing(self, what: str) -> bool:
        failure = self._failures.get(what)
        return failure is not None and time.monotonic() < failure.retry_at

    def error(self, what: str) -> ProgramBroken:
        failure = self._failures[what]
        pause = timedelta(seconds=max(0.0, failure.retry_at - time.monotonic()))
        return ProgramBroken(failure.message, retry_after=pause)

    def refuse(self, what: str) -> None:
        """Raise the failure until it is time to try again."""
        if self.pausing(what):
            raise self.error(what)
