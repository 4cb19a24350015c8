"""The import: in batches, each in one transaction with its progress.

It writes as the owner of the tables: the application's role can only add present events, so that a compromised
application cannot change the past. An event of now records the import, and imported events have new sequence numbers.

An interrupted run continues where it stopped. A repeated one reads everything again and adds only new rows: an event's
id is derived from the legacy row, so that the same row is the same event.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import asyncpg

from headrace import audit
from headrace.audit.errors import ImportRefused
from headrace.audit.importing.mapping import COLUMNS, REQUIRED, Names, Skipped, event_of
from headrace.audit.model import Action, Resource, ResourceType, Who
from headrace.database import Database, DatabaseConfig, Row, Tx, connect_alone

Report = Callable[[int, int], None]
"""(rows read, rows in all)"""

BACKUP = "_backup"
_BATCH = 1000
_COUNT_LIMIT_S = 600
_EXAMPLES = 20  # rows listed for each reason


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """``source`` identifies the legacy trail permanently: under another name the same rows are other events."""

    table: str
    source: str
    since: timedelta = timedelta(days=90)
    names: Names = field(default_factory=Names)
    dry_run: bool = False
    accept_skipped: bool = False  # import although some rows cannot be events


@dataclass(frozen=True, slots=True)
class ImportReport:
    """The result of a run: number of ``legacy`` rows in the range, and of ``trail`` events made from them.

    ``skipped`` counts rows that cannot be events, by reason; ``examples`` lists the first of each.
    """

    since: datetime
    read: int
    written: int
    present: int
    skipped: Mapping[str, int]
    legacy: int
    trail: int
    resumed: bool = False
    examples: Mapping[str, Sequence[str]] = field(default_factory=dict)
    accept_skipped: bool = False

    @property
    def counts_agree(self) -> bool:
        """Whether every row is an event; skipped rows are allowed only if that was accepted."""
        left_behind = sum(self.skipped.values())
        if left_behind and not self.accept_skipped:
            return False
        return self.read == self.legacy == self.trail + left_behind


@dataclass(slots=True)
class _Progress:
    since: datetime
    at: datetime | None = None
    id: str | None = None
    read: int = 0
    written: int = 0
    present: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)
    resumed: bool = False


async def import_trail(
    db: Database,
    owner: DatabaseConfig,
    legacy: "asyncpg.Connection[Any]",
    plan: ImportPlan,
    *,
    who: Who,
    report: Report = lambda *_: None,
) -> ImportReport:
    """Bring the legacy rows of the last ``plan.since`` into the trail. ``ImportRefused`` for a table that cannot be
    read so. Nothing is written in a dry run, and nothing is ever written to the legacy database.

    Rows that cannot be events stop it before anything is written, unless ``plan.accept_skipped``: the report then has
    ``written`` 0, and lists them."""
    select = await _select(legacy, plan.table)
    if not (plan.dry_run or plan.accept_skipped):
        rehearsal = await _run(db, owner, legacy, replace(plan, dry_run=True), select, who, report)
        if rehearsal.skipped:
            return replace(rehearsal, written=0, trail=rehearsal.present)
    return await _run(db, owner, legacy, plan, select, who, report)


async def _run(
    db: Database,
    owner: DatabaseConfig,
    legacy: "asyncpg.Connection[Any]",
    plan: ImportPlan,
    select: str,
    who: Who,
    report: Report,
) -> ImportReport:
    progress = await _begin(db, legacy, plan)
    async with db.transaction(readonly=True) as tx:
        await _refuse_archived(tx, progress.at or progress.since)
    if not plan.dry_run:
        await _make_months(owner, progress.since.date())
    async with AsyncExitStack() as stack:
        writer = None if plan.dry_run else Tx(await stack.enter_async_context(connect_alone(owner)))
        # One snapshot, so that the counted rows are those that are read, despite concurrent writes.
        await stack.enter_async_context(legacy.transaction(isolation="repeatable_read", readonly=True))
        total = await legacy.fetchval(f"SELECT count(*) FROM ({select}) AS legacy {_SINCE}", progress.since)
        sql, args = _rest(select, progress)
        cursor = await legacy.cursor(sql, *args)
        while rows := await cursor.fetch(_BATCH):
            await _take(db, writer, plan, progress, rows)
            report(progress.read, total)
    async with db.transaction() as tx:
        # Scans the whole trail. The driver has its own timeout beside the server's.
        await tx.execute(f"SET LOCAL statement_timeout = '{_COUNT_LIMIT_S}s'")
        trail = await tx.connection.fetchval(COUNT_IMPORTED, plan.source, progress.since, timeout=_COUNT_LIMIT_S)
        done = _report(plan, progress, total, trail if not plan.dry_run else progress.written + progress.present)
        if not plan.dry_run:
            await tx.execute(FINISH, plan.source)
            await _record(tx, who, plan, done)
    return done


async def rename_to_backup(legacy: "asyncpg.Connection[Any]", table: str, done: ImportReport) -> str:
    """Rename the legacy table to ``…_backup``; ``ImportRefused`` unless the counts agree."""
    if not done.counts_agree:
        raise ImportRefused(
            f"The table was not renamed: {done.legacy} rows there, {done.trail} events here, "
            f"{sum(done.skipped.values())} that cannot be events."
        )
    name = table.replace('"', "").rpartition(".")[2] + BACKUP
    select = await _select(legacy, table)
    try:
        async with legacy.transaction():
            await legacy.execute(f"LOCK TABLE {_quoted(table)}")
            now = await legacy.fetchval(f"SELECT count(*) FROM ({select}) AS legacy {_SINCE}", done.since)
            if now != done.legacy:
                raise ImportRefused(f"{now - done.legacy} rows were added meanwhile: import again, then rename.")
            await legacy.execute(f'ALTER TABLE {_quoted(table)} RENAME TO "{name}"')
    except asyncpg.DuplicateTableError:
        raise ImportRefused(f"There is a {name} already: the table was not renamed.") from None
    return name


# -- the legacy side


def _quoted(table: str) -> str:
    return ".".join(f'"{part}"' for part in table.replace('"', "").split("."))


LEGACY_COLUMNS = """
SELECT attname AS name, relkind::text, format_type(atttypid, atttypmod) AS type
FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped
"""


async def _select(legacy: "asyncpg.Connection[Any]", table: str) -> str:
    found = {row["name"]: row for row in await legacy.fetch(LEGACY_COLUMNS, _quoted(table))}
    if not found:
        raise ImportRefused(f"There is no table {table} in that database.")
    if any(row["relkind"] not in ("r", "p") for row in found.values()):
        raise ImportRefused(f"{table} is not a table: name the legacy one, with its schema.")
    if missing := REQUIRED - found.keys():
        raise ImportRefused(f"{table} has no column {', '.join(sorted(missing))}: this is not a legacy audit trail.")
    if not found["created_at"]["type"].startswith("timestamp"):
        raise ImportRefused(f"{table}.created_at is no timestamp.")
    # A missing column is null. Timestamps without a zone are UTC, as Go's drivers write them.
    chosen = [f'"{name}"' if name in found else f"NULL AS {name}" for name in COLUMNS if name != "created_at"]
    at = "created_at" if found["created_at"]["type"].endswith("with time zone") else "created_at AT TIME ZONE 'UTC'"
    return f"SELECT {', '.join(chosen)}, {at} AS created_at, id::text AS id_text FROM {_quoted(table)}"


_SINCE = "WHERE created_at >= $1"


def _rest(select: str, progress: _Progress) -> tuple[str, tuple[object, ...]]:
    """The statement for unread rows, and its arguments."""
    begun = progress.at is not None
    where = "WHERE (created_at, id_text) > ($1, $2)" if begun else _SINCE
    args: tuple[object, ...] = (progress.at, progress.id) if begun else (progress.since,)
    return f"SELECT * FROM ({select}) AS legacy {where} ORDER BY created_at, id_text", args


# -- our side


UNFINISHED = "SELECT * FROM headrace.audit_imports WHERE source = $1 AND finished_at IS NULL"
BEGIN = """
INSERT INTO headrace.audit_imports (source, since) VALUES ($1, $2)
ON CONFLICT (source) DO UPDATE
SET since = excluded.since, resume_at = NULL, resume_id = NULL, rows_read = 0, rows_written = 0, rows_present = 0,
    skipped_json = '{}', finished_at = NULL
