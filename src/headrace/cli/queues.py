"""``headrace queues`` and ``headrace workers``: what waits where, who runs it, and which queues do not run."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from headrace.cli.calls import drop_none, path, perform
from headrace.cli.output import Json, out, print_json, print_table
from headrace.cli.showing import when
from headrace.errors import Invalid

app = typer.Typer(help="Queues: list, pause, resume and limit them.", no_args_is_help=True)

QueueName = Annotated[str, typer.Argument(metavar="QUEUE", help="The queue's name.")]
Create = Annotated[bool, typer.Option("--create", help="Also a queue that nothing knows yet.")]


@app.command("list")
def list_(json: Json = False) -> None:
    """List the queues and their contents."""
    queues = perform("queues list", lambda api: api.list(path("queues"), limit=None))
    if json:
        print_json(queues)
        return
    print_table(
        ("queue", "waiting", "delayed", "running", "limit", "oldest", ""),
        [
            (
                queue["name"],
                f"{queue['waiting']:,}{'' if queue['exact'] else '+'}",
                f"{queue['delayed']:,}{'' if queue['exact'] else '+'}",
                f"{queue['running']:,}",
                queue["max_running"],
                None if queue["oldest_waiting_seconds"] is None else f"{queue['oldest_waiting_seconds']:,.1f} s",
                f"paused since {when(queue['paused_at'])}" if queue["paused_at"] else "",
            )
            for queue in queues
        ],
    )


@app.command()
def pause(queue: QueueName, create: Create = False, json: Json = False) -> None:
    """Start nothing more from a queue; running tasks continue."""
    _change("pause", "POST", queue, f"{queue} is paused", create=create, json=json)


@app.command()
def resume(queue: QueueName, json: Json = False) -> None:
    """Start tasks from a queue again."""
    _change("resume", "POST", queue, f"{queue} runs", json=json)


@app.command()
def limit(
    queue: QueueName,
    most: Annotated[int | None, typer.Argument(metavar="MOST", min=1, help="How many may run at once.")] = None,
    none: Annotated[bool, typer.Option("--none", help="Any number.")] = False,
    create: Create = False,
    json: Json = False,
) -> None:
    """Limit how many of a queue's tasks run at once, over all machines; running tasks are not stopped."""
    if (most is None) != none:
        raise Invalid("Name the maximum number of running tasks, or --none for no limit.")
    message = f"{queue} runs any number at once" if most is None else f"{queue} runs at most {most} at once"
    _change("limit", "PUT", queue, message, body={"max_running": most}, create=create, json=json)


def _change(
    verb: str, method: str, queue: str, message: str, *, body: Any = None, create: bool = False, json: bool
) -> None:
    filters = drop_none(create="true" if create else None)
    rules = perform(
        f"queues {verb}", lambda api: api.ask(method, path("queues", queue, verb), params=filters, body=body)
    )
    if json:
        print_json(rules)
    else:
        out.print(message)


def workers(json: Json = False) -> None:
    """Worker processes that have not ended."""
    rows = perform("workers", lambda api: api.list(path("workers"), limit=None))
    if json:
        print_json(rows)
        return
    print_table(
        ("id", "host", "process", "queues", "running", "done", "last heard of", ""),
        [
            (
                worker["id"],
                worker["host"],
                worker["pid"],
                "all" if worker["queues"] is None else ", ".join(worker["queues"]),
                _slots(worker),
                f"{worker['finished']:,}",
                f"{worker['silent_seconds']:.1f} s ago",
                "stopping" if worker["stopping_at"] else "" if worker["alive"] else "silent: its tasks go to others",
            )
            for worker in rows
        ],
    )


def _slots(worker: Mapping[str, Any]) -> str:
    """Running of slots, by isolation where there is more than one kind."""
    kinds = worker["slots"]
    if len(kinds) < 2:
        return f"{worker['running']}/{worker['concurrency']}"
    return ", ".join(f"{kind} {each['running']}/{each['slots']}" for kind, each in sorted(kinds.items()))
