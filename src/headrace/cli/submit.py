"""``headrace submit``: submit one task and, if wanted, wait for it."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from time import monotonic
from typing import Annotated, Any

import typer

from headrace.cli.calls import drop_none, path, perform, user_id_of
from headrace.cli.output import Json, err, out, print_json, say
from headrace.cli.payloads import pairs, read_payload
from headrace.cli.requests import Api
from headrace.cli.tasks import OVER, print_task
from headrace.cli.times import instant
from headrace.visible import make_visible

_POLL_INTERVAL_SECONDS = 0.1
_REMOTE_POLL_INTERVAL_SECONDS = 1.0
# A task that waits for this long has a reason, which is worth telling.
_ASK_WHY_AFTER_S = 2.0
_YEAR_S = 366 * 24 * 3600


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
    max_attempts: Annotated[int | None, typer.Option(help="Maximum number of attempts.")] = None,
    timeout: Annotated[int | None, typer.Option(min=1, max=_YEAR_S, help="Seconds that one attempt may take.")] = None,
    limit_key: Annotated[
        str | None, typer.Option(help="Tasks of the type with the same key share its limit per key.")
    ] = None,
    labels: Annotated[
        list[str] | None, typer.Option(help="Only a worker with these takes it, as key=value. Repeatable.")
    ] = None,
    user: Annotated[
        str | None, typer.Option(help="Whose task it is, and whose quota pays for it: a username, or an id.")
    ] = None,
    idempotency_key: Annotated[
        str | None, typer.Option(help="Whatever you like: submitted once with it, however often you try.")
    ] = None,
    json: Json = False,
) -> None:
    """Submit a task and print its id."""
    at = None if run_at is None else instant(run_at, "--run-at")
    if at is not None and at < datetime.now(UTC):
        say(f"{run_at} is in the past: it may start at once")
    body = drop_none(
        type=task_type,
        payload=read_payload(payload),
        title=title,
        queue=queue,
        priority=priority,
        run_at=None if at is None else at.isoformat(),
        max_attempts=max_attempts,
        timeout_seconds=timeout,
        limit_key=limit_key,
        labels=pairs(labels) or None,
    )
    task = perform("submit", lambda api: _submit(api, body, user=user, key=idempotency_key, wait=wait))
    if not wait:
        if json:
            print_task(task, json=True)
        else:
            out.print(task["id"])
        return
    succeeded = task["status"] == "SUCCEEDED"
    if json:
        print_task(task, json=True)
    elif succeeded:
        print_json(task["result"])
    else:
        say(f"{task['id']} is {task['status']}: {task['error_message'] or 'no reason given'}")
    if not succeeded:
        raise typer.Exit(1)


async def _submit(api: Api, body: dict[str, Any], *, user: str | None, key: str | None, wait: bool) -> dict[str, Any]:
    task: dict[str, Any] = await api.ask(
        "POST", path("tasks"), body={**body, **drop_none(user_id=await user_id_of(api, user))}, key=key
    )
    if not wait:
        return task
    say(f"submitted {task['id']}")
    try:
        return await _wait(api, task)
    except asyncio.CancelledError:
        say(f"the task continues; `headrace tasks show {task['id']}` shows its status")
        raise


async def _wait(api: Api, task: dict[str, Any]) -> dict[str, Any]:
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    where = path("tasks", task["id"])
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:
        shown = bar.add_task(make_visible(task["type"]), total=100)
        asked_at = monotonic()
        while True:
            task = await api.ask("GET", where)
            if task["status"] in OVER:
                return task
            waits = task["status"] == "QUEUED" and monotonic() - asked_at > _ASK_WHY_AFTER_S
            reasons = (await api.ask("GET", path("tasks", task["id"], "why")))["reasons"] if waits else ()
            if waits:
                asked_at = monotonic()
            if waits or task["status"] != "QUEUED":
                bar.update(shown, completed=task["progress"], description=make_visible(_describe(task, reasons)))
            await asyncio.sleep(_REMOTE_POLL_INTERVAL_SECONDS if api.is_remote else _POLL_INTERVAL_SECONDS)


def _describe(task: dict[str, Any], reasons: Sequence[dict[str, Any]]) -> str:
    if reasons:
        return f"waiting: {reasons[0]['text']}"
    return str(task["current_step"] or task["type"])
