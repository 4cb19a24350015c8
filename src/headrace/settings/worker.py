"""Workers, and size limits of tasks."""

from datetime import timedelta
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import ByteSize, Field

from headrace.settings.kinds import Duration, Group, setting


class WorkerSettings(Group):
    title: ClassVar[str] = "Worker"

    worker_concurrency: Annotated[int, Field(ge=1, le=10_000)] = setting(
        "Tasks with async handlers that one worker process runs at the same time.", 50
    )
    worker_threads: Annotated[int, Field(ge=1, le=10_000)] | None = setting(
        "Tasks with handlers in threads at the same time. Unset, as many as async ones.",
        None,
    )
    worker_processes: Annotated[int, Field(ge=1, le=1_000)] | None = setting(
        "Tasks with handlers in child processes at the same time. Unset, one for each processor.",
        None,
    )
    worker_lease: Annotated[Duration, Field(ge=timedelta(seconds=1))] = setting(
        "How long a worker may be silent before its tasks are given to others; it sends three heartbeats in this time. "
        "Shorter detects a dead worker sooner, longer tolerates a paused machine.",
        timedelta(seconds=15),
    )
    worker_poll_interval: Duration = setting(
        "How often an idle worker polls for tasks and cancellations, in case a notification was lost. One that listens "
        "polls for tasks five times less often.",
        timedelta(seconds=1),
    )
    worker_listen: bool = setting(
        "Whether workers listen for notifications. `false` polls only, for a database behind a transaction pooler.",
        True,
    )
    worker_shutdown_timeout: Duration = setting(
        "How long running tasks may go on when a worker is stopped; then they are interrupted, without losing an "
        "attempt, and another worker runs them again.",
        timedelta(seconds=30),
    )
    worker_scratch_dir: Path | None = setting(
        "The folder of intermediate files of tasks. Unset, `scratch` in the data folder.", None
    )
    task_payload_limit: ByteSize = setting(
        "The largest payload of a task, as JSON. For `headrace.submit` in SQL: `ALTER DATABASE … SET "
        "headrace.payload_limit = 262144`.",
        "256KiB",
    )
    task_result_limit: ByteSize = setting("The largest result of a task, as JSON.", "256KiB")