"""
ADVANCE = """
UPDATE headrace.audit_imports
SET resume_at = $2, resume_id = $3, rows_read = $4, rows_written = $5, rows_present = $6, skipped_json = $7
WHERE source = $1
"""
FINISH = "UPDATE headrace.audit_imports SET finished_at = now() WHERE source = $1"
INSERT_IMPORTED = """
INSERT INTO headrace.audit_events (
  id, "timestamp", created_at, action, resource_type, resource, "user", diff_object, client_ip, user_agent,
  request_method, request_id, data, actor_type
)
SELECT id, millis, headrace.instant_of_millis(millis), action, resource_type, resource, "user", diff_object, client_ip,
       user_agent, request_method, request_id, data, actor_type
FROM jsonb_to_recordset($1) AS event (
  id text, millis bigint, action text, resource_type text, resource jsonb, "user" jsonb, diff_object jsonb,
  client_ip text, user_agent text, request_method text, request_id text, data jsonb, actor_type text
)
-- Each row that gets as far as the conflict uses up a number, and numbers without an event arouse suspicion.
WHERE NOT EXISTS (
  SELECT FROM headrace.audit_events AS present
  WHERE present.id = event.id AND present.created_at = headrace.instant_of_millis(event.millis)
)
ON CONFLICT DO NOTHING
"""
PRESENT = """
SELECT count(*) FROM jsonb_to_recordset($1) AS given (id text, millis bigint)
JOIN headrace.audit_events AS event
  ON event.id = given.id AND event.created_at = headrace.instant_of_millis(given.millis)
