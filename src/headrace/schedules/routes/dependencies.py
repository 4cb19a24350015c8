"""Dependencies of these routes."""

from typing import Annotated

from fastapi import Depends, Path, Query

from headrace.access import Caller, Scope
from headrace.edge.authorization import scoped
from headrace.schedules.schemas import EXECUTION_ID, SCHEDULE_ID
from headrace.schedules.service import EVERY_USER
from headrace.tasks.routes.dependencies import TasksDep

Reader = Annotated[Caller, Depends(scoped(Scope.SCHEDULES_READ))]
Writer = Annotated[Caller, Depends(scoped(Scope.SCHEDULES_WRITE))]
ScheduleIdPath = Annotated[str, Path(max_length=255, examples=[SCHEDULE_ID])]
ExecutionIdPath = Annotated[str, Path(max_length=255, examples=[EXECUTION_ID])]
Word = Annotated[str | None, Query(max_length=255)]
Owner = Annotated[
    str | None, Query(max_length=64, description="For administrators: the owner's id, or `*` for all users.")
]

__all__ = ["ExecutionIdPath", "Owner", "Reader", "ScheduleIdPath", "TasksDep", "Word", "Writer", "owner_of"]


def owner_of(caller: Caller, user_id: str | None) -> str | None:
    if user_id is None:
        return caller.user_id
    return None if user_id == EVERY_USER else user_id
