"""Long tasks of every isolation, in a module of their own: a child process must be able to import them."""

import asyncio
import os
import signal
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from headrace.tasks.context import BlockingTaskContext, TaskContext
from tests.open_types import OpenRegistry

registry = OpenRegistry()
GRACE = timedelta(seconds=0.5)


def tell(payload: Any, word: str) -> None:
    """One line in the file that the test reads."""
    with Path(payload["told"]).open("a") as file:
        file.write(f"{word}\n")


@registry.task("async", grace=GRACE)
async def on_the_loop(context: TaskContext, payload: Any) -> None:
    tell(payload, "began")
    await asyncio.sleep(60)


@registry.task("thread", grace=GRACE)
def in_a_thread(context: BlockingTaskContext, payload: Any) -> None:
    tell(payload, "began")
    while True:
        time.sleep(0.01)
        if context.canceled:
            tell(payload, "saw the flag")
        context.check_canceled()


@registry.task("process", isolation="process", grace=GRACE)
def in_a_child(context: BlockingTaskContext, payload: Any) -> None:
    tell(payload, "began")
    while True:
        time.sleep(0.01)
        context.check_canceled()


@registry.task("deaf", isolation="process", grace=GRACE)
def in_a_child_that_will_not_hear(context: BlockingTaskContext, payload: Any) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    tell(payload, f"began {os.getpid()}")
    while True:
        time.sleep(0.01)


@registry.task("brief", isolation="process", grace=GRACE)
def in_a_child_for_a_while(context: BlockingTaskContext, payload: Any) -> None:
    tell(payload, "began")
    time.sleep(payload["seconds"])
