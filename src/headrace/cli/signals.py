"""However this process is asked to end, it ends in order, and takes its children with it."""

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from headrace import logs
from headrace.cli.output import err

log = logs.get(__name__)


def stop_on_signals(
    *, at_once: Callable[[], object] | None = None, at_first: Callable[[], object] | None = None
) -> asyncio.Event:
    """An event that Ctrl-C and SIGTERM set. ``at_first`` may print what the process waits for. A second Ctrl-C calls
    ``at_once``, which waits for nothing; without it, it raises ``KeyboardInterrupt``."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def ask(which: signal.Signals) -> None:
        if stop.is_set() and which is signal.SIGINT and at_once is not None:
            err.show_cursor()
            at_once()
        if not stop.is_set() and at_first is not None:
            at_first()
        log.info("process.stopping", signal=which.name)
        stop.set()
        if at_once is None:
            loop.remove_signal_handler(signal.SIGINT)

    for which in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(which, ask, which)
    return stop


@contextmanager
def ending_in_order() -> Iterator[None]:
    """SIGTERM and SIGHUP raise ``SystemExit`` meanwhile, so that unfinished work is cleaned up."""
    ours = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, _end)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


def _end(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)
