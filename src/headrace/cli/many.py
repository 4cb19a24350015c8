"""Acting on all tasks that match: a person is asked before anything is done, with the number and the filter shown."""

import asyncio
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from headrace.cli.calls import owner_of, path, perform
from headrace.cli.output import number_of, out, print_json
from headrace.cli.requests import EVERYBODY, Api
from headrace.cli.words import one_of
from headrace.errors import Conflict

STATUSES = ("QUEUED", "RUNNING", "SUCCEEDED", "FAILED", "CANCELED")
_OVER = STATUSES[2:]
_POLL_INTERVAL_SECONDS = 0.5

All = Annotated[
    bool,
    typer.Option("--all", help="All tasks that match, instead of some that are named; Headrace's own only by --type."),
]
Status = Annotated[list[str] | None, one_of(offered=STATUSES, help="With --all: only these; may be repeated.")]
Type = Annotated[str | None, typer.Option("--type", help="With --all: only of this type.")]
Queue = Annotated[str | None, typer.Option(help="With --all: only from this queue.")]
User = Annotated[
    str | None,
    typer.Option(help="With --all: only this user's, by username or id. By default everybody's; over an API your own."),
]
Detach = Annotated[bool, typer.Option("--detach", help="With --all: do not wait until it is done.")]


def check_choice(task_ids: list[str] | None, all_: bool, narrowed: bool) -> None:
    """Either some that are named, or all that match."""
    if all_ and task_ids:
        raise typer.BadParameter("name tasks, or say --all: not both")
    if narrowed and not all_:
        raise typer.BadParameter("--status, --type, --queue and --user go with --all")
    if not all_ and not task_ids:
        raise typer.BadParameter("name the tasks, or use --all with a filter")


def act_on_all(
    action: str,
    *,
    status: list[str] | None,
    type_: str | None,
    queue: str | None,
    user: str | None,
    yes: bool,
    detach: bool,
    json: bool,
) -> None:
    """Count, ask, have it done, and follow it."""
    command = f"tasks {action}"
    wanted: dict[str, Any] = {
        name: value for name, value in (("status", status), ("type", type_), ("queue", queue)) if value
    }
    if type_ is None:  # Headrace's own are meant only where they are named
        wanted["internal"] = False

    async def count(api: Api) -> tuple[Mapping[str, Any], str | None]:
        owner = await owner_of(api, user)
        result = await api.ask("GET", path("tasks", "count"), params={"action": action, **wanted, **owner})
        return result, owner.get("user_id")

    result, owner = perform(command, count)
    meant = _words(wanted, owner)
    if result["count"] == 0:
        message = f"There is nothing to {action}: no task matches ({meant})."
        print_json({"matched": 0}) if json else out.print(message)
        return
    if not yes:
        more = "" if result["exact"] else " and more"
        typer.confirm(f"{action.capitalize()} {number_of(result['count'], 'task')}{more} ({meant})?", abort=True)
    body = {"action": action, "filter": {**wanted, **({"owner": owner} if owner else {})}, "expected": result["count"]}

    async def begin(api: Api) -> Any:
        made = await api.ask("POST", path("tasks", "bulk"), body=body)
        return made if detach else await _followed(api, made["task_id"])

    made = perform(command, begin)
    if json:
        print_json(made)
    elif detach:
        out.print(f"{made['task_id']} does it: `headrace tasks show` follows it, `tasks cancel` stops it")
    else:
        out.print(f"{number_of(made['done'], 'task')} done, {made['skipped']:,} skipped, {made['refused']:,} refused")
        for refusal in made["refusals"]:
            out.print(f"{refusal['id']}: {refusal['message']}")


async def _followed(api: Api, task_id: str) -> Any:
    while True:
        task = await api.ask("GET", path("tasks", task_id))
        if task["status"] in _OVER:
            made = await api.ask("GET", path("tasks", "bulk", task_id))
            if task["status"] == "SUCCEEDED":
                return made
            why = f"{task['error_message']} " if task["error_message"] else ""
            done = number_of(made["done"], "task")
            raise Conflict(f"{task_id} is {task['status']}: {why}Its completed part stays: {done}.")
        await asyncio.sleep(_POLL_INTERVAL_SECONDS)


def _words(wanted: Mapping[str, Any], owner: str | None) -> str:
    """The filter, for the confirmation before a change to many."""
    shown = [
        f"{name} {', '.join(value) if isinstance(value, list) else value}"
        for name, value in wanted.items()
        if name != "internal"
    ]
    whose = "everybody's" if owner == EVERYBODY else f"those of {owner}" if owner else "your own"
    return "; ".join([whose, *shown])
