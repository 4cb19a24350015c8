"""``headrace submit``: submit one task and, if wanted, wait for it."""

import asyncio
import sys
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from time import monotonic
from typing import Annotated, Any

import orjson
import typer
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from headrace.cli.operator import OperatorSession, as_operator
from headrace.cli.output import Json, err, out, print_json, say
from headrace.cli.people import user_id_of
from headrace.cli.tasks import print_task
from headrace.cli.times import instant
from headrace.cli.worker import pairs
from headrace.errors import Invalid
from headrace.tasks import service
from headrace.tasks.model import LONGEST_TIMEOUT, Task, TaskSpec, TaskStatus
from headrace.tasks.why import Reason, explain

_LOOK_EVERY_S = 0.1
# A task that waits for this long has a reason, which is worth telling.
_ASK_WHY_AFTER_S = 2.0


def submit(
    task_type: Annotated[str, typer.Argument(metavar="TYPE", help="The task type, as a worker has registered it.")],
    payload: Annotated[
        str, typer.Option(help="The payload as JSON; @file reads it from a file, - from standard input.")
    ] = "{}",
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until it is over and print the result; exits with 1 if it failed.")
    ] = False,
    title: Annotated[str | None, typer.Option(help="What people see; the type by default.")] = None,
    queue: Annotated[str | None, typer.Option(help="Another queue than the type's.")] = None,
    priority: Annotated[
        int | None, typer.Option(help="Another priority than the type's; higher is taken first.")
    ] = None,
    run_at: Annotated[str | None, typer.Option(help="Not before this time: 2026-03-01T08:00:00Z.")] = None,
    max_attempts: Annotated[int | None, typer.Option(help="How often it is tried at the most.")] = None,
    timeout: Annotated[
        float | None,
        typer.Option(min=0, max=LONGEST_TIMEOUT.total_seconds(), help="Seconds that one attempt may take."),
    ] = None,
    labels: Annotated[
        list[str] | None, typer.Option(help="Only a worker with these takes it, as key=value. Repeatable.")
    ] = None,
    user: Annotated[
        str | None, typer.Option(help="Whose task it is, and whose quota pays for it: a username, or an id.")
    ] = None,
    key: Annotated[str | None, typer.Option(help="An idempotency key: submitted once, however often you try.")] = None,
    json: Json = False,
) -> None:
    """Submit a task and print its id."""
    spec = TaskSpec(
        type=task_type,
        payload=read_payload(payload),
        title=title,
        queue=queue,
        priority=priority,
        run_at=None if run_at is None else instant(run_at, "--run-at"),
        max_attempts=max_attempts,
        timeout=None if timeout is None else timedelta(seconds=timeout),
        labels=pairs(labels),
        idempotency_key=key,
    )
    task = as_operator("submit", lambda session: _submit(session, spec, user=user, wait=wait))
    if not wait:
        _print_submitted(task, json=json)
        return
    if json:
        print_task(task, json=True)
    elif task.status is TaskStatus.SUCCEEDED:
        print_json(task.result)
    else:
        say(f"{task.id} is {task.status}: {task.error_message or 'no reason given'}")
    if task.status is not TaskStatus.SUCCEEDED:
        raise typer.Exit(1)


async def _submit(session: OperatorSession, spec: TaskSpec, *, user: str | None, wait: bool) -> Task:
    owner = None if user is None else await user_id_of(session, user)
    async with session.db.transaction() as tx:
        task = await service.submit_task(tx, session.tasks, session.caller, spec, user_id=owner)
    if not wait:
        return task
    say(f"submitted {task.id}")
    try:
        return await _wait(session, task)
    except asyncio.CancelledError:
        say(f"the task goes on; `headrace tasks show {task.id}` tells what became of it")
        raise


async def _wait(session: OperatorSession, task: Task) -> Task:
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:
        shown = bar.add_task(task.task_type, total=100)
        asked_at = monotonic()
        while True:
            async with session.db.transaction() as tx:
                task = await service.get_task(tx, session.caller, task.id)
                waits = task.status is TaskStatus.QUEUED and monotonic() - asked_at > _ASK_WHY_AFTER_S
                reasons = (await explain(tx, session.caller, task.id)).reasons if waits else ()
            if task.status.is_over:
                return task
            if waits:
                asked_at = monotonic()
            if waits or task.status is not TaskStatus.QUEUED:
                bar.update(shown, completed=task.progress, description=_describe(task, reasons))
            await asyncio.sleep(_LOOK_EVERY_S)


def _describe(task: Task, reasons: Sequence[Reason]) -> str:
    if reasons:
        return f"waiting: {reasons[0].text}"
    return task.current_step or task.task_type


def _print_submitted(task: Task, *, json: bool) -> None:
    if json:
        print_task(task, json=True)
    else:
        out.print(task.id, markup=False)


def read_payload(text: str, option: str = "--payload") -> Any:
    """JSON from the command line, from a file (``@name``) or from standard input (``-``)."""
    source, where = text, option
    if text == "-":
        source, where = sys.stdin.read(), "standard input"
    elif text.startswith("@"):
        where = text[1:]
        try:
            source = Path(where).read_text()
        except (OSError, UnicodeDecodeError) as exc:
            why = exc.strerror if isinstance(exc, OSError) else exc
            raise Invalid(f"{where} cannot be read: {why}.") from exc
    try:
        return orjson.loads(source)
    except orjson.JSONDecodeError as exc:
        raise Invalid(f"What {where} holds is not JSON: {exc}.") from exc
