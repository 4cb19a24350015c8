"""``headrace ledger``: every unit that was granted, held, used and given back; and proof that it adds up."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any

import typer

from headrace.billing.model import EntitlementStatus, EntryStatus, Source
from headrace.cli import place
from headrace.cli.calls import drop_none, owner_of, path, perform
from headrace.cli.operator import OperatorSession, as_operator
from headrace.cli.output import Json, out, print_json, print_table
from headrace.cli.requests import Api
from headrace.cli.showing import minute, when
from headrace.cli.times import instant_or_utc
from headrace.cli.words import one_of

app = typer.Typer(help="The ledger: list it, prove that it adds up, adjust a quota.", no_args_is_help=True)

User = Annotated[
    str | None,
    typer.Option(help="Whose: a username, or an id. Everybody's by default; over an API your own, and '*' for all."),
]
Limit = Annotated[int, typer.Option(min=1, max=10_000, help="Maximum number of rows.")]
Task = Annotated[str | None, typer.Option(help="Of this task.")]
Since = Annotated[str | None, typer.Option(help="From this time on: 2026-03-01 or 2026-03-01T08:00:00Z.")]
Until = Annotated[str | None, typer.Option(help="Before this time.")]


@app.command("list")
def list_(
    user: User = None,
    task: Task = None,
    entitlement: Annotated[str | None, typer.Option(help="Of this entitlement.")] = None,
    status: Annotated[str | None, one_of(offered=[*EntryStatus], help="Only these.")] = None,
    source: Annotated[str | None, one_of(offered=[*Source], help="Only entries from this source.")] = None,
    since: Since = None,
    until: Until = None,
    limit: Limit = 100,
    json: Json = False,
) -> None:
    """Entries, newest first."""
    wanted = entries_wanted(task, since, until) | drop_none(entitlement_id=entitlement, status=status, source=source)

    async def act(api: Api) -> Sequence[Any]:
        return await api.list(path("usage"), {**wanted, **await owner_of(api, user)}, limit=limit)

    print_entries(perform("ledger list", act), json=json)


@app.command()
def entitlements(
    user: User = None,
    status: Annotated[str | None, one_of(offered=[*EntitlementStatus], help="Only these.")] = None,
    limit: Limit = 100,
    json: Json = False,
) -> None:
    """List entitlements, the units of each user and period, newest first."""

    async def act(api: Api) -> Sequence[Any]:
        return await api.list(
            path("entitlements"), {**drop_none(status=status), **await owner_of(api, user)}, limit=limit
        )

    rows = perform("ledger entitlements", act)
    if json:
        print_json(rows)
        return
    print_table(
        ("entitlement", "user", "plan", "left", "total", "from", "until", "status"),
        [
            (
                each["id"],
                each["user_id"],
                each["plan_id"],
                f"{each['quota_left']:,}",
                f"{each['quota_total']:,}",
                minute(each["period_start"]),
                minute(each["period_end"]),
                each["status"],
            )
            for each in rows
        ],
    )


@app.command()
def adjust(
    entitlement: Annotated[str, typer.Argument(metavar="ENTITLEMENT", help="As `entitlements` lists it: ent_….")],
    units: Annotated[int, typer.Option(help="To add, or below 0 to take away.")],
    reason: Annotated[str, typer.Option(help="Why. It stays in the ledger for good: name no people.")],
    key: Annotated[str | None, typer.Option(help="The same key again changes nothing, within a month.")] = None,
    json: Json = False,
) -> None:
    """Add units to a quota, or remove unused ones; audited."""
    body = {"units": units, "reason": reason}
    where = path("admin", "entitlements", entitlement, "adjust")
    done = perform("ledger adjust", lambda api: api.ask("POST", where, body=body, key=key))
    if json:
        print_json(done)
    else:
        quota = done["entitlement"]
        out.print(f"{quota['id']}: {quota['quota_left']:,} of {quota['quota_total']:,} units are left")


@app.command()
def verify(
    archives: Annotated[bool, typer.Option(help="Read the archived months, too; a server does not.")] = True,
    json: Json = False,
) -> None:
    """Read the whole ledger and name what does not add up; exits with 1 if anything does not."""
    if place.server() is None and archives:
        result = as_operator("ledger verify", _verify_with_archives)
    else:
        result = perform("ledger verify", lambda api: api.ask("POST", path("admin", "ledger", "verify")))
    if json:
        print_json(result)
    else:
        _print_verification(result)
    if result["fault_count"]:
        raise typer.Exit(1)


async def _verify_with_archives(session: OperatorSession) -> dict[str, Any]:
    from headrace.archive.ledger import verify_ledger
    from headrace.assembly.retention_settings import archive_config
    from headrace.billing.schemas import VerificationOut

    storage = archive_config(session.settings)
    return VerificationOut.of(
        await verify_ledger(session.db, session.caller.who, storage, read_archives=True)
    ).model_dump(mode="json")


def _print_verification(verification: Mapping[str, Any]) -> None:
    seconds = (
        datetime.fromisoformat(verification["finished_at"]) - datetime.fromisoformat(verification["started_at"])
    ).total_seconds()
    for fault in verification["faults"]:
        out.print(f"{fault['kind']}: {fault['about']}: {fault['message']}", soft_wrap=True)
    verdict = (
        "all of it adds up"
        if verification["fault_count"] == 0
        else f"{verification['fault_count']:,} things do not add up"
    )
    archived = f", {verification['archived_months']} archived months" if verification["archived_months"] else ""
    out.print(
        f"{verification['entries']:,} entries{archived} and {verification['entitlements']:,} entitlements read in "
        f"{seconds:.1f} s: {verdict}",
        soft_wrap=True,
    )


def entries_wanted(task: str | None, since: str | None, until: str | None) -> dict[str, Any]:
    """The parameters of a list of entries."""
    return drop_none(
        task_id=task,
        since=None if since is None else instant_or_utc(since, "--since").isoformat(),
        until=None if until is None else instant_or_utc(until, "--until").isoformat(),
    )


def print_entries(entries: Sequence[Mapping[str, Any]], *, json: bool) -> None:
    if json:
        print_json(entries)
        return
    print_table(
        ("time", "units", "status", "source", "task", "entitlement", "user", "remark"),
        [
            (
                when(entry["created_at"]),
                f"{'+' if entry['direction'] == 'CREDIT' else '-'}{entry['units']:,}",
                entry["status"],
                entry["source"],
                entry["task_id"],
                entry["entitlement_id"],
                entry["user_id"],
                entry["remark"],
            )
            for entry in entries
        ],
    )
