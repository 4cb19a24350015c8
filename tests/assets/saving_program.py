"""Task types that give their users files: ``python -m tests.assets.saving_program URL FILES`` runs a worker of them."""

import asyncio
import os
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

from headrace import BlockingTaskContext, Headrace, TaskContext, WorkerConfig
from tests.open_types import OpenRegistry

registry = OpenRegistry()
CONFIG = WorkerConfig(
    concurrency=4, lease=timedelta(seconds=1), poll_every=timedelta(milliseconds=50), shutdown_timeout=timedelta(0)
)


@registry.task("report", events=False, max_attempts=1)
async def report(context: TaskContext, payload: dict[str, Any]) -> str:
    """A type without followers: its end would be written by one statement."""
    file = context.scratch / "draft.csv"
    for text in payload.get("texts", ["a,b\n"]):
        file.write_text(text)
        await context.save_result(file, name=payload.get("name"), mime_type=payload.get("mime_type"))
    file.unlink()  # a copy was taken
    if payload.get("fails"):
        raise ValueError
    return "done"


@registry.task("wrong", max_attempts=3)
async def wrong(context: TaskContext, payload: str) -> None:
    pipe = context.scratch / "pipe"
    pipe.unlink(missing_ok=True)
    os.mkfifo(pipe)
    await context.save_result(payload.replace("SCRATCH", str(context.scratch)))


@registry.task("threaded")
def threaded(context: BlockingTaskContext, payload: Any) -> None:
    (context.scratch / "notes.txt").write_text("from a thread")
    context.save_result(context.scratch / "notes.txt")


@registry.task("confined", isolation="process", max_attempts=3)
def confined(context: BlockingTaskContext, payload: dict[str, str]) -> None:
    file = context.scratch / "notes.txt"
    if not payload:
        file.write_text("from a process")
    else:
        file.unlink(missing_ok=True)
        file.symlink_to(payload["link"])
    os.chdir(context.scratch)
    context.save_result("notes.txt")


@registry.task("killed", max_attempts=3)
async def killed(context: TaskContext, payload: str) -> int:
    file = context.scratch / "attempt.txt"
    file.write_text(f"attempt {context.attempt}")
    await context.save_result(file)
    if context.attempt == 1:
        Path(payload).write_text(str(os.getpid()))
        await asyncio.sleep(600)
    return context.attempt


async def main(url: str, files: str) -> None:
    async with Headrace(url, registry, files_url=files) as hr:
        await hr.run_worker(CONFIG)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
