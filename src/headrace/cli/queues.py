"""``headrace queues`` and ``headrace workers``: what waits where, who runs it, and which queues do not run."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Annotated

import typer

from headrace.cli.operator import OperatorSession, as_operator
from headrace.cli.output import Json, out, print_json, print_table
from headrace.tasks.queues import Queue, list_queues, list_workers, pause_queue, resume_queue
from headrace.tasks.schemas import QueueOut, QueueRulesOut, WorkerOut
from headrace.tasks.store.queues import QueueRules
from headrace.tasks.store.workers import SeenWorker

app = typer.Typer(help="Queues: what is in them; pause and resume them.", no_args_is_help=True)

QueueName = Annotated[str, typer.Argument(metavar="QUEUE", help="The queue's name.")]


@app.command("list")
def list_(json: Json = False) -> None:
    """Every queue, and what is in it."""

    async def act(session: OperatorSession) -> Sequence[Queue]:
        async with session.db.transaction(readonly=True) as tx:
            return await list_queues(tx)

    queues = [QueueOut.counted(queue) for queue in as_operator("queues list", act)]
    if json:
        print_json([queue.model_dump(mode="json") for queue in queues])
        return
    print_table(
        ("queue", "waiting", "delayed", "running", "limit", "oldest", ""),
        [
            (
                queue.name,
                f"{queue.waiting:,}{'' if queue.exact else '+'}",
                f"{queue.delayed:,}{'' if queue.exact else '+'}",
                f"{queue.running:,}",
                queue.max_running,
                None if queue.oldest_waiting_seconds is None else f"{queue.oldest_waiting_seconds:,.1f} s",
                f"paused since {queue.paused_at:%Y-%m-%d %H:%M:%S} UTC" if queue.paused_at else "",
            )
            for queue in queues
        ],
    )


@app.command()
def pause(
    queue: QueueName,
    create: Annotated[bool, typer.Option("--create", help="Also a queue that nothing knows yet.")] = False,
    json: Json = False,
) -> None:
    """Start nothing more from a queue; what runs goes on."""
    verb = partial(pause_queue, create=create)
    _change("queues pause", verb, queue, f"{queue} is paused", json=json)


@app.command()
def resume(queue: QueueName, json: Json = False) -> None:
    """Start tasks from a queue again."""
    _change("queues resume", resume_queue, queue, f"{queue} runs", json=json)


def _change(command: str, verb: Callable[..., Awaitable[QueueRules]], name: str, said: str, *, json: bool) -> None:
    async def act(session: OperatorSession) -> QueueRules:
        async with session.db.transaction() as tx:
            return await verb(tx, session.caller, name)

    rules = as_operator(command, act)
    if json:
        print_json(QueueRulesOut.of(rules).model_dump(mode="json"))
    else:
        out.print(said, markup=False)


def workers(json: Json = False) -> None:
    """Worker processes that have not ended."""

    async def act(session: OperatorSession) -> Sequence[SeenWorker]:
        async with session.db.transaction(readonly=True) as tx:
            return await list_workers(tx)

    found = as_operator("workers", act)
    if json:
        print_json([WorkerOut.of(worker).model_dump(mode="json") for worker in found])
        return
    print_table(
        ("id", "host", "process", "queues", "running", "done", "last heard of", ""),
        [
            (
                worker.id,
                worker.host,
                worker.pid,
                "all" if worker.queues is None else ", ".join(worker.queues),
                f"{worker.running}/{worker.concurrency}",
                f"{worker.finished:,}",
                f"{worker.silent_for.total_seconds():.1f} s ago",
                "stopping" if worker.stopping_at else "" if worker.alive else "silent: its tasks go to others",
            )
            for worker in found
        ],
    )
