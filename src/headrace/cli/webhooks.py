"""``headrace webhooks``: endpoints, deliveries, keys, and a receiver to try them with."""

import sys
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from headrace.access import Caller, Role
from headrace.assembly import webhooks as hooks
from headrace.cli.development import for_development
from headrace.cli.operator import OperatorSession, as_operator
from headrace.cli.output import Json, Yes, number_of, out, print_json, print_table
from headrace.cli.people import user_id_of
from headrace.cli.wiring import secret_key
from headrace.cli.words import one_of
from headrace.database import Tx
from headrace.edge.vocabulary import shown as shown_word
from headrace.edge.vocabulary import stored, words_of
from headrace.webhooks import resending, service
from headrace.webhooks.model import Delivery, DeliveryStatus, Endpoint, EndpointSpec, EndpointStatus
from headrace.webhooks.schemas import DeliveryItemOut, DeliveryOut, EndpointMadeOut, EndpointOut, EndpointStatisticsOut
from headrace.webhooks.store.deliveries import DeliveryFilter
from headrace.webhooks.store.endpoints import EndpointFilter

app = typer.Typer(help="Webhooks: endpoints, deliveries, keys, and a receiver to try them with.", no_args_is_help=True)

T = TypeVar("T")
Id = Annotated[str, typer.Argument(metavar="ENDPOINT", help="The endpoint's id: whe_….")]
DeliveryName = Annotated[str, typer.Argument(metavar="DELIVERY", help="The delivery's id: whd_….")]
User = Annotated[str | None, typer.Option(help="Whose, by username or id; the system's by default.")]
Events = Annotated[
    list[str], typer.Option("--event", help="A type of events: task.succeeded, task.* or *. Repeatable.")
]
Limit = Annotated[int, typer.Option(min=1, max=10_000, help="At most so many.")]


def _in_transaction(command: str, act: Callable[[Tx, OperatorSession], Awaitable[T]]) -> T:
    async def run(session: OperatorSession) -> T:
        async with session.db.transaction() as tx:
            return await act(tx, session)

    return as_operator(f"webhooks {command}", run)


def _hooks(session: OperatorSession) -> service.Webhooks:
    return hooks.webhooks(for_development(session.settings), secret_key(session.settings))


@app.command("list")
def list_(
    status: Annotated[
        EndpointStatus | None, typer.Option(case_sensitive=False, help="Only those in this state.")
    ] = None,
    limit: Limit = 100,
    json: Json = False,
) -> None:
    """Everybody's endpoints, newest first."""
    found = _in_transaction(
        "list",
        lambda tx, session: service.list_endpoints(tx, session.caller, EndpointFilter(None, status), limit=limit),
    )
    shown = [EndpointOut.of(each) for each in found]
    if json:
        print_json([each.model_dump(mode="json") for each in shown])
        return
    print_table(
        ("id", "name", "status", "events", "url", "failing since", "owner"),
        [
            (
                each.id,
                each.name,
                each.status if each.status_reason is None else f"{each.status} ({each.status_reason})",
                " ".join(each.subscribed_events),
                each.url,
                each.failing_since,
                each.user_id,
            )
            for each in shown
        ],
    )


@app.command()
def create(
    url: Annotated[str, typer.Argument(help="Where events go: https://….")],
    event: Events = ["*"],  # noqa: B006 - typer copies it
    name: Annotated[str, typer.Option(help="What you call it.")] = "endpoint",
    user: User = None,
    every_user: Annotated[bool, typer.Option("--every-user", help="Everybody's events, not only the owner's.")] = False,
    ordered: Annotated[bool, typer.Option("--ordered", help="Events of one task one after the other.")] = False,
    secret: Annotated[str | None, typer.Option(help="Your own; otherwise one is made.")] = None,
    json: Json = False,
) -> None:
    """Make an endpoint and print its secret, which is shown only now."""
    spec = EndpointSpec(name, url, tuple(event), ordered=ordered, every_user=every_user)

    async def act(session: OperatorSession) -> EndpointMadeOut:
        owner = session.caller.user_id if user is None else await user_id_of(session, user)
        caller = Caller(session.caller.who, owner, Role.ADMIN)
        async with session.db.transaction() as tx:
            endpoint, made = await service.create_endpoint(tx, _hooks(session), caller, spec, secret=secret)
        return EndpointMadeOut.made(endpoint, made)

    shown = as_operator("webhooks create", act)
    if json:
        print_json(shown.model_dump(mode="json"))
        return
    out.print(shown.id)
    out.print(shown.secret)


@app.command()
def show(endpoint: Id, json: Json = False) -> None:
    """One endpoint."""
    _print_one(_in_transaction("show", lambda tx, session: service.get_endpoint(tx, session.caller, endpoint)), json)


@app.command()
def pause(endpoint: Id, json: Json = False) -> None:
    """Send nothing for now; events wait."""
    _print_one(_in_transaction("pause", lambda tx, session: service.pause_endpoint(tx, session.caller, endpoint)), json)


@app.command()
def resume(endpoint: Id, json: Json = False) -> None:
    """Send again, what has waited first."""
    paused = _in_transaction("resume", lambda tx, session: service.resume_endpoint(tx, session.caller, endpoint))
    _print_one(paused, json)


@app.command()
def delete(endpoint: Id, yes: Yes = False) -> None:
    """Remove an endpoint; what waits is not sent."""
    if not yes:
        typer.confirm(f"Delete the endpoint {endpoint}?", abort=True)
    _in_transaction("delete", lambda tx, session: service.delete_endpoint(tx, session.caller, endpoint))
    out.print(f"{endpoint} deleted")


