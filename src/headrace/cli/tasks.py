"""``headrace tasks``: list, cancel, retry and delete tasks."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from headrace.cli.calls import drop_none, owner_of, path, perform
from headrace.cli.many import STATUSES, All, Detach, Queue, Status, Type, User, act_on_all, check_choice
from headrace.cli.output import Json, Yes, out, print_json, print_table
from headrace.cli.payloads import pairs
from headrace.cli.requests import Api
from headrace.cli.showing import print_fields, print_reasons, when
from headrace.cli.words import one_of
from headrace.errors import Conflict, NotFound

app = typer.Typer(help="Tasks: list, cancel, retry and delete them.", no_args_is_help=True)

TaskId = Annotated[str, typer.Argument(metavar="TASK_ID", help="The task's id: tsk_….")]
TaskIds = Annotated[list[str] | None, typer.Argument(metavar="TASK_ID...", help="The tasks' ids: tsk_….")]

# Of types whose steps are those of media: none comes with the product.
_STEPS = ("UPLOADED", "PREPROCESSING", "DETECTING", "INPAINTING", "PACKAGING")
OVER = STATUSES[2:]
_ALL = 1_000_000


@app.command("list")
def list_(
    status: Annotated[
        list[str] | None,
        one_of(offered=STATUSES, also=_STEPS, help="Only these; may be repeated."),
    ] = None,
    type_: Annotated[str | None, typer.Option("--type", help="Only of this type.")] = None,
    queue: Annotated[str | None, typer.Option(help="Only from this queue.")] = None,
    user: Annotated[
        str | None,
        typer.Option(
            help="Only this user's, by username or id. By default everybody's; over an API your own, and '*' for "
            "everybody's."
        ),
    ] = None,
    internal: Annotated[
        bool, typer.Option("--internal", help="Headrace's own tasks, too: their types begin with headrace.")
    ] = False,
    title: Annotated[str | None, typer.Option(help="Only with this in the title, in any case.")] = None,
    label: Annotated[list[str] | None, typer.Option(help="Only with this label: key=value. Repeatable.")] = None,
    idempotency_key: Annotated[str | None, typer.Option(help="Only the one that was submitted with this key.")] = None,
    error: Annotated[str | None, typer.Option(help="Only with this in the error's code or message.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Maximum number of tasks.")] = 20,
    json: Json = False,
) -> None:
    """List tasks, newest first."""
    labels = [f"{name}={value}" for name, value in pairs(label).items()] or None

    async def act(api: Api) -> Sequence[Any]:
        filters = drop_none(
            status=status or None,
            type=type_,
            queue=queue,
            **await owner_of(api, user),
            title=title,
            label=labels,
            key=idempotency_key,
            error=error,
        )
        if not internal and type_ is None:
            filters["internal"] = False
        return await api.list(path("tasks"), filters, limit=limit)

    rows = perform("tasks list", act)
    if json:
        print_json(rows)
        return
    print_table(
        ("id", "status", "type", "title", "queue", "attempt", "progress", "created", "error"),
        [
            (
                task["id"],
                task["status"],
                task["type"],
                task["title"] if task["title"] != task["type"] else None,
                task["queue"],
                attempts(task),
                f"{task['progress']} %",
                when(task["created_at"]),
                first_line(task["error_message"] or task["error_code"]),
            )
            for task in rows
        ],
    )


def first_line(text: str | None) -> str | None:
    return text.strip().partition("\n")[0] if text else None


def attempts(task: dict[str, Any]) -> str:
    """Which of its tries it is at. A snooze and a dead worker begin another attempt, but use no try up."""
    spent = task["retries"] + (task["attempt"] > 0 and task["status"] != "QUEUED")
    return f"{min(spent, task['max_attempts'])}/{task['max_attempts']}"


@app.command()
def show(task_id: TaskId, json: Json = False) -> None:
    """Everything about one task."""
    print_task(perform("tasks show", lambda api: api.ask("GET", path("tasks", task_id))), json=json)


@app.command()
def cancel(
    task_ids: TaskIds = None,
    all_: All = False,
    status: Status = None,
    type_: Type = None,
    queue: Queue = None,
    user: User = None,
    yes: Yes = False,
    detach: Detach = False,
    json: Json = False,
) -> None:
    """Cancel tasks, or all that match: a waiting one ends at once, a running one is asked to stop."""
    check_choice(task_ids, all_, any((status, type_, queue, user)))
    if all_:
        act_on_all("cancel", status=status, type_=type_, queue=queue, user=user, yes=yes, detach=detach, json=json)
    else:
        _change("cancel", task_ids or (), json=json)


@app.command()
def retry(
    task_ids: TaskIds = None,
    all_: All = False,
    status: Status = None,
    type_: Type = None,
    queue: Queue = None,
    user: User = None,
    yes: Yes = False,
    detach: Detach = False,
    json: Json = False,
) -> None:
    """Run tasks again that failed or were canceled, or all that match."""
    check_choice(task_ids, all_, any((status, type_, queue, user)))
    if all_:
        act_on_all("retry", status=status, type_=type_, queue=queue, user=user, yes=yes, detach=detach, json=json)
    else:
        _change("retry", task_ids or (), json=json)


@app.command()
def delete(
    task_ids: TaskIds = None,
    all_: All = False,
    status: Status = None,
    type_: Type = None,
    queue: Queue = None,
    user: User = None,
    yes: Yes = False,
    detach: Detach = False,
    json: Json = False,
) -> None:
    """Remove tasks that are over, or all that match, with their payloads, results and logs."""
    check_choice(task_ids, all_, any((status, type_, queue, user)))
    if all_:
        act_on_all("delete", status=status, type_=type_, queue=queue, user=user, yes=yes, detach=detach, json=json)
        return
    task_ids = task_ids or []
    if not yes:
        typer.confirm(f"Delete {', '.join(task_ids)} with payload, result and log?", abort=True)
    perform("tasks delete", lambda api: for_each(api, "DELETE", task_ids, lambda task_id: path("tasks", task_id)))
    if json:
        print_json([{"id": task_id, "deleted": True} for task_id in task_ids])
        return
    for task_id in task_ids:
        out.print(f"{task_id} is deleted")


@app.command()
def logs(task_id: TaskId, json: Json = False) -> None:
    """How each attempt ended and what the handler wrote, oldest first."""
    lines = perform("tasks logs", lambda api: api.list(path("tasks", task_id, "logs"), limit=_ALL))
    if json:
        print_json(lines)
        return
    for line in lines:
        out.print(
            f"[dim]{when(line['created_at'])}[/] [bold]{line['attempt']}[/] {line['status']:<11} ", end="", markup=True
        )
        out.print(line["message"] or "", soft_wrap=True)


@app.command()
def steps(
    task_id: TaskId,
    failed: Annotated[bool, typer.Option("--failed", help="Only those that failed.")] = False,
    json: Json = False,
) -> None:
    """The steps of every attempt, in the order in which they began."""
    filters = drop_none(failed=failed or None)
    rows = perform("tasks steps", lambda api: api.list(path("tasks", task_id, "steps"), filters, limit=_ALL))
    if json:
        print_json(rows)
        return
    print_table(
        ("attempt", "step", "status", "started", "ms"),
        [
            (each["attempt"], each["name"], each["status"], when(each["started_at"]), each["duration_ms"])
            for each in rows
        ],
    )


@app.command()
def types(json: Json = False) -> None:
    """Every kind of task that a worker has registered."""
    rows = perform("tasks types", lambda api: api.list(path("task-types"), limit=None))
    if json:
        print_json(rows)
        return
    print_table(
        ("type", "queue", "priority", "attempts", "limit", "description"),
        [
            (
                each["name"],
                each["queue"],
                each["priority"],
                each["max_attempts"],
                each["max_running"],
                each["description"],
            )
            for each in rows
        ],
    )


@app.command()
def why(task_id: TaskId, json: Json = False) -> None:
    """Show why a task is not running, the most important reason first."""
    explained = perform("tasks why", lambda api: api.ask("GET", path("tasks", task_id, "why")))
    if json:
        print_json(explained)
        return
    out.print(f"{explained['task_id']} is {explained['status']}")
    print_reasons(explained["reasons"])


def _change(verb: str, task_ids: Sequence[str], *, json: bool) -> None:
    changed = perform(
        f"tasks {verb}",
        lambda api: for_each(api, "POST", task_ids, lambda task_id: path("tasks", task_id, verb)),
    )
    if json:
        print_json(changed)
        return
    for task in changed:
        stopping = task["cancel_requested_at"] is not None and task["status"] not in OVER
        outcome = "is asked to stop" if stopping else f"is {task['status']}"
        out.print(f"{task['id']} {outcome}")


async def for_each(api: Api, method: str, ids: Sequence[str], where: Any) -> list[Any]:
    """Ask the same of several: on the database all or none, over an API one by one up to the first that is refused."""
    done: list[Any] = []
    async with api.together():
        for each in ids:
            try:
                done.append(await api.ask(method, where(each)))
            except (NotFound, Conflict) as exc:
                exc.message = f"{each}: {exc.message}{_others(api, ids, done)}"
                exc.args = (exc.message,)
                raise
    return done


def _others(api: Api, ids: Sequence[str], done: Sequence[Any]) -> str:
    if len(ids) == 1:
        return ""
    if not api.is_remote or not done:
        return " The others are as they were."
    return f" Those before it are done: {', '.join(ids[: len(done)])}."


def print_task(task: dict[str, Any], *, json: bool) -> None:
    if json:
        print_json(task)
    else:
        print_fields(task, last=("payload", "result", "error_message"))
