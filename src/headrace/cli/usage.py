"""``headrace usage``: what somebody has used, and what is left."""

from collections.abc import Sequence
from contextlib import aclosing
from datetime import UTC, date, datetime, timedelta
from itertools import dropwhile
from pathlib import Path
from typing import Annotated

import typer

from headrace.billing import usage
from headrace.billing.model import Balance, Entry, EntryStatus, UsedDay
from headrace.billing.schemas import BalanceOut, EntryOut, UsedDayOut
from headrace.billing.store.ledger import EntryFilter
from headrace.cli.ledger import Limit, Since, Task, Until, print_entries
from headrace.cli.operator import OperatorSession, as_operator
from headrace.cli.output import Json, out, print_json, print_table
from headrace.cli.people import user_id_of
from headrace.cli.terminal import standard_output
from headrace.cli.times import instant_or_utc
from headrace.errors import Invalid

app = typer.Typer(help="What was used: by day, for which tasks, what is left; as CSV.", no_args_is_help=True)

Who = Annotated[str, typer.Argument(metavar="USER", help="A username, or an id.")]


@app.command("list")
def list_(
    user: Who, task: Task = None, since: Since = None, until: Until = None, limit: Limit = 100, json: Json = False
) -> None:
    """What was charged for which task, newest first. `headrace ledger list` shows holds and releases, too."""

    async def act(session: OperatorSession) -> Sequence[Entry]:
        wanted = await _wanted(session, user, task, since, until, EntryStatus.COMMITTED)
        async with session.db.transaction() as tx:
            return await usage.list_entries(tx, session.caller, wanted, limit=limit)

    print_entries([EntryOut.of(entry) for entry in as_operator("usage list", act)], json=json)


@app.command()
def days(
    user: Who,
    since: Annotated[str | None, typer.Option(help="The first day: 2026-03-01. 30 days ago by default.")] = None,
    until: Annotated[str | None, typer.Option(help="The day after the last. Tomorrow by default.")] = None,
    json: Json = False,
) -> None:
    """Units charged and given back on each day (UTC)."""
    last = _day(until, "--until") or datetime.now(UTC).date() + timedelta(days=1)
    first = _day(since, "--since") or last - timedelta(days=30)

    async def act(session: OperatorSession) -> Sequence[UsedDay]:
        owner = await user_id_of(session, user)
        async with session.db.transaction() as tx:
            return await usage.used_by_day(tx, session.caller, owner, first, last)

    found = [UsedDayOut.of(day) for day in as_operator("usage days", act)]
    if json:
        print_json([day.model_dump(mode="json") for day in found])
        return
    used = list(dropwhile(lambda day: day.tasks == 0, found))
    if not used:
        out.print(f"Nothing was used from {first} to {last - timedelta(days=1)}.")
        return
    print_table(
        ("day", "used", "given back", "tasks"),
        [(f"{day.day}", f"{day.used:,}", f"{day.released:,}", f"{day.tasks:,}") for day in used],
    )


@app.command()
def balance(user: Who, json: Json = False) -> None:
    """What somebody can use now, and until when."""

    async def act(session: OperatorSession) -> Balance:
        owner = await user_id_of(session, user)
        async with session.db.transaction() as tx:
            return await usage.get_balance(tx, session.caller, owner)

    found = BalanceOut.of(as_operator("usage balance", act))
    if json:
        print_json(found.model_dump(mode="json"))
        return
    until = "" if found.renews_at is None else f", until {found.renews_at:%Y-%m-%d %H:%M} UTC"
    out.print(f"{found.left:,} of {found.total:,} units are left and {found.held:,} held{until}")


@app.command()
def export(
    user: Who,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", dir_okay=False, help="A file. Standard output by default.")
    ] = None,
    since: Since = None,
    until: Until = None,
) -> None:
    """The whole ledger of somebody as CSV, newest first."""

    async def act(session: OperatorSession) -> None:
        wanted = await _wanted(session, user, None, since, until, None)
        try:
            target = standard_output() if output is None else output.open("wb")
        except OSError as exc:
            raise Invalid(f"{output} cannot be written: {exc.strerror}.") from None
        try:
            async with aclosing(await usage.export(session.db, session.caller, wanted)) as parts:
                async for part in parts:
                    target.write(part)
            target.flush()
        finally:
            if output is not None:
                target.close()

    as_operator("usage export", act)


async def _wanted(
    session: OperatorSession,
    user: str,
    task: str | None,
    since: str | None,
    until: str | None,
    status: EntryStatus | None,
) -> EntryFilter:
    return EntryFilter(
        await user_id_of(session, user),
        task,
        status=status,
        since=None if since is None else instant_or_utc(since, "--since"),
        until=None if until is None else instant_or_utc(until, "--until"),
    )


def _day(text: str | None, option: str) -> date | None:
    try:
        return None if text is None else date.fromisoformat(text)
    except ValueError:
        raise Invalid(f"{option} takes a day like 2026-03-01, not {text!r}.") from None
