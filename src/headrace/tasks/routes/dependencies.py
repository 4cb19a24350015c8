"""What these routes are given."""

from collections.abc import Callable
from typing import Annotated

from fastapi import Depends, Path, Request

from headrace.access import Caller, Scope, ScopeMissing
from headrace.edge.authorization import SignedIn, scoped
from headrace.tasks.live import Watch
from headrace.tasks.schemas import TASK_ID
from headrace.tasks.service import Tasks

TasksOrMake = Tasks | Callable[[], Tasks]
"""What routes are given: the tasks, or a function that makes them when a route first needs them."""


async def _tasks(request: Request) -> Tasks:
    tasks = request.state.tasks
    if callable(tasks):
        tasks = tasks()
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
