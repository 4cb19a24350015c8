"""``headrace outbox``: events that wait or were given up, and trying them again."""

from typing import Annotated

import typer

from headrace.cli.calls import drop_none, path, perform
from headrace.cli.operator import OperatorSession, as_operator
from headrace.cli.output import AlwaysJson, Json, out, print_json, print_table, say
from headrace.cli.place import on_the_machine
from headrace.cli.requests import Api
from headrace.cli.showing import when
from headrace.cli.words import one_of
from headrace.errors import Invalid
from headrace.outbox.administration import EventStatus

app = typer.Typer(help="Events: list waiting and dead ones; revive them.", no_args_is_help=True)

EventId = Annotated[str, typer.Argument(metavar="EVENT", help="The event's id, evt_…")]
Type = Annotated[str | None, typer.Option("--type", help="Only events of this type.")]


@app.command()
def status(json: Json = False) -> None:
    """How many events wait, since when, and which relays are alive."""
    result = perform("outbox status", lambda api: api.ask("GET", path("admin", "outbox")))
    if json:
        print_json(result)
        return
    oldest = result["oldest_waiting_seconds"]
    print_table(
        ("waiting", "oldest", "failed", "dead", "broker", "written", "relays"),
        [
            (
                f"{result['waiting']:,}",
                None if oldest is None else f"{oldest:,.1f} s",
                f"{result['failed']:,}",
                f"{result['dead']:,}",
                f"{result['broker_waiting']:,}",
                f"{result['written']:,}",
                f"{len(result['relays']):,}",
            )
        ],
    )


@app.command("list")
def list_(
    status: Annotated[str | None, one_of(offered=[*EventStatus], help="Only in this state.")] = None,
    type: Type = None,  # noqa: A002
    aggregate: Annotated[str | None, typer.Option(help="Only of this task, subscription …, by id.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Maximum number of events.")] = 100,
    json: Json = False,
) -> None:
    """Events, newest first."""
    filters = drop_none(status=status, type=type, aggregate_id=aggregate)
    rows = perform("outbox list", lambda api: api.list(path("admin", "outbox", "events"), filters, limit=limit))
    if json:
        print_json(rows)
        return
    print_table(
        ("event", "type", "of", "status", "tries", "created"),
        [
            (
                event["id"],
                event["type"],
                event["aggregate_id"],
                event["status"],
                event["tries"],
                when(event["created_at"]),
            )
            for event in rows
        ],
    )


@app.command()
def show(event: EventId, json: AlwaysJson = True) -> None:  # noqa: ARG001
    """One event with its data, as JSON."""
    print_json(perform("outbox show", lambda api: api.ask("GET", path("admin", "outbox", "events", event))))


@app.command()
def revive(
    event: Annotated[str | None, typer.Argument(metavar="EVENT", help="The event's id, evt_…")] = None,
    all_: Annotated[bool, typer.Option("--all", help="Every dead event.")] = False,
    type: Type = None,  # noqa: A002
    json: Json = False,
) -> None:
    """Revive dead events: one, or all of them; audited."""
    if (event is None) != (all_ or type is not None):
        raise Invalid("Name an event, or say --all or --type TYPE.")

    async def act(api: Api) -> int:
        if event is None:
            done = await api.ask("POST", path("admin", "outbox", "revive"), body=drop_none(type=type))
            return int(done["revived"])
        await api.ask("POST", path("admin", "outbox", "events", event, "revive"))
        return 1

    revived = perform("outbox revive", act)
    if json:
        print_json({"revived": revived})
    else:
        say(f"{revived:,} events are tried again")


@app.command()
@on_the_machine
def withdraw(
    consumer: Annotated[str, typer.Argument(metavar="CONSUMER", help="Its name, such as nats.")], json: Json = False
) -> None:
    """Write no more events for a consumer that is gone for good, such as a broker; audited. Unset it first."""
    from headrace.admin.outbox import service

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
    rows = perform("outbox types", lambda api: api.list(path("event-types"), limit=None), needs_database=False)
    if json:
        print_json(rows)
        return
    print_table(("type", "version", "when"), [(each["name"], each["version"], each["description"]) for each in rows])
    out.print("--json prints their JSON Schemas.")
