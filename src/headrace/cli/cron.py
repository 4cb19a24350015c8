"""``headrace cron``: when an expression is due next. It needs no database."""

from datetime import UTC, datetime
from itertools import islice
from typing import Annotated

import typer

from headrace.cli.output import Json, out, print_json
from headrace.cli.times import instant_or_utc
from headrace.errors import Invalid
from headrace.schedules.cron import check_due, cron_of


def cron(
    expression: Annotated[str, typer.Argument(metavar="EXPR", help="Five fields, or a nickname: '0 2 * * *', @daily.")],
    tz: Annotated[str, typer.Option("--tz", metavar="ZONE", help="The zone whose clock it is read by.")] = "UTC",
    count: Annotated[int, typer.Option(min=1, max=1000, help="How many times to print.")] = 5,
    after: Annotated[str | None, typer.Option(help="From this time on: 2026-03-29T00:00:00Z. Now by default.")] = None,
    json: Json = False,
) -> None:
    """Print when a cron expression is due next."""
    rule = cron_of(expression, tz)
    now = datetime.now(UTC) if after is None else instant_or_utc(after, "--after")
    if not 1970 <= now.year <= 9000:
        raise Invalid("--after must lie between the years 1970 and 9000.")
    check_due(rule, now)
    times = list(islice(rule.times_after(now), count))
    if json:
        print_json([at.isoformat() for at in times])
        return
    for at in times:
        out.print(f"{at.astimezone(rule.zone):%a %Y-%m-%d %H:%M:%S %z}   {at:%Y-%m-%d %H:%M:%S} UTC")
