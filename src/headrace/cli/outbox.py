"""``headrace outbox``: what waits to be told, what was given up, and trying it again."""

from collections.abc import Sequence
from typing import Annotated

import typer

from headrace.cli.operator import OperatorSession, as_operator
from headrace.cli.output import Json, out, print_json, print_table, say
from headrace.errors import Invalid
from headrace.operations.outbox import service
from headrace.operations.outbox.schemas import EventTypeOut, OutboxEventOut, OutboxOut
from headrace.outbox import administration
from headrace.outbox.administration import EventStatus, Filter, OutboxEvent, Overview
from headrace.outbox.catalogue import EVENT_TYPES

app = typer.Typer(help="Events: what waits, what was given up; try it again.", no_args_is_help=True)

EventId = Annotated[str, typer.Argument(metavar="EVENT", help="The event's id, evt_…")]
Type = Annotated[str | None, typer.Option("--type", help="Only events of this type.")]


@app.command()
def status(json: Json = False) -> None:
    """How many events wait, since when, and which relays are alive."""

    async def act(session: OperatorSession) -> Overview:
        async with session.db.transaction(readonly=True) as tx:
            return await administration.read_overview(tx)

    shown = OutboxOut.of(as_operator("outbox status", act))
    if json:
        print_json(shown.model_dump(mode="json"))
        return
    oldest = shown.oldest_waiting_seconds
    print_table(
        ("waiting", "oldest", "failed", "dead", "broker", "written", "relays"),
        [
            (
                f"{shown.waiting:,}",
                None if oldest is None else f"{oldest:,.1f} s",
                f"{shown.failed:,}",
                f"{shown.dead:,}",
                f"{shown.broker_waiting:,}",
                f"{shown.written:,}",
                f"{len(shown.relays):,}",
            )
        ],
    )


@app.command("list")
def list_(
    status: Annotated[EventStatus | None, typer.Option(help="Only in this state.")] = None,
    type: Type = None,  # noqa: A002
    aggregate: Annotated[str | None, typer.Option(help="Only of this task, subscription …, by id.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="At most so many.")] = 100,
    json: Json = False,
) -> None:
    """Events, newest first."""

    async def act(session: OperatorSession) -> Sequence[OutboxEvent]:
        async with session.db.transaction(readonly=True) as tx:
            return await administration.list_events(tx, Filter(status, type, aggregate), before=None, limit=limit)

    found = [OutboxEventOut.of(event) for event in as_operator("outbox list", act)]
    if json:
        print_json([event.model_dump(mode="json") for event in found])
        return
    print_table(
        ("event", "type", "of", "status", "tries", "created"),
        [
            (
                event.id,
                event.type,
                event.aggregate_id,
                event.status,
                event.tries,
                f"{event.created_at:%Y-%m-%d %H:%M:%S} UTC",
            )
            for event in found
        ],
    )


@app.command()
def show(event: EventId) -> None:
    """One event with its data, as JSON."""

    async def act(session: OperatorSession) -> OutboxEvent:
        async with session.db.transaction(readonly=True) as tx:
            return await service.get_event(tx, event)

    print_json(OutboxEventOut.of(as_operator("outbox show", act)).model_dump(mode="json"))


@app.command()
def revive(
    event: Annotated[str | None, typer.Argument(metavar="EVENT", help="The event's id, evt_…")] = None,
    all_: Annotated[bool, typer.Option("--all", help="Every event that was given up.")] = False,
    type: Type = None,  # noqa: A002
    json: Json = False,
) -> None:
    """Try again what was given up: one event, or all of them; audited."""
    if (event is None) != (all_ or type is not None):
        raise Invalid("Name an event, or say --all or --type TYPE.")

    async def act(session: OperatorSession) -> int:
        if event is None:
            return await service.revive_all(session.db, session.caller, event_type=type)
        async with session.db.transaction() as tx:
            await service.revive_event(tx, session.caller, event)
        return 1

    revived = as_operator("outbox revive", act)
    if json:
        print_json({"revived": revived})
    else:
        say(f"{revived:,} events are tried again")


@app.command()
def withdraw(
    consumer: Annotated[str, typer.Argument(metavar="CONSUMER", help="Its name, such as nats.")], json: Json = False
) -> None:
    """Write no more events for a consumer that is gone for good, such as a broker; audited. Unset it first."""

    async def act(session: OperatorSession) -> int:
        async with session.db.transaction() as tx:
            return await service.withdraw_consumer(tx, session.caller, consumer)

    forgotten = as_operator("outbox withdraw", act)
    if json:
        print_json({"consumer": consumer, "forgotten": forgotten})
    else:
        say(f"no events are written for {consumer} any more; {forgotten:,} messages that waited for it are forgotten")


@app.command()
def types(json: Json = False) -> None:
    """Every type of event there is."""
    if json:
        print_json([EventTypeOut.of(known).model_dump(mode="json") for known in EVENT_TYPES])
        return
    print_table(("type", "version", "when"), [(known.name, known.version, known.description) for known in EVENT_TYPES])
    out.print("--json prints their JSON Schemas.")
