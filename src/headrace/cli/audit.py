"""``headrace audit``: search the trail, export it, and verify that it is unchanged."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import orjson
import typer

from headrace.archive.trail import with_archives
from headrace.assembly.retention_settings import archive_config
from headrace.assembly.secret_key import head_key
from headrace.assembly.trail import audit_heads, signing_key, trusted_keys
from headrace.audit import Action, ResourceType, continuing, sealing, seals, signing, verifying
from headrace.audit.exporting import ExportFormat
from headrace.audit.model import OWN_RESOURCE_TYPES
from headrace.audit.sealing import Sealed
from headrace.audit.verifying import Verified
from headrace.cli import audit_import
from headrace.cli.calls import drop_none, path, perform, user_id_of
from headrace.cli.operator import OperatorSession, as_operator
from headrace.cli.output import (
    AlwaysJson,
    Json,
    number_of,
    out,
    print_done,
    print_json,
    print_table,
    progress,
    progress_bar,
    say,
)
from headrace.cli.place import on_the_machine
from headrace.cli.requests import Api
from headrace.cli.session import load_settings
from headrace.cli.showing import when
from headrace.cli.terminal import standard_output
from headrace.cli.times import instant_or_utc, month_of
from headrace.cli.words import one_of
from headrace.errors import Conflict, Invalid, NotFound

app = typer.Typer(help="The audit trail: search, export, verify, prove, import.", no_args_is_help=True)

app.command("import")(on_the_machine(audit_import.import_))

EventArgument = Annotated[str, typer.Argument(metavar="EVENT", help="The event's id: aud_….")]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", dir_okay=False, help="A file. Standard output by default.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing file.")]
ActionOption = Annotated[Action | None, typer.Option(help="The action.")]
TypeOption = Annotated[
    str | None,
    one_of("--type", offered=OWN_RESOURCE_TYPES, also=list(ResourceType), help="To what kind of thing."),
]
ResourceOption = Annotated[str | None, typer.Option(help="The id of the changed resource.")]
UserOption = Annotated[str | None, typer.Option(help="The acting user: a username, or an id.")]
AddressOption = Annotated[str | None, typer.Option(help="The client address.")]
RequestOption = Annotated[str | None, typer.Option(help="The id of the request.")]
SinceOption = Annotated[str | None, typer.Option(help="From this time on: 2026-03-01 or 2026-03-01T08:00:00Z.")]
UntilOption = Annotated[str | None, typer.Option(help="Before this time.")]
TextOption = Annotated[
    str | None, typer.Option("--search", "-s", help="One to five whole identifiers of any kind, or user names.")
]

_EVENTS = path("audit", "events")
_SEALS_PAGE = 1000


@app.command("list")
def list_(
    action: ActionOption = None,
    type_: TypeOption = None,
    resource: ResourceOption = None,
    user: UserOption = None,
    address: AddressOption = None,
    request: RequestOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    search: TextOption = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Maximum number of events.")] = 20,
    json: Json = False,
) -> None:
    """List events, newest first."""
    filters = _filters(action, type_, resource, address, request, since, until, search)

    async def act(api: Api) -> Sequence[Any]:
        return await api.list(_EVENTS, await _by(api, filters, user), limit=limit)

    rows = perform("audit list", act)
    if json:
        print_json(rows)
        return
    print_table(
        ("id", "time", "action", "resource", "", "by", "from"),
        [
            (
                event["id"],
                when(event["created_at"]),
                _action(event),
                event["resource_type"],
                event["resource"]["identifier"],
                event["user"].get("username") or event["user"]["uid"],
                event["client_ip"],
            )
            for event in rows
        ],
    )


def _action(event: Mapping[str, Any]) -> str:
    """The action; a failed login is recorded as a login, and must not read as one."""
    facts = event["data"] or {}
    if facts.get("outcome") != "failure":
        return str(event["action"])
    reason = facts.get("reason")
    return f"{event['action']} failed ({reason})" if reason else f"{event['action']} failed"


@app.command()
def show(event: EventArgument, json: AlwaysJson = True) -> None:  # noqa: ARG001
    """Everything about one event, as JSON."""
    print_json(perform("audit show", lambda api: api.ask("GET", path("audit", "events", event))))


@app.command()
def export(
    format_: Annotated[ExportFormat, typer.Option("--format", help="JSON lines, or CSV for spreadsheets.")] = (
        ExportFormat.JSONL
    ),
    output: Output = None,
    force: Force = False,
    action: ActionOption = None,
    type_: TypeOption = None,
    resource: ResourceOption = None,
    user: UserOption = None,
    address: AddressOption = None,
    request: RequestOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    search: TextOption = None,
) -> None:
    """Write events to a file, newest first, whatever their number."""
    filters = _filters(action, type_, resource, address, request, since, until, search)

    async def act(api: Api) -> int:
        wanted = {**await _by(api, filters, user), "format": format_.value}
        records = RecordCount(header=format_ is ExportFormat.CSV)
        async with api.stream(path("audit", "export"), wanted) as parts:
            with _writing(output, force=force) as stream, progress("exporting") as report:
                async for part in parts:
                    stream.write(part)
                    report(f"exporting: {records.add(part):,} so far")
        return records.count

    done = perform("audit export", act)
    say(f"{number_of(done, 'event')} exported")


class RecordCount:
    """Counts the records of an export while they pass: lines that end outside of quotes."""

    def __init__(self, *, header: bool) -> None:
        self.count = -1 if header else 0
        self._header = header
        self._quotes = 0

    def add(self, part: bytes) -> int:
        if not self._header:  # JSON lines hold no line breaks
            self.count += part.count(b"\n")
            return self.count
        *lines, rest = part.split(b"\n")
        for line in lines:
            self._quotes += line.count(b'"')
            self.count += self._quotes % 2 == 0
        self._quotes += rest.count(b'"')
        return max(0, self.count)


@app.command()
@on_the_machine
def verify(
    month: Annotated[str | None, typer.Option(help="Only the events of this month: 2026-03.")] = None,
    roots: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="A file of `headrace audit roots`: nothing in it may differ."),
    ] = None,
    whole: Annotated[bool, typer.Option("--whole", help="From the first event on.")] = False,
    json: Json = False,
) -> None:
    """Recompute the seals since the last verification, some earlier ones, or with --whole all, archived months too, and
    name the first event that does not fit; exits with 1 if one is."""
    keys = trusted_keys(load_settings())
    exported = _read_roots(roots) if roots else {}
    chosen = month_of(month) if month else None

    async def act(session: OperatorSession) -> Verified:
        archive = archive_config(session.settings)
        heads = audit_heads(session.settings)
        against = with_archives(session.db, archive, keys=keys, heads=heads, exported=exported)
        with progress_bar("verifying") as report:
            if chosen is not None or exported:
                return await verifying.verify(session.db, month=chosen, against=against, report=report)
            key = head_key(session.settings)
            return await continuing.verify_further(session.db, key, whole=whole, against=against, report=report)

    result = as_operator("audit verify", act)
    if json:
        print_json(
            {
                "ok": result.finding is None,
                "seals": result.seals,
                "events": result.events,
                "unsealed": result.unsealed,
                "signed_up_to": result.signed_up_to,
                "heads": result.heads,
                "numbers_without_event": result.numbers_without_event,
                "not_looked_at": result.not_looked_at,
                "continued_from": result.continued_from,
                "sampled": result.sampled,
                "whole_at": result.whole_at,
                "finding": result.finding,
            }
        )
    elif result.finding is not None:
        out.print(result.finding.message, soft_wrap=True)
    else:
        out.print(_verified(result, chosen))
        _say_what_is_not_known(result, roots=bool(exported))
    if result.finding is not None:
        raise typer.Exit(1)


@app.command()
def proof(event: EventArgument, json: AlwaysJson = True) -> None:  # noqa: ARG001
    """Prove that an event was sealed as it is; `examples/check_proof.py` checks it without Headrace."""
    print_json(perform("audit proof", lambda api: api.ask("GET", path("audit", "events", event, "proof"))))


@app.command()
@on_the_machine
def roots(output: Output = None, force: Force = False) -> None:
    """Write every seal as a line of JSON: kept elsewhere, it shows whether the trail was cut off or replaced."""

    async def act(session: OperatorSession) -> int:
        number = 0
        with _writing(output, force=force) as stream:
            while True:
                async with session.db.transaction(readonly=True) as tx:
                    page = await seals.list_after(tx, number, limit=_SEALS_PAGE)
                for seal in page:
                    stream.write(orjson.dumps(seal.as_json(), option=orjson.OPT_APPEND_NEWLINE))
                if len(page) < _SEALS_PAGE:
                    return page[-1].number if page else number
                number = page[-1].number

    done = as_operator("audit roots", act)
    say(f"{number_of(done, 'seal')} written")


@app.command()
@on_the_machine
def seal(json: Json = False) -> None:
    """Seal committed events now, before the next scheduled time. A signed trail needs the key."""
    key = signing_key(load_settings())

    async def act(session: OperatorSession) -> Sealed:
        sealer = sealing.Sealer(session.db, key, heads=audit_heads(session.settings))
        if not await sealer.may_sign():
            raise Conflict(
                "The last seal is signed, and this one would not be: set HEADRACE_AUDIT_SIGNING_KEY as it is for the"
                " processes that seal, or leave it to them."
            )
        return await sealer.run_once()

    done = as_operator("audit seal", act)
    if json:
        print_json(done)
    elif done.waiting:
        out.print(
            "A transaction is still writing: try again in a moment. If that does not help, look for a transaction that "
            "has been open for long (xact_start in pg_stat_activity).",
            soft_wrap=True,
        )
    else:
        out.print(f"{number_of(done.events, 'event')} sealed in {done.seals:,}.")


@app.command()
@on_the_machine
def key(json: Json = False) -> None:
    """Print the public key of HEADRACE_AUDIT_SIGNING_KEY, for those who check signatures."""
    own = signing_key(load_settings())
    if own is None:
        raise Invalid("There is no key: set HEADRACE_AUDIT_SIGNING_KEY (`openssl rand -base64 32` makes one).")
    print_done({"key": signing.write_key(own.public)}, signing.write_key(own.public), json=json)


def _verified(verified: Verified, month: date | None) -> str:
    events, seals = number_of(verified.events, "event"), number_of(verified.seals, "seal")
    if verified.continued_from:
        assert verified.whole_at is not None
        return (
            f"{events} in {seals} after seal {verified.continued_from:,} are as they were sealed, and so are"
            f" {number_of(verified.sampled, 'earlier seal')} chosen at random. All were verified"
            f" {when(verified.whole_at.isoformat())}: --whole does it again."
        )
    if month is None:
        return f"{events} in {seals} are as they were sealed."
    # Each seal holds on to the one before, so all of them are looked at, whichever month's events are.
    whole = f"the chain of {seals} is whole"
    if verified.events == 0 and month not in verified.not_looked_at:
        return f"{month:%Y-%m} has no sealed events; {whole}."
    return f"{events} of {month:%Y-%m} are as they were sealed; {whole}."


def _say_what_is_not_known(verified: Verified, *, roots: bool) -> None:
    if verified.unsealed:
        say(f"{verified.unsealed:,} newer ones are not sealed yet: nothing shows whether one was removed or changed")
    if verified.numbers_without_event:
        numbers = number_of(verified.numbers_without_event, "number")
        say(f"{numbers} after the last event were given out and are at none: rolled back, or removed before a seal")
    if verified.seals and not verified.heads and not roots:
        say("no head of the trail is kept outside the database: an end that was cut off would not be noticed")
    for month in verified.not_looked_at:
        say(f"{month:%Y-%m} is not in the database any more, and was not looked at")


def _filters(
    action: Action | None,
    type_: str | None,
    resource: str | None,
    address: str | None,
    request: str | None,
    since: str | None,
    until: str | None,
    text: str | None,
) -> dict[str, Any]:
    return drop_none(
        action=action,
        resource_type=type_,
        resource_id=resource,
        client_ip=address,
        request_id=request,
        created_after=None if since is None else instant_or_utc(since, "--since").isoformat(),
        created_before=None if until is None else instant_or_utc(until, "--until").isoformat(),
        q=text,
    )


async def _by(api: Api, filters: dict[str, Any], user: str | None) -> dict[str, Any]:
    """The same, of this user alone."""
    if user is None:
        return filters
    try:
        return {**filters, "user_id": await user_id_of(api, user)}
    except (NotFound, Invalid):
        # Strangers and those of an imported trail have no account here.
        if not await api.list(_EVENTS, {"user_id": user}, limit=1):
            raise
        return {**filters, "user_id": user}


def _read_roots(file: Path) -> Mapping[int, bytes]:
    try:
        lines = [orjson.loads(line) for line in file.read_bytes().splitlines()]
        return {line["number"]: bytes.fromhex(line["chain"]) for line in lines}
    except (ValueError, KeyError, TypeError) as exc:
        raise Invalid(f"{file} is not a file of `headrace audit roots`: {exc}.") from exc


@contextmanager
def _writing(file: Path | None, *, force: bool) -> Iterator[BinaryIO]:
    if file is None:
        yield standard_output()
        sys.stdout.flush()
        return
    try:
        stream = file.open("wb" if force else "xb")
    except FileExistsError as exc:
        raise Invalid(f"{file} exists: --force replaces it.") from exc
    except OSError as exc:
        raise Invalid(f"{file} cannot be written: {exc.strerror}.") from exc
    with stream:
        yield stream