"""
COUNT_IMPORTED = """
SELECT count(*) FROM headrace.audit_events WHERE data ->> 'imported_from' = $1 AND created_at >= $2
"""
MAKE_MONTHS = "SELECT headrace.create_month_partitions('headrace.audit_events', $1, (now() AT TIME ZONE 'UTC')::date)"


# An archived month would be created again beside its archive, with seals over events of both.
LAST_ARCHIVED = """
SELECT max(period) FROM headrace.archives
WHERE table_name = 'audit_events' AND (period + interval '1 month') AT TIME ZONE 'UTC' > $1
"""


async def _refuse_archived(tx: Tx, since: datetime) -> None:
    left: date | None = await tx.fetchval(LAST_ARCHIVED, since)
    if left is not None:
        raise ImportRefused(
            f"The trail's {left:%Y-%m} was archived, and nothing can be added to it: import with a --since after it."
        )


async def _begin(db: Database, legacy: "asyncpg.Connection[Any]", plan: ImportPlan) -> _Progress:
    now: datetime = await legacy.fetchval("SELECT date_trunc('milliseconds', now())")
    since = now - plan.since
    async with db.transaction() as tx:
        row = await tx.fetchrow(UNFINISHED, plan.source)
        begun = row is not None and row["resume_at"] is not None
        if plan.dry_run:
            return _Progress(row["since"] if row is not None and begun else since)
        if row is not None and begun:
            return _resumed(row)
        await tx.execute(BEGIN, plan.source, since)
    return _Progress(since)


def _resumed(row: Row) -> _Progress:
    return _Progress(
        row["since"],
        row["resume_at"],
        row["resume_id"],
        row["rows_read"],
        row["rows_written"],
        row["rows_present"],
        Counter(row["skipped_json"]),
        resumed=True,
    )


async def _make_months(owner: DatabaseConfig, first: date) -> None:
    """Create partitions for the imported months: rows in the default partition would block later ones."""
    try:
        async with connect_alone(owner) as connection, connection.transaction():
            await connection.execute("SET LOCAL lock_timeout = '5s'")
            await connection.execute(MAKE_MONTHS, first)
    except asyncpg.InsufficientPrivilegeError:
        raise ImportRefused(
            "Past months need partitions, which only the owner makes: set HEADRACE_DATABASE_OWNER_URL."
        ) from None


async def _take(db: Database, writer: Tx | None, plan: ImportPlan, progress: _Progress, rows: Sequence[Any]) -> None:
    events = []
    for row in rows:
        try:
            events.append(event_of(row, plan.source, plan.names))
        except Skipped as why:
            progress.skipped[str(why)] += 1
            examples = progress.examples.setdefault(str(why), [])
            if len(examples) < _EXAMPLES:
                examples.append(row["id_text"] or "without an id")
    if writer is None:
        async with db.transaction(readonly=True) as tx:
            _advance(progress, rows, events, written=len(events) - await tx.fetchval(PRESENT, events))
        return
    async with writer.connection.transaction():
        written = await writer.count(INSERT_IMPORTED, events)
        # After the insert: its lock keeps the month from being archived, and an archived month is detected.
        await _refuse_archived(writer, rows[0]["created_at"])
        _advance(progress, rows, events, written=written)
        counts = (progress.read, progress.written, progress.present, dict(progress.skipped))
        await writer.execute(ADVANCE, plan.source, progress.at, progress.id, *counts)


def _advance(progress: _Progress, rows: Sequence[Any], events: Sequence[object], *, written: int) -> None:
    progress.at, progress.id = rows[-1]["created_at"].astimezone(UTC), rows[-1]["id_text"]
    progress.read += len(rows)
    progress.written += written
    progress.present += len(events) - written


async def _record(tx: Tx, who: Who, plan: ImportPlan, done: ImportReport) -> None:
    if done.written:
        facts = {"source": plan.source, "table": plan.table, "written": str(done.written), "read": str(done.read)}
        facts |= {"skipped": str(sum(done.skipped.values()))} if done.skipped else {}
        await audit.record(
            tx, who, Action.CREATED, Resource(ResourceType.AUDIT_TRAIL, plan.source), data={"verb": "import", **facts}
        )


def _report(plan: ImportPlan, progress: _Progress, legacy: int, trail: int) -> ImportReport:
    counts = (progress.read, progress.written, progress.present, dict(progress.skipped))
    return ImportReport(
        *(progress.since, *counts, legacy, trail, progress.resumed),
        examples=progress.examples,
        accept_skipped=plan.accept_skipped,
    )
