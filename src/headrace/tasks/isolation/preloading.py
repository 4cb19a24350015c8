"""What a handler needs before its first task: loaded with it, outside of its tasks' time and memory."""

from collections.abc import Callable
from typing import Any, TypeVar

HandlerT = TypeVar("HandlerT", bound=Callable[..., Any])
_NAME = "__headrace_preload__"


def preloads(load: Callable[[], object]) -> Callable[[HandlerT], HandlerT]:
    """Have ``load`` called in each child process that imports the handler; never in the worker, which imports it, too.

    For libraries that take long or much memory to load: the limits of a task are counted from when it is done.
    """

    def mark(handler: HandlerT) -> HandlerT:
        setattr(handler, _NAME, load)
        return handler

    return mark


def preload(handler: Callable[..., Any]) -> None:
    """Do it, if the handler wants it."""
    load = getattr(handler, _NAME, None)
    if load is not None:
        load()
