"""``headrace partitions``: the months of the tables that are kept by months."""

from collections.abc import Sequence
from typing import Annotated

import typer

from headrace.archive import model, retention, retiring
from headrace.archive.model import Retention, Retired
from headrace.archive.schemas import ArchiveOut, RetentionOut
from headrace.assembly.retention import ROWS
from headrace.assembly.retention_settings import archive_config, retention_config
from headrace.cli.calls import path, perform
from headrace.cli.operator import OperatorSession, as_operator
from headrace.cli.output import Json, number_of, out, print_json, print_table, progress
from headrace.cli.place import on_the_machine
from headrace.cli.times import month_of
from headrace.errors import Invalid
from headrace.storage import Storage

app = typer.Typer(help="Tables that are kept by months: which months there are, and letting old ones go.")

TableName = Annotated[str, typer.Argument(metavar="TABLE", help="The table: audit_events, for example.")]
Month = Annotated[str, typer.Argument(metavar="MONTH", help="The month, as 2026-01.")]


@app.command("list")
def list_(json: Json = False) -> None:
    """Every month of every table, with its size."""
    partitions = perform("partitions list", lambda api: api.list(path("admin", "partitions"), limit=None))
    if json:
        print_json(partitions)
        return
    print_table(
        ("table", "month", "rows, about", "dead", "size", ""),
        [
            (
                partition["table"],
                "default" if partition["month"] is None else partition["month"][:7],
                f"{partition['live_rows']:,}",
                f"{partition['dead_rows']:,}",
                f"{partition['size_bytes'] / 1024**2:,.1f} MiB",
                "" if partition["attached"] else "detached: `headrace partitions retire` continues",
            )
            for partition in partitions
        ],
    )


@app.command()
def ahead(json: Json = False) -> None:
    """Make the months missing up to three ahead, as APIs and schedulers do; exits with 1 if one cannot be made."""
    made = perform("partitions ahead", lambda api: api.ask("POST", path("admin", "partitions")))
    if json:
        print_json(made)
    else:
        for name in made["made"]:
            out.print(f"made {name}")
        for problem in made["problems"]:
            out.print(f"not made: {problem}", soft_wrap=True)
        if not made["made"] and not made["problems"]:
            out.print("all there")
    if made["problems"]:
        raise typer.Exit(1)


@app.command()
@on_the_machine
def retire(
    table: TableName,
    month: Month,
    write_again: Annotated[
        bool,
        typer.Option("--write-again", help="Replace the archive's file, which was found damaged; the rows are here."),
    ] = False,
    json: Json = False,
) -> None:
    """Take one month out of its table and into the archive, from wherever an earlier run left it."""

    async def act(session: OperatorSession) -> Retired:
        with progress(f"retiring {table} {month}") as report:
            return await retiring.retire_month(
                session.db.config,
                Storage(archive_config(session.settings)),
                table,
                month_of(month),
                who=session.caller.who,
                write_again=write_again,
                on_step=report,
            )

    gone = as_operator("partitions retire", act)
    if json:
        print_json(
            {
                "archive": ArchiveOut.of(gone.archive).model_dump(mode="json"),
                "locked_ms": gone.locked.total_seconds() * 1000,
            }
        )
        return
    archive = gone.archive
    out.print(
        f"{archive.name} is in the archive as {archive.id}: {number_of(archive.row_count or 0, 'row')}, "
        f"{archive.size_bytes:,} bytes; "
        f"{table} was locked for at most {gone.locked.total_seconds() * 1000:.1f} ms",
        soft_wrap=True,
    )


@app.command()
@on_the_machine
def expire(
    table: Annotated[
        str | None, typer.Argument(metavar="TABLE", help="Only this table; all that have a time to keep by default.")
    ] = None,
    json: Json = False,
) -> None:
    """Delete rows that are older than the settings keep, as schedules do at night. Exits with 1 if something stayed."""

    async def act(session: OperatorSession) -> Sequence[Retention]:
        config, storage = retention_config(session.settings), archive_config(session.settings)
        tables = [*model.MONTHLY, *ROWS]  # months first: `doctor` recommends this command for them
        if table is not None and table not in tables:
            raise Invalid(f"{table} has no retention period; these have one: {', '.join(tables)}.")
        with progress("looking for expired rows") as report:
            return [
                await retention.retain(
                    session.db,
                    storage,
                    config,
                    ROWS,
                    name,
                    who=session.caller.who,
                    on_step=report,
                )
                for name in ([table] if table else tables)
            ]

    runs = as_operator("partitions expire", act)
    if json:
        print_json([RetentionOut.of(run).model_dump(mode="json") for run in runs])
    else:
        print_table(
            ("table", "removed", "months", ""),
            [(run.table_name, f"{run.removed_rows:,}", len(run.retired) or None, run.error) for run in runs],
        )
    if any(run.error for run in runs):
        raise typer.Exit(1)
