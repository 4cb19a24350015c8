"""``headrace tasks``: look at tasks, cancel them, try them again."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Annotated, Any

import typer

from headrace.cli.operator import OperatorSession, as_operator
from headrace.cli.output import Json, out, print_json, print_table
from headrace.cli.people import user_id_of
from headrace.cli.words import one_of, stored_words
from headrace.errors import Conflict, NotFound
from headrace.tasks import service
from headrace.tasks.model import COMMON_STATUSES, Task, TaskStatus
from headrace.tasks.schemas import LogOut, TaskItemOut, TaskOut, WhyOut
from headrace.tasks.store.tasks import Filter, LogLine
from headrace.tasks.why import Explanation, explain

app = typer.Typer(help="Tasks: look at them, cancel them, try them again.", no_args_is_help=True)

TaskId = Annotated[str, typer.Argument(metavar="TASK_ID", help="The task's id: tsk_….")]
TaskIds = Annotated[list[str], typer.Argument(metavar="TASK_ID...", help="The tasks' ids: tsk_….")]

_PAGE = 200


@app.command("list")
def list_(
    status: Annotated[
        list[str] | None,
        one_of(
            offered=COMMON_STATUSES,
            also=list(TaskStatus),
            help="Only these; say it several times for several.",
        ),
    ] = None,
    type_: Annotated[str | None, typer.Option("--type", help="Only of this type.")] = None,
    queue: Annotated[str | None, typer.Option(help="Only from this queue.")] = None,
    user: Annotated[
        str | None, typer.Option(help="Only this user's, by username or id. Everybody's by default.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many at the most.")] = 20,
    json: Json = False,
) -> None:
    """List tasks, newest first."""

    async def act(session: OperatorSession) -> Sequence[Task]:
        owner = None if user is None else await user_id_of(session, user)
        statuses = stored_words(TaskStatus, status)
        return await _list(session, Filter(user_id=owner, statuses=statuses, task_type=type_, queue=queue), limit)

    found = as_operator("tasks list", act)
    if json:
        print_json([TaskItemOut.of(task).model_dump(mode="json") for task in found])
        return
    print_table(
        ("id", "status", "type", "queue", "attempt", "progress", "created"),
        [
            (
                task.id,
                task.status,
                task.task_type,
                task.queue,
                f"{task.attempt}/{task.max_attempts}",
                f"{task.progress} %",
                _time(task.created_at),
            )
            for task in found
        ],
    )


@app.command()
def show(task_id: TaskId, json: Json = False) -> None:
    """Everything about one task."""

    async def act(session: OperatorSession) -> Task:
        async with session.db.transaction() as tx:
            return await service.get_task(tx, session.caller, task_id)

    print_task(as_operator("tasks show", act), json=json)


@app.command()
def cancel(task_ids: TaskIds, json: Json = False) -> None:
    """Cancel tasks: one that waits is over at once, one that runs is told to stop."""
    _change("tasks cancel", service.cancel_task, task_ids, json=json)


@app.command()
def retry(task_ids: TaskIds, json: Json = False) -> None:
    """Run tasks again that failed or were canceled."""
    _change("tasks retry", service.retry_task, task_ids, json=json)


@app.command()
def logs(task_id: TaskId, json: Json = False) -> None:
    """How each attempt ended and what the handler wrote, oldest first."""
    lines = as_operator("tasks logs", lambda session: _logs(session, task_id))
    if json:
        print_json([LogOut.of(line).model_dump(mode="json") for line in lines])
        return
    for line in lines:
        out.print(f"[dim]{_time(line.created_at)}[/] [bold]{line.attempt}[/] {line.status:<11} ", end="")
        out.print(line.message or "", markup=False, soft_wrap=True)


@app.command()
def why(task_id: TaskId, json: Json = False) -> None:
    """Why a task is not running: the first reason is the one to look at first."""

    async def act(session: OperatorSession) -> Explanation:
        async with session.db.transaction() as tx:
            return await explain(tx, session.caller, task_id)

    explained = as_operator("tasks why", act)
    if json:
        print_json(WhyOut.of(explained).model_dump(mode="json"))
        return
    out.print(f"{explained.task.id} is {explained.task.status}", markup=False)
    for reason in explained.reasons:
        out.print(f"  {reason.text}", markup=False, soft_wrap=True)


# -- acting


async def _list(session: OperatorSession, wanted: Filter, limit: int) -> Sequence[Task]:
    found: list[Task] = []
    mark = None
    async with session.db.transaction() as tx:
        while len(found) < limit:
            page = await service.list_tasks(
                tx, session.caller, wanted, older_than=mark, limit=min(_PAGE, limit - len(found))
            )
            found += page.tasks
            if page.resume is None and len(page.tasks) < _PAGE:
                break
            mark = page.resume or (found[-1].created_at, found[-1].id)
    return found


async def _logs(session: OperatorSession, task_id: str) -> Sequence[LogLine]:
    lines: list[LogLine] = []
    async with session.db.transaction() as tx:
        while page := await service.list_logs(
            tx, session.caller, task_id, after=lines[-1].id if lines else 0, limit=_PAGE
        ):
            lines += page
    return lines


def _change(command: str, verb: Callable[..., Awaitable[Task]], task_ids: Sequence[str], *, json: bool) -> None:
    async def act(session: OperatorSession) -> list[Task]:
        changed = []
        async with session.db.transaction() as tx:  # all of them or none
            for task_id in task_ids:
                try:
                    changed.append(await verb(tx, session.tasks, session.caller, task_id))
                except (NotFound, Conflict) as exc:
                    others = " The others are as they were." if len(task_ids) > 1 else ""
                    raise type(exc)(f"{task_id}: {exc.message}{others}") from exc
        return changed

    changed = as_operator(command, act)
    if json:
        print_json([TaskOut.of(task).model_dump(mode="json") for task in changed])
        return
    for task in changed:
        stopping = task.cancel_requested_at is not None and not task.status.is_over
        out.print(f"{task.id} {'is told to stop' if stopping else f'is {task.status}'}", markup=False)


# -- showing


def print_task(task: Task, *, json: bool) -> None:
    if json:
        print_json(TaskOut.of(task).model_dump(mode="json"))
        return
    shown = TaskOut.of(task).model_dump()
    # Long texts last, each under its name.
    long = ("payload", "result", "error_message")
    short = [(name, value) for name, value in shown.items() if name not in long and value not in (None, {})]
    print_table(("field", "value"), [(name, _plain(value)) for name, value in short])
    for name in long:
        if shown[name] is not None:
            out.print(f"[bold]{name}[/]")
            if isinstance(shown[name], str):
                out.print(shown[name], markup=False, soft_wrap=True)
            else:
                print_json(shown[name])


def _plain(value: Any) -> Any:
    return _time(value) if isinstance(value, datetime) else value


def _time(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"
