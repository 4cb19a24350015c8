"""``headrace archive``: months that have left the database."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, TypeVar

import typer

from headrace.archive import archives
from headrace.archive.errors import ArchiveDamaged, ArchiveNotFound
from headrace.archive.model import Archive
from headrace.assembly.retention_settings import archive_config
from headrace.cli.calls import drop_none, path, perform
from headrace.cli.operator import OperatorSession, as_operator
from headrace.cli.output import Json, number_of, out, print_done, print_json, print_table, progress, say
from headrace.cli.place import on_the_machine
from headrace.cli.showing import minute
from headrace.cli.times import month_of
from headrace.storage import Storage

T = TypeVar("T")

app = typer.Typer(help="Months that have left the database: list, verify, ask and restore them.", no_args_is_help=True)

Name = Annotated[
    str, typer.Argument(metavar="ARCHIVE", help="Its id, or its month's name: audit_events_y2026m01, for example.")
]
_ARCHIVES = path("admin", "archives")
_MAX_ARCHIVES = 100_000


@app.command("list")
def list_(
    table: Annotated[str | None, typer.Option(help="Only months of this table.")] = None, json: Json = False
) -> None:
    """List the archives, with table, month and contents."""
    listed = perform("archive list", lambda api: api.list(_ARCHIVES, drop_none(table=table), limit=_MAX_ARCHIVES))
    if json:
        print_json(listed)
        return
    print_table(
        ("id", "month", "rows", "from", "to", "size", "verified", ""),
        [
            (
                archive["id"],
                f"{archive['table']}_y{archive['month'][:4]}m{archive['month'][5:7]}",
                None if archive["rows"] is None else f"{archive['rows']:,}",
                minute(archive["min_at"]),
                minute(archive["max_at"]),
                archive["size_bytes"] and f"{archive['size_bytes'] / 1024**2:,.1f} MiB",
                minute(archive["verified_at"]),
                _remark(archive),
            )
            for archive in listed
        ],
    )


def _remark(archive: Mapping[str, Any]) -> str:
    if archive["restored_as"] is not None:
        return f"restored as headrace.{archive['restored_as']}"
    return {"DETACHED": "not written yet", "ARCHIVED": "written; its rows are still here"}.get(archive["status"], "")


@app.command()
@on_the_machine
def verify(
    name: Annotated[str | None, typer.Argument(metavar="ARCHIVE", help="One archive; every one by default.")] = None,
    json: Json = False,
) -> None:
    """Read files back and compare them with their records; exits with 1 if one is damaged or missing."""
    names = [name] if name else _written()

    async def act(session: OperatorSession) -> list[tuple[Archive, str | None]]:
        storage = Storage(archive_config(session.settings))
        async with session.db.transaction(readonly=True) as tx:
            chosen = [await archives.get_archive(tx, each) for each in names]
        rows: list[tuple[Archive, str | None]] = []
        with progress("reading archives") as report:
            for number, archive in enumerate(chosen, 1):
                report(f"reading {archive.name} ({number} of {len(chosen)})")
                try:
                    rows.append((await archives.verify(session.db.config, storage, archive), None))
                except (ArchiveDamaged, ArchiveNotFound) as exc:
                    rows.append((archive, exc.message))
        return rows

    rows = as_operator("archive verify", act)
    if json:
        print_json([{"id": archive.id, "name": archive.name, "problem": problem} for archive, problem in rows])
    else:
        for archive, problem in rows:
            out.print(f"{'✗' if problem else '✓'} {archive.name}: {problem or 'as it was written'}")
    if any(problem for _, problem in rows):
        raise typer.Exit(1)


def _written() -> list[str]:
    """The ids of all archives that have a file."""
    rows = perform("archive verify", lambda api: api.list(_ARCHIVES, limit=_MAX_ARCHIVES))
    return [archive["id"] for archive in rows if archive["status"] != "DETACHED"]


@app.command()
@on_the_machine
def restore(name: Name, json: Json = False) -> None:
    """Put an archived month's rows back into a table of their own, beside the one that they came from."""
    table = _on_archive(
        "archive restore",
        name,
        lambda session, archive: archives.restore(
            session.deployment.owner, Storage(archive_config(session.settings)), archive, who=session.caller.who
        ),
    )
    if json:
        print_json({"table": f"headrace.{table}"})
    else:
        out.print(f"restored as headrace.{table}; `headrace archive discard {name}` drops it again")


@app.command()
@on_the_machine
def discard(name: Name, json: Json = False) -> None:
    """Drop the table that an archive was restored into; the archive stays."""
    _on_archive(
        "archive discard",
        name,
        lambda session, archive: archives.discard(session.deployment.owner, archive, who=session.caller.who),
    )
    print_done({"archive": name, "discarded": True}, f"{name} is only in the archive again", json=json)


def _on_archive(command: str, name: str, verb: Callable[[OperatorSession, Archive], Awaitable[T]]) -> T:
    async def act(session: OperatorSession) -> T:
        async with session.db.transaction(readonly=True) as tx:
            archive = await archives.get_archive(tx, name)
        with progress(f"working on {archive.name}"):
            return await verb(session, archive)

    return as_operator(command, act)


@app.command()
@on_the_machine
def query(
    sql: Annotated[str, typer.Argument(metavar="SQL", help="DuckDB's SQL, with the tables' own names.")],
    since: Annotated[str | None, typer.Option(metavar="MONTH", help="Only this month and later: 2026-01.")] = None,
    until: Annotated[str | None, typer.Option(metavar="MONTH", help="Only this month and earlier: 2026-03.")] = None,
    json: Json = False,
) -> None:
    """Ask archived months in SQL, without restoring them: SELECT action, count(*) FROM audit_events GROUP BY action."""

    async def act(session: OperatorSession) -> archives.Answer:
        with progress("asking the archives"):
            return await archives.query(
                session.db,
                Storage(archive_config(session.settings)),
                sql,
                since=month_of(since) if since else None,
                until=month_of(until) if until else None,
            )

    answer = as_operator("archive query", act)
    if json:
        print_json([dict(zip(answer.columns, row, strict=True)) for row in answer.rows])
    else:
        print_table(answer.columns, answer.rows)
        say(f"{number_of(len(answer.rows), 'row')} from {number_of(answer.files, 'archive')}")