@app.command("rotate-secret")
def rotate_secret(endpoint: Id, json: Json = False) -> None:
    """Give an endpoint a new secret and print it; the old one goes on signing for a day."""
    new, secret = _in_transaction(
        "rotate-secret", lambda tx, session: service.rotate_secret(tx, _hooks(session), session.caller, endpoint)
    )
    if json:
        print_json(EndpointMadeOut.made(new, secret).model_dump(mode="json"))
    else:
        out.print(secret.text)


@app.command()
def stats(
    endpoint: Id,
    hours: Annotated[int, typer.Option(min=1, max=24 * 30, help="Over so many hours.")] = 24,
    json: Json = False,
) -> None:
    """How an endpoint has fared."""
    since = datetime.now(UTC) - timedelta(hours=hours)
    found = _in_transaction(
        "stats", lambda tx, session: service.get_statistics(tx, session.caller, endpoint, since=since)
    )
    shown = EndpointStatisticsOut.of(found).model_dump(mode="json")
    if json:
        print_json(shown)
    else:
        print_table(("", ""), [(name.replace("_", " "), value) for name, value in shown.items()])


@app.command("test")
def send_test(endpoint: Id, json: Json = False) -> None:
    """Send a test event."""
    _print_delivery(
        _in_transaction("test", lambda tx, session: resending.send_test(tx, session.caller, endpoint)), json
    )


@app.command()
def deliveries(
    endpoint: Annotated[str | None, typer.Option(help="Only of this endpoint.")] = None,
    status: Annotated[str | None, one_of(offered=words_of(DeliveryStatus), help="Only these.")] = None,
    event: Annotated[str | None, typer.Option(help="Only of this event: evt_….")] = None,
    limit: Limit = 50,
    json: Json = False,
) -> None:
    """Attempts to deliver, newest first."""
    wanted = DeliveryFilter(None, endpoint, event, status=None if status is None else stored(DeliveryStatus, status))
    found: Sequence[Delivery] = _in_transaction(
        "deliveries", lambda tx, session: resending.list_deliveries(tx, session.caller, wanted, limit=limit)
    )
    shown = [DeliveryItemOut.of(each) for each in found]
    if json:
        print_json([each.model_dump(mode="json") for each in shown])
        return
    print_table(
        ("id", "endpoint", "event", "type", "attempt", "status", "answer", "ms", "error"),
        [
            (
                each.id,
                each.endpoint_id,
                each.event_id,
                each.event_type,
                each.attempt,
                shown_word(each.status),
                each.response_status,
                each.duration_ms,
                each.error,
            )
            for each in shown
        ],
    )


@app.command()
def delivery(delivery_id: DeliveryName, json: Json = False) -> None:
    """One attempt, with what was sent and answered."""
    found = _in_transaction("delivery", lambda tx, session: resending.get_delivery(tx, session.caller, delivery_id))
    _print_delivery(found, json, whole=True)


@app.command()
def resend(delivery_id: DeliveryName, json: Json = False) -> None:
    """Send a delivery again, whatever came of it."""
    _print_delivery(
        _in_transaction("resend", lambda tx, session: resending.resend(tx, session.caller, delivery_id)), json
    )


@app.command("resend-failed")
def resend_failed(
    endpoint: Id,
    hours: Annotated[float, typer.Option(min=0.01, help="What failed in the last so many hours.")] = 24,
    json: Json = False,
) -> None:
    """Send again what has failed for good at an endpoint."""
    since = datetime.now(UTC) - timedelta(hours=hours)
    resent = _in_transaction(
        "resend-failed",
        lambda tx, session: resending.resend_failed(tx, session.caller, endpoint, since=since),
    )
    if json:
        print_json({"resent": resent})
    else:
        out.print(f"{number_of(resent, 'delivery').replace('deliverys', 'deliveries')} queued")


@app.command("rotate-keys")
def rotate_keys(json: Json = False) -> None:
    """Encrypt all secrets under the present key (HEADRACE_WEBHOOK_KEY); then old keys can be taken out of the settings.

    Safe at any time, and again: what is under the present key already stays as it is.
    """

    async def act(session: OperatorSession) -> int:
        ring = hooks.keyring(session.settings, secret_key(session.settings))
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
    from headrace.cli import receiver  # the web framework is not needed for the others

    receiver.listen(port, _secret_in(secret_file), status=status, json=json)


def _secret_in(file: Path | None) -> str | None:
    """Never on the command line, where everybody on the machine can read it."""
    if file is None:
        return None
    try:
        return (sys.stdin.readline() if str(file) == "-" else file.read_text()).partition("\n")[0].strip()
    except (OSError, UnicodeDecodeError) as exc:
        raise typer.BadParameter(f"{file} cannot be read: {exc}", param_hint="--secret-file") from exc


def _print_one(endpoint: Endpoint, json: bool) -> None:
    shown: dict[str, Any] = EndpointOut.of(endpoint).model_dump(mode="json")
    if json:
        print_json(shown)
    else:
        print_table(("", ""), [(name.replace("_", " "), value) for name, value in shown.items()])


def _print_delivery(found: Delivery, json: bool, *, whole: bool = False) -> None:
    shown = DeliveryOut.of(found).model_dump(mode="json")
    if json:
        print_json(shown)
    elif whole:
        print_table(("", ""), [(name.replace("_", " "), value) for name, value in shown.items()])
    else:
        out.print(found.delivery_id)
