"""``headrace ledger``: every unit that was granted, held, used and given back; and proof that it adds up."""

from collections.abc import Sequence
from typing import Annotated

import typer

from headrace.billing import adjusting, usage
from headrace.billing.adjusting import Adjusted
from headrace.billing.model import Direction, Entitlement, EntitlementStatus, Entry, EntryStatus, Source
from headrace.billing.schemas import AdjustedOut, EntitlementOut, EntryOut, VerificationOut
from headrace.billing.store.ledger import EntryFilter
from headrace.billing.verifying import Verification
from headrace.cli.keeping import archive_config
from headrace.cli.operator import OperatorSession, as_operator
from headrace.cli.output import Json, out, print_json, print_table
from headrace.cli.people import user_id_of
from headrace.cli.times import instant_or_utc
from headrace.operations.ledger import verify_ledger

app = typer.Typer(help="The ledger: list it, prove that it adds up, adjust a quota.", no_args_is_help=True)

User = Annotated[str | None, typer.Option(help="Whose: a username, or an id. Everybody's by default.")]
Limit = Annotated[int, typer.Option(min=1, max=10_000, help="At most so many.")]
Task = Annotated[str | None, typer.Option(help="Of this task.")]
Since = Annotated[str | None, typer.Option(help="From this time on: 2026-03-01 or 2026-03-01T08:00:00Z.")]
Until = Annotated[str | None, typer.Option(help="Before this time.")]


@app.command("list")
def list_(
    user: User = None,
    task: Task = None,
    entitlement: Annotated[str | None, typer.Option(help="Of this entitlement.")] = None,
    status: Annotated[EntryStatus | None, typer.Option(help="Only these.")] = None,
    source: Annotated[Source | None, typer.Option(help="Only what this led to.")] = None,
    since: Since = None,
    until: Until = None,
    limit: Limit = 100,
    json: Json = False,
) -> None:
    """Entries, newest first."""

    async def act(session: OperatorSession) -> Sequence[Entry]:
        wanted = EntryFilter(
            None if user is None else await user_id_of(session, user),
            task,
            entitlement,
            status,
            source,
            None if since is None else instant_or_utc(since, "--since"),
            None if until is None else instant_or_utc(until, "--until"),
        )
        async with session.db.transaction() as tx:
            return await usage.list_entries(tx, session.caller, wanted, limit=limit)

    print_entries([EntryOut.of(entry) for entry in as_operator("ledger list", act)], json=json)


@app.command()
def entitlements(
    user: User = None,
    status: Annotated[EntitlementStatus | None, typer.Option(help="Only these.")] = None,
    limit: Limit = 100,
    json: Json = False,
) -> None:
    """Who may use how much in which period, newest first."""

    async def act(session: OperatorSession) -> Sequence[Entitlement]:
        owner = None if user is None else await user_id_of(session, user)
        async with session.db.transaction() as tx:
            return await usage.list_entitlements(tx, session.caller, user_id=owner, status=status, limit=limit)

    found = [EntitlementOut.of(each) for each in as_operator("ledger entitlements", act)]
    if json:
        print_json([each.model_dump(mode="json") for each in found])
        return
    print_table(
        ("entitlement", "user", "plan", "left", "total", "from", "until", "status"),
        [
            (
                each.id,
                each.user_id,
                each.plan_id,
                f"{each.quota_left:,}",
                f"{each.quota_total:,}",
                f"{each.period_start:%Y-%m-%d %H:%M} UTC",
                f"{each.period_end:%Y-%m-%d %H:%M} UTC",
                each.status,
            )
            for each in found
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
    """Add units to a quota, or take away what is left of it; audited."""

    async def act(session: OperatorSession) -> Adjusted:
        async with session.db.transaction() as tx:
            return await adjusting.adjust(tx, session.caller.who, entitlement, units, reason=reason, key=key)

    done = AdjustedOut.of(as_operator("ledger adjust", act))
    if json:
        print_json(done.model_dump(mode="json"))
    else:
        quota = done.entitlement
        out.print(f"{quota.id}: {quota.quota_left:,} of {quota.quota_total:,} units are left")


@app.command()
def verify(
    archives: Annotated[bool, typer.Option(help="Read the archived months, too.")] = True,
    json: Json = False,
) -> None:
    """Read the whole ledger and name what does not add up; exits with 1 if anything does not."""

    async def act(session: OperatorSession) -> Verification:
        return await verify_ledger(
            session.db,
            session.caller.who,
            archive_config(session.settings),
            read_archives=archives,
        )

    found = VerificationOut.of(as_operator("ledger verify", act))
    if json:
        print_json(found.model_dump(mode="json"))
    else:
        seconds = (found.finished_at - found.started_at).total_seconds()
        for fault in found.faults:
            out.print(f"{fault.kind}: {fault.about}: {fault.message}", soft_wrap=True)
        verdict = "all of it adds up" if found.fault_count == 0 else f"{found.fault_count:,} things do not add up"
        archived = f", {found.archived_months} archived months" if found.archived_months else ""
        out.print(
            f"{found.entries:,} entries{archived} and {found.entitlements:,} entitlements read in {seconds:.1f} s: "
            f"{verdict}",
            soft_wrap=True,
        )
    if found.fault_count:
        raise typer.Exit(1)


def print_entries(entries: Sequence[EntryOut], *, json: bool) -> None:
    if json:
        print_json([entry.model_dump(mode="json") for entry in entries])
        return
    print_table(
        ("time", "units", "status", "source", "task", "entitlement", "user", "remark"),
        [
            (
                f"{entry.created_at:%Y-%m-%d %H:%M:%S} UTC",
                f"{'+' if entry.direction == Direction.CREDIT else '-'}{entry.units:,}",
                entry.status,
                entry.source,
                entry.task_id,
                entry.entitlement_id,
                entry.user_id,
                entry.remark,
            )
            for entry in entries
        ],
    )
