"""``headrace audit import``: another system's trail, by document 001's mapping."""

from contextlib import ExitStack
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, TypeVar
from urllib.parse import urlsplit

import typer
from pydantic import TypeAdapter, ValidationError

from headrace import migrations
from headrace.assembly.deployment import Deployment, database_of
from headrace.audit import Action, ResourceType
from headrace.audit.importing.importer import ImportPlan, ImportReport, import_trail, rename_to_backup
from headrace.audit.importing.mapping import Names
from headrace.cli.output import LOOKING, Json, out, print_json, progress, progress_bar, say
from headrace.cli.session import load_settings, operator, run
from headrace.database import Database, DatabaseConfig, connect_alone
from headrace.errors import Invalid
from headrace.settings import Duration

Word = TypeVar("Word", bound=StrEnum)


def import_(
    url: Annotated[str, typer.Option("--from", metavar="URL", help="The legacy database: postgresql://….")],
    table: Annotated[str, typer.Option(help="The legacy table, with its schema if it needs one.")] = "audit_logs",
    since: Annotated[str, typer.Option(help="How far back: 90d, 2160h.")] = "90d",
    source: Annotated[
        str | None,
        typer.Option(help="The legacy trail's name for ever, part of every event's id. Its database and table."),
    ] = None,
    map_action: Annotated[
        list[str] | None, typer.Option(help="What an action there is here, as theirs=ours. Repeatable.")
    ] = None,
    map_type: Annotated[
        list[str] | None, typer.Option(help="What a resource type there is here, as theirs=ours. Repeatable.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only report what would be imported.")] = False,
    accept_skipped: Annotated[
        bool, typer.Option("--accept-skipped", help="Import the others although some rows cannot be events.")
    ] = False,
    rename: Annotated[
        bool, typer.Option("--rename", help="Rename the table to …_backup at the end, if the counts agree.")
    ] = False,
    json: Json = False,
) -> None:
    """Import a legacy audit_logs table. A repeated run continues where the last one stopped, or adds nothing."""
    legacy = DatabaseConfig(url, role="audit import", statement_timeout=timedelta(days=1), named="--from")
    plan = ImportPlan(
        table=table,
        source=source or f"{_database(url)}.{table}"[:255],
        since=_duration(since),
        names=Names(_names(map_action, Action), _names(map_type, ResourceType)),
        dry_run=dry_run,
        accept_skipped=accept_skipped,
    )
    settings = load_settings()
    with ExitStack() as stack:
        with progress(LOOKING) as report:
            deployment = stack.enter_context(database_of(settings, role="audit import", report=report))
        done, renamed = run(_import(deployment, legacy, plan, rename=rename and not dry_run))
    if json:
        print_json(_as_json(plan, done, renamed))
    else:
        _print(plan, done, renamed)
    if not done.counts_agree:
        raise typer.Exit(1)


async def _import(
    deployment: Deployment, legacy: DatabaseConfig, plan: ImportPlan, *, rename: bool
) -> tuple[ImportReport, str | None]:
    await migrations.verify_current(deployment.app)
    async with await Database.connect(deployment.app) as db, connect_alone(legacy) as connection:
        with progress_bar("importing") as report:
            who = operator("audit import")
            done = await import_trail(db, deployment.owner, connection, plan, who=who, report=report)
        renaming = rename and done.counts_agree
        return done, await rename_to_backup(connection, plan.table, done) if renaming else None


def _as_json(plan: ImportPlan, done: ImportReport, renamed: str | None) -> dict[str, object]:
    return {
        "source": plan.source,
        "since": done.since,
        "dry_run": plan.dry_run,
        "resumed": done.resumed,
        "read": done.read,
        "written": done.written,
        "present": done.present,
        "skipped": done.skipped,
        "skipped_rows": done.examples,
        "legacy": done.legacy,
        "trail": done.trail,
        "counts_agree": done.counts_agree,
        "renamed_to": renamed,
    }


def _print(plan: ImportPlan, done: ImportReport, renamed: str | None) -> None:
    would = "would be " if plan.dry_run else ""
    skipped = sum(done.skipped.values())
    out.print(f"{done.read:,} read since {done.since:%Y-%m-%d %H:%M} UTC, {done.written:,} {would}written,", end=" ")
    out.print(f"{done.present:,} there already, {skipped:,} skipped")
    for reason, count in sorted(done.skipped.items(), key=lambda item: -item[1]):
        out.print(f"  {count:,} skipped: {reason}")
        rows = ", ".join(done.examples.get(reason, ()))
        out.print(f"    rows {rows}{', …' if count > len(done.examples.get(reason, ())) else ''}")
    sign = "=" if done.counts_agree else "≠"
    out.print(f"{done.legacy:,} rows there {sign} {done.trail:,} events here + {skipped:,} skipped")
    if done.skipped and not done.accept_skipped and not plan.dry_run:
        say("nothing was imported: name what these are with --map-action and --map-type, or --accept-skipped")
    if renamed:
        say(f"{plan.table} is now {renamed}: keep it for 30 days at least")


def _database(url: str) -> str:
    try:
        return urlsplit(url).path.strip("/") or "postgres"
    except ValueError:  # its text may quote the password
        raise Invalid("--from takes an address like postgresql://user@host:5432/database.") from None


def _duration(text: str) -> timedelta:
    try:
        return TypeAdapter(Duration).validate_python(text)
    except ValidationError:
        raise Invalid(f"--since takes a duration like 90d or 2160h, not {text!r}.") from None


def _names(pairs: list[str] | None, ours: type[Word]) -> dict[str, Word]:
    try:
        return {theirs: ours(value) for theirs, _, value in (text.rpartition("=") for text in pairs or ())}
    except ValueError as exc:
        raise Invalid(f"{exc}: ours are {', '.join(ours)}.") from None
