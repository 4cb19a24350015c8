"""What these routes are given."""

from typing import Annotated

from fastapi import Depends, Path, Request

from headrace.access import Caller, Scope
from headrace.edge.authorization import scoped
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


TasksDep = Annotated[Tasks, Depends(_tasks)]
Watching = Annotated[Watch, Depends(_watch)]
Reader = Annotated[Caller, Depends(scoped(Scope.TASKS_READ))]
Writer = Annotated[Caller, Depends(scoped(Scope.TASKS_WRITE))]
TaskIdPath = Annotated[str, Path(max_length=128, examples=[TASK_ID])]
