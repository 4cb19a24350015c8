"""Watermark removal."""

from datetime import timedelta
from typing import Annotated, ClassVar

from pydantic import ByteSize, Field

from headrace.settings.kinds import Duration, Group, setting


class RemovalSettings(Group):
    title: ClassVar[str] = "Removal"

    removal_processes: Annotated[int | None, Field(ge=0, le=256)] = setting(
        "Files that one worker processes at the same time, each in its own process with two threads; 0 "
        "leaves them to others. Unset, half the cores; none where the libraries are not installed.",
        None,
    )
    removal_memory: ByteSize = setting("How much memory one step of one file may use.", "5GiB")
    removal_returns: Annotated[int, Field(ge=0, le=1000)] = setting(
        "How many results each user may return as not good in 30 days, and have the units back; 0 allows none. More "
        "makes it a way to free results.",
        3,
    )
    removal_step_timeout: Duration = setting("How long one step of one file may take.", timedelta(hours=1))
    removal_detection_timeout: Duration = setting(
        "The time limit of detection, which is free of charge.", timedelta(minutes=10)
    )
