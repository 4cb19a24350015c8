"""``headrace webhooks``: endpoints, deliveries, keys, and a receiver to try them with."""

import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from headrace.cli.calls import drop_none, list_all, path, perform, user_id_of
from headrace.cli.operator import OperatorSession, as_operator
from headrace.cli.output import Json, Yes, number_of, out, print_done, print_json, print_table
from headrace.cli.place import on_the_machine
from headrace.cli.requests import ActingFor, Api
from headrace.cli.words import one_of
from headrace.edge.vocabulary import words_of
from headrace.errors import Invalid
from headrace.webhooks.model import DeliveryStatus, EndpointStatus

app = typer.Typer(help="Webhooks: endpoints, deliveries, keys, and a receiver to try them with.", no_args_is_help=True)

Id = Annotated[str, typer.Argument(metavar="ENDPOINT", help="The endpoint's id: whe_….")]
DeliveryName = Annotated[str, typer.Argument(metavar="DELIVERY", help="The delivery's id: whd_….")]
User = Annotated[
    str | None,
    typer.Option(help="Whose, by username or id; the system's by default. Over an API they are your own."),
]
Events = Annotated[
    list[str], typer.Option("--event", help="A type of events: task.succeeded, task.* or *. Repeatable.")
]
Limit = Annotated[int, typer.Option(min=1, max=10_000, help="Maximum number of rows.")]

_ENDPOINTS = path("webhooks", "endpoints")
_DELIVERIES = path("webhooks", "deliveries")


def _ask(command: str, method: str, where: str, **more: Any) -> Any:
    return perform(f"webhooks {command}", lambda api: api.ask(method, where, **more))


@app.command("list")
def list_(
    status: Annotated[str | None, one_of(offered=[*EndpointStatus], help="Only those in this state.")] = None,
    limit: Limit = 100,
    json: Json = False,
) -> None:
    """Everybody's endpoints, newest first; over an API your own."""
    filters = drop_none(status=status)
    rows = perform("webhooks list", lambda api: list_all(api, _ENDPOINTS, filters, limit=limit))
    if json:
        print_json(rows)
        return
    print_table(
        ("id", "name", "status", "events", "url", "failing since", "owner"),
        [
            (
                each["id"],
                each["name"],
                each["status"] if each["status_reason"] is None else f"{each['status']} ({each['status_reason']})",
                " ".join(each["subscribed_events"]),
                each["url"],
                each["failing_since"],
                each["user_id"],
            )
            for each in rows
        ],
    )


@app.command()
def create(
    url: Annotated[str, typer.Argument(metavar="URL", help="Where events go: https://….")],
    event: Events = ["*"],  # noqa: B006 - typer copies it
    name: Annotated[str, typer.Option(help="What you call it.")] = "endpoint",
    user: User = None,
    every_user: Annotated[bool, typer.Option("--every-user", help="Everybody's events, not only the owner's.")] = False,
    ordered: Annotated[bool, typer.Option("--ordered", help="Events of one task one after the other.")] = False,
    secret: Annotated[str | None, typer.Option(help="Your own; otherwise one is made.")] = None,
    json: Json = False,
) -> None:
    """Make an endpoint and print its secret, which is shown only now."""
    body = drop_none(name=name, url=url, subscribed_events=event, ordered=ordered, every_user=every_user, secret=secret)

    async def act(api: Api) -> Any:
        return await api.ask("POST", _ENDPOINTS, body=body, acting_for=await _owner(api, user))

    made = perform("webhooks create", act)
    if json:
        print_json(made)
        return
    out.print(made["id"])
    out.print(made["secret"])


async def _owner(api: Api, user: str | None) -> ActingFor | None:
    if user is None:
        return None
    if api.is_remote:
        raise Invalid("Over an API endpoints are your own: leave --user out, or act on the database.")
    found = await api.ask("GET", path("admin", "users", str(await user_id_of(api, user))))
    return ActingFor(found["id"], "ADMIN")


@app.command()
def show(endpoint: Id, json: Json = False) -> None:
    """One endpoint."""
    _print_fields(_ask("show", "GET", path("webhooks", "endpoints", endpoint)), json=json)


@app.command()
def pause(endpoint: Id, json: Json = False) -> None:
    """Send nothing for now; events wait."""
    _print_fields(_ask("pause", "POST", path("webhooks", "endpoints", endpoint, "pause")), json=json)


@app.command()
def resume(endpoint: Id, json: Json = False) -> None:
    """Resume sending, the oldest first."""
    _print_fields(_ask("resume", "POST", path("webhooks", "endpoints", endpoint, "resume")), json=json)


@app.command()
def delete(endpoint: Id, yes: Yes = False, json: Json = False) -> None:
    """Remove an endpoint; what waits is not sent."""
    if not yes:
        typer.confirm(f"Delete the endpoint {endpoint}?", abort=True)
    _ask("delete", "DELETE", path("webhooks", "endpoints", endpoint))
    print_done({"id": endpoint, "deleted": True}, f"{endpoint} deleted", json=json)


@app.command("rotate-secret")
def rotate_secret(endpoint: Id, json: Json = False) -> None:
    """Give an endpoint a new secret and print it; the old one keeps signing for a day."""
    made = _ask("rotate-secret", "POST", path("webhooks", "endpoints", endpoint, "rotate-secret"))
    if json:
        print_json(made)
    else:
        out.print(made["secret"])


