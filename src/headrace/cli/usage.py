"""``headrace usage``: a user's used and remaining units."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import dropwhile
from pathlib import Path
from typing import Annotated, Any

import typer

from headrace.cli.calls import drop_none, path, perform, user_id_of
from headrace.cli.ledger import Limit, Since, Task, Until, entries_wanted, print_entries
from headrace.cli.output import Json, out, print_json, print_table
from headrace.cli.requests import Api
from headrace.cli.showing import minute
from headrace.cli.terminal import standard_output
from headrace.errors import Invalid

app = typer.Typer(help="Usage: by day and task, the remaining units; as CSV.", no_args_is_help=True)

Who = Annotated[str, typer.Argument(metavar="USER", help="A username, or an id.")]


async def _of(api: Api, user: str) -> dict[str, Any]:
    return drop_none(user_id=await user_id_of(api, user))


@app.command("list")
def list_(
    user: Who, task: Task = None, since: Since = None, until: Until = None, limit: Limit = 100, json: Json = False
) -> None:
    """List the charges of tasks, newest first. `headrace ledger list` shows holds and releases, too."""
    wanted = {**entries_wanted(task, since, until), "status": "COMMITTED"}

    async def act(api: Api) -> Sequence[Any]:
        return await api.list(path("usage"), {**wanted, **await _of(api, user)}, limit=limit)

    print_entries(perform("usage list", act), json=json)


@app.command()
def days(
    user: Who,
    since: Annotated[str | None, typer.Option(help="The first day: 2026-03-01. 30 days ago by default.")] = None,
    until: Annotated[str | None, typer.Option(help="The day after the last. Tomorrow by default.")] = None,
    json: Json = False,
) -> None:
    """Units charged, and units held but not charged, on each day (UTC)."""
    last = _day(until, "--until") or datetime.now(UTC).date() + timedelta(days=1)
    first = _day(since, "--since") or last - timedelta(days=30)

    async def act(api: Api) -> Any:
        wanted = {"since": first.isoformat(), "until": last.isoformat(), **await _of(api, user)}
        return (await api.ask("GET", path("usage", "days"), params=wanted))["days"]

    result = perform("usage days", act)
    if json:
        print_json(result)
        return
    used = list(dropwhile(lambda day: day["tasks"] == 0, result))
    if not used:
        out.print(f"Nothing was used from {first} to {last - timedelta(days=1)}.")
        return
    print_table(
        ("day", "used", "not charged", "tasks"),
        [(day["day"], f"{day['used']:,}", f"{day['released']:,}", f"{day['tasks']:,}") for day in used],
    )


@app.command()
def balance(user: Who, json: Json = False) -> None:
    """What a user can use now, and until when."""

    async def act(api: Api) -> Any:
        return await api.ask("GET", path("usage", "balance"), params=await _of(api, user))

    result = perform("usage balance", act)
    if json:
        print_json(result)
        return
    until = "" if result["renews_at"] is None else f", until {minute(result['renews_at'])}"
    out.print(f"{result['left']:,} of {result['total']:,} units are left and {result['held']:,} held{until}")


@app.command("return")
def return_(
    task: Annotated[str, typer.Argument(metavar="TASK", help="The task of a removal.")], json: Json = False
) -> None:
    """Return a removal's result that is not good, within 24 hours of its end: its units come back."""

    async def act(api: Api) -> Any:
        return await api.ask("POST", path("removals", task, "return"))

    removal = perform("usage return", act)
    if json:
        print_json(removal)
    else:
        out.print(f"{removal['id']} was returned at {minute(removal['returned_at'])}; its units are back.")


@app.command()
def export(
    user: Who,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", dir_okay=False, help="A file. Standard output by default.")
    ] = None,
    since: Since = None,
    until: Until = None,
) -> None:
    """The whole ledger of a user as CSV, newest first."""

    async def act(api: Api) -> None:
        wanted = {**entries_wanted(None, since, until), **await _of(api, user)}
        try:
            target = standard_output() if output is None else output.open("wb")
        except OSError as exc:
            raise Invalid(f"{output} cannot be written: {exc.strerror}.") from None
        try:
            async with api.stream(path("usage", "export"), wanted) as parts:
                async for part in parts:
                    target.write(part)
            target.flush()
        finally:
            if output is not None:
                target.close()

    perform("usage export", act)


def _day(text: str | None, option: str) -> date | None:
    try:
        return None if text is None else date.fromisoformat(text)
    except ValueError:
        raise Invalid(f"{option} takes a day like 2026-03-01, not {text!r}.") from None
