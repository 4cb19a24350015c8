"""How a handler that is not async learns that it should stop."""

from typing import Any

from headrace.tasks.errors import TaskCanceled


class StopOnce:
    """Raises ``TaskCanceled`` once, at the first report after the wish to stop.

    Once, as with a canceled coroutine: what a handler reports while it cleans up goes through. The end of a step is
    always written, else a canceled step would seem to run for ever.
    """

    def __init__(self, cancel: Any) -> None:
        self._cancel = cancel  # something with is_set()
        self._raised = False

    def check(self, verb: str) -> None:
        if verb != "end_step" and not self._raised and self._cancel.is_set():
            self._raised = True
            raise TaskCanceled