@app.command()
def stats(
    endpoint: Id,
    hours: Annotated[int, typer.Option(min=1, max=24 * 30, help="Over how many hours back from now.")] = 24,
    json: Json = False,
) -> None:
    """Attempts, success rate and latency of an endpoint."""
    where = path("webhooks", "endpoints", endpoint, "statistics")
    _print_fields(_ask("stats", "GET", where, params={"hours": hours}), json=json)


@app.command("test")
def send_test(endpoint: Id, json: Json = False) -> None:
    """Send a test event."""
    _print_delivery(_ask("test", "POST", path("webhooks", "endpoints", endpoint, "test")), json=json)


@app.command()
def deliveries(
    endpoint: Annotated[str | None, typer.Option(help="Only of this endpoint.")] = None,
    status: Annotated[str | None, one_of(offered=words_of(DeliveryStatus), help="Only these.")] = None,
    event: Annotated[str | None, typer.Option(help="Only of this event: evt_….")] = None,
    limit: Limit = 50,
    json: Json = False,
) -> None:
    """Attempts to deliver, newest first."""
    filters = drop_none(endpoint_id=endpoint, event_id=event, status=status)
    rows = perform("webhooks deliveries", lambda api: list_all(api, _DELIVERIES, filters, limit=limit))
    if json:
        print_json(rows)
        return
    shown = ("id", "endpoint_id", "event_id", "event_type", "attempt", "status", "response_status", "duration_ms")
    print_table(
        ("id", "endpoint", "event", "type", "attempt", "status", "answer", "ms", "error"),
        [tuple(each[name] for name in (*shown, "error")) for each in rows],
    )


@app.command()
def delivery(delivery_id: DeliveryName, json: Json = False) -> None:
    """Show one attempt, with request and response."""
    _print_fields(_ask("delivery", "GET", path("webhooks", "deliveries", delivery_id)), json=json)


@app.command()
def resend(delivery_id: DeliveryName, json: Json = False) -> None:
    """Send a delivery again, whatever came of it."""
    _print_delivery(_ask("resend", "POST", path("webhooks", "deliveries", delivery_id, "resend")), json=json)


@app.command("resend-failed")
def resend_failed(
    endpoint: Id,
    hours: Annotated[float, typer.Option(min=0.01, help="Failures of this many hours back from now.")] = 24,
    json: Json = False,
) -> None:
    """Send an endpoint's dead deliveries again."""
    since = (datetime.now(UTC) - timedelta(hours=hours)).isoformat()
    done = _ask("resend-failed", "POST", path("webhooks", "endpoints", endpoint, "resend"), body={"since": since})
    resent = int(done["resent"])
    if json:
        print_json({"resent": resent})
    else:
        out.print(f"{number_of(resent, 'delivery').replace('deliverys', 'deliveries')} queued")


@app.command("rotate-keys")
@on_the_machine
def rotate_keys(json: Json = False) -> None:
    """Encrypt all secrets under the present key (HEADRACE_WEBHOOK_KEY); then old keys can be taken out of the settings.

    Safe at any time, and again: what is under the present key already stays as it is.
    """
    from headrace.assembly.secret_key import secret_key
    from headrace.assembly.webhooks import keyring
    from headrace.webhooks import service

    async def act(session: OperatorSession) -> int:
        ring = keyring(session.settings, secret_key(session.settings))
        last: str | None = ""
        changed = 0
        while last is not None:
            async with session.db.transaction() as tx:
                last, batch = await service.reseal_after(tx, ring, session.caller.who, last)
                changed += batch
        return changed

    changed = as_operator("webhooks rotate-keys", act)
    if json:
        print_json({"resealed": changed})
    else:
        out.print(f"{number_of(changed, 'endpoint')} encrypted under the present key")


@app.command()
@on_the_machine
def listen(
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port on 127.0.0.1; 0 for any free one.")] = 9000,
    secret_file: Annotated[
        Path | None,
        typer.Option(
            help="A file with the endpoint's secret (whsec_…), or - for standard input: signatures are checked with it."
        ),
    ] = None,
    status: Annotated[int, typer.Option(min=200, max=599, help="What to answer with.")] = 204,
    json: Json = False,
) -> None:
    """Receive webhooks on this machine, check their signatures, and print them: for people who build receivers."""
    from headrace.cli import receiver  # the others do not need a web server

    receiver.listen(port, _secret_in(secret_file), status=status, json=json)


def _secret_in(file: Path | None) -> str | None:
    """Never on the command line, where everybody on the machine can read it."""
    if file is None:
        return None
    try:
        return (sys.stdin.readline() if str(file) == "-" else file.read_text()).partition("\n")[0].strip()
    except (OSError, UnicodeDecodeError) as exc:
        raise typer.BadParameter(f"{file} cannot be read: {exc}", param_hint="--secret-file") from exc


def _print_fields(fields: Mapping[str, Any], *, json: bool) -> None:
    if json:
        print_json(fields)
    else:
        print_table(("", ""), [(name.replace("_", " "), value) for name, value in fields.items()])


def _print_delivery(delivery: Mapping[str, Any], *, json: bool) -> None:
    if json:
        print_json(delivery)
    else:
        out.print(delivery["id"])
