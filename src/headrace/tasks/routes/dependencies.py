"""What these routes are given."""

from typing import Annotated

from fastapi import Depends, Path, Request

from headrace.access import Caller, Scope, ScopeMissing
from headrace.edge.authorization import SignedIn, scoped
from headrace.tasks.live import Watch
from headrace.tasks.schemas import TASK_ID
from headrace.tasks.service import Tasks


async def _tasks(request: Request) -> Tasks:
    tasks = request.state.tasks
    assert isinstance(tasks, Tasks)
    return tasks


async def _watch(request: Request) -> Watch:
    watch = request.state.watch
    assert isinstance(watch, Watch)
    return watch


async def _may_submit(caller: SignedIn) -> Caller:
    """Which types it may submit is decided by type."""
    if not caller.may(Scope.TASKS_WRITE) and not caller.type_scopes:
        raise ScopeMissing(
            f"This API key was not given the scope {Scope.TASKS_WRITE}, nor one that names a type.",
            scope=Scope.TASKS_WRITE.value,
        )
    return caller


TasksDep = Annotated[Tasks, Depends(_tasks)]
Watching = Annotated[Watch, Depends(_watch)]
Reader = Annotated[Caller, Depends(scoped(Scope.TASKS_READ))]
Writer = Annotated[Caller, Depends(scoped(Scope.TASKS_WRITE))]
Submits = Annotated[Caller, Depends(_may_submit)]
TaskIdPath = Annotated[str, Path(max_length=128, examples=[TASK_ID])]
