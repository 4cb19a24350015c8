"""Checks of the database for problems that need attention: for ``headrace doctor`` and the console."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum

import asyncpg

from headrace import migrations
from headrace.accounts.store import deletions
from headrace.admin.blocking import list_lasting
from headrace.admin.health import Health, list_tables, read_health
from headrace.admin.postgres_releases import AS_OF, newer_minor
from headrace.archive import model, retention, store
from headrace.archive.config import RetentionConfig
from headrace.database import Database
from headrace.errors import HeadraceError
from headrace.tasks import why

_MUCH_SKEW_S = 2.0
_OVERDUE = timedelta(hours=1)
_MANY_DEAD_ROWS = 100_000
_LATE = timedelta(days=3)
_LATE_EVENT = timedelta(minutes=5)
_STRANDED = timedelta(minutes=1)  # a worker that has just been started may be on its way
_MAX_SHOWN = 3
_ROUNDS_MISSED = 3


class Verdict(StrEnum):
    GOOD = "ok"
    NOTE = "note"
    WARNING = "warning"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Finding:
    check: str
    verdict: Verdict
    message: str


@dataclass(frozen=True, slots=True)
class DoctorConfig:
    """What the findings are held against."""

    seal_interval: timedelta = timedelta(minutes=1)
    retention: RetentionConfig = field(default_factory=RetentionConfig)


class Patient:
    """A database that is examined: its health is read once, however many checks ask for it."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self._health: Health | None = None

    async def health(self) -> Health:
        if self._health is None:
            self._health = await read_health(self.db)
        return self._health


async def examine(db: Database, config: DoctorConfig) -> list[Finding]:
    """Everything that can be seen from within the database, a finding for each check."""
    findings: list[Finding] = []
    patient = Patient(db)
    checks: Sequence[tuple[str, Callable[[Patient], Awaitable[Finding]]]] = [
        ("version", _version),
        ("release", _release),
        ("clock", _clock),
        ("rights", _rights),
        ("partitions", _partitions),
        ("sealing", lambda patient: _sealing(patient, config.seal_interval)),
        ("deletions", _deletions),
        ("vacuum", _vacuum),
        ("tasks", _tasks),
        ("locks", _locks),
        ("outbox", _outbox),
        ("webhooks", _webhooks),
        ("ledger", _ledger),
        ("payments", _payments),
        ("retention", lambda patient: _retention(patient, config.retention)),
    ]
    for name, check in checks:
        with noting(findings, name):
            findings.append(await check(patient))
    return findings


async def _version(patient: Patient) -> Finding:
    async with patient.db.transaction(readonly=True) as tx:
        version = int(await tx.fetchval("SELECT current_setting('server_version_num')"))
    if version // 10000 < migrations.runner.OLDEST_SERVER:
        return Finding("version", Verdict.BAD, f"PostgreSQL {version // 10000} is too old: 15 or newer is needed")
    return Finding("version", Verdict.GOOD, f"PostgreSQL {version // 10000}.{version % 10000}")


async def _release(patient: Patient) -> Finding:
    async with patient.db.transaction(readonly=True) as tx:
        version = int(await tx.fetchval("SELECT current_setting('server_version_num')"))
    newer = newer_minor(version)
    if newer is None:
        return Finding("release", Verdict.GOOD, f"no newer minor release was known on {AS_OF}")
    here = f"{version // 10_000}.{version % 10_000}"
    return Finding(
        "release",
        Verdict.WARNING,
        f"PostgreSQL {newer} fixes faults of {here}: install it from your distribution; an embedded server takes it "
        "at its next start (docs/howto/own-postgres.md)",
    )


async def _clock(patient: Patient) -> Finding:
    async with patient.db.transaction(readonly=True) as tx:
        before = datetime.now(UTC)
        theirs = await tx.fetchval("SELECT clock_timestamp()")
        after = datetime.now(UTC)
    skew = abs((theirs - (before + (after - before) / 2)).total_seconds())
    if skew > _MUCH_SKEW_S:
        return Finding(
            "clock", Verdict.WARNING, f"this machine and the database differ by {skew:.1f} s: set up NTP on both"
        )
    return Finding("clock", Verdict.GOOD, f"within {max(skew, 0.001):.3f} s of the database's")


WHO_AM_I = """
SELECT current_user AS name, rolsuper AS is_superuser,
       pg_has_role(current_user, 'headrace_owner', 'MEMBER') AS is_owner,
       has_table_privilege(current_user, 'headrace.audit_events', 'UPDATE') AS may_rewrite_audit
FROM pg_roles WHERE rolname = current_user
"""


async def _rights(patient: Patient) -> Finding:
    async with patient.db.transaction(readonly=True) as tx:
        me = await tx.fetchrow(WHO_AM_I)
    assert me is not None
    if me["is_superuser"] or me["is_owner"] or me["may_rewrite_audit"]:
        return Finding(
            "rights",
            Verdict.WARNING,
            f"the application connects as {me['name']}, with more rights than it needs: give HEADRACE_DATABASE_URL "
            "a member of headrace_app and keep this one in HEADRACE_DATABASE_OWNER_URL",
        )
    return Finding("rights", Verdict.GOOD, f"connects as {me['name']}, who cannot rewrite the audit trail")


async def _partitions(patient: Patient) -> Finding:
    health = await patient.health()
    strays = [table for table, rows in health.default_rows.items() if rows]
    if strays:
        return Finding(
            "partitions",
            Verdict.WARNING,
            f"the default partition of {', '.join(strays)} holds rows, so their month cannot be made: "
            "docs/why/partitions.md says how to move them",
        )
    missing = [table for table, months in health.months_ahead.items() if months < 1]
    if missing:
        return Finding(
            "partitions",
            Verdict.WARNING,
            f"next month's partition is missing for {', '.join(missing)}: run `headrace partitions ahead`",
        )
    size = sum(partition.size_bytes for partition in health.partitions)
    return Finding(
        "partitions",
        Verdict.GOOD,
        f"next month's are there; {len(health.partitions)} partitions hold {size / 1024**2:,.0f} MiB",
    )


async def _sealing(patient: Patient, every: timedelta) -> Finding:
    waited = (await patient.health()).unsealed_for
    if waited is None:
        return Finding("sealing", Verdict.GOOD, "every event of the audit trail is sealed")
    if waited < _ROUNDS_MISSED * every:
        return Finding("sealing", Verdict.GOOD, f"the audit trail is sealed but for the last {_rounded(waited)}")
    return Finding(
        "sealing",
        Verdict.WARNING,
        f"the audit trail has not been sealed for {_rounded(waited)}: an API or a scheduler must run, with "
        "HEADRACE_AUDIT_SIGNING_KEY if its seals are signed; `headrace audit seal` does it now, and says if an open "
        "transaction is in the way",
    )


async def _vacuum(patient: Patient) -> Finding:
    async with patient.db.transaction(readonly=True) as tx:
        tables = await list_tables(tx)
    worst = max(tables, key=lambda table: table.dead_rows)
    if worst.dead_rows > max(_MANY_DEAD_ROWS, worst.live_rows):
        return Finding(
            "vacuum",
            Verdict.WARNING,
            f"{worst.table_name} has {worst.dead_rows:,} dead rows beside {worst.live_rows:,}: look for a transaction "
            "that has been open for long (pg_stat_activity), and whether autovacuum is on",
        )
    return Finding("vacuum", Verdict.GOOD, f"{sum(table.dead_rows for table in tables):,} dead rows in all")


async def _tasks(patient: Patient) -> Finding:
    async with patient.db.transaction(readonly=True) as tx:
        stranded = await why.stranded(tx, for_longer_than=_STRANDED)
    if not stranded:
        return Finding("tasks", Verdict.GOOD, "for all that wait there is a worker")
    kinds = "; ".join(
        f"{each.task_type} in the queue {each.queue} since {each.since:%Y-%m-%d %H:%M} UTC: {reason.text.rstrip('.')}"
        for each, reason in stranded[:_MAX_SHOWN]
    )
    more = f"; and {len(stranded) - _MAX_SHOWN:,} kinds more" if len(stranded) > _MAX_SHOWN else ""
    return Finding("tasks", Verdict.WARNING, f"tasks wait that no worker can run: {kinds}{more}")


async def _locks(patient: Patient) -> Finding:
    blocking = await list_lasting(patient.db)
    if not blocking:
        return Finding("locks", Verdict.GOOD, "no session waits for another's open transaction")
    sessions = "; ".join(map(str, blocking[:_MAX_SHOWN]))
    return Finding(
        "locks",
        Verdict.WARNING,
        f"{sessions}: ends, cancellations and submissions of these users wait for it. Commit it, or end it with "
        f"SELECT pg_terminate_backend({blocking[0].pid})",
    )


async def _outbox(patient: Patient) -> Finding:
    outbox = (await patient.health()).outbox
    lost = [
        f"{outbox.dead:,} events were given up: `headrace outbox list --status DEAD` says which, "
        "`headrace outbox revive --all` tries them again"
        if outbox.dead
        else "",
        f"the broker refused {outbox.broker_given_up:,} messages" if outbox.broker_given_up else "",
    ]
    if found := "; ".join(filter(None, lost)):
        return Finding("outbox", Verdict.WARNING, found)
    waiting, relays = outbox.oldest_waiting, len(outbox.relays)
    if waiting is None:
        return Finding("outbox", Verdict.GOOD, f"no event waits; relays at work: {relays}")
    if not relays:
        return Finding(
            "outbox",
            Verdict.WARNING,
            f"an event has waited for {_rounded(waiting)} and no relay is at work: start `headrace relay`",
        )
    late = waiting > _LATE_EVENT
    return Finding(
        "outbox",
        Verdict.WARNING if late else Verdict.GOOD,
        f"{outbox.waiting + outbox.failed:,} events wait, the oldest for {_rounded(waiting)}; relays at work: {relays}",
    )


async def _webhooks(patient: Patient) -> Finding:
    webhooks = (await patient.health()).webhooks
    trouble = [
        f"{webhooks.failing:,} endpoints are paused because they failed for days" if webhooks.failing else "",
        f"{webhooks.given_up:,} deliveries were given up since yesterday" if webhooks.given_up else "",
        f"a delivery has been due for {_rounded(webhooks.late_for)}: is `headrace relay` at work?"
        if webhooks.late_for is not None and webhooks.late_for > _LATE_EVENT
        else "",
    ]
    if problems := "; ".join(filter(None, trouble)):
        return Finding("webhooks", Verdict.WARNING, problems)
    summary = f"{webhooks.active:,} endpoints, {webhooks.waiting:,} deliveries wait"
    return Finding("webhooks", Verdict.GOOD, f"{summary}, {webhooks.blocked:,} endpoints are given a rest")


async def _ledger(patient: Patient) -> Finding:
    health = await patient.health()
    last = health.ledger
    if last is None:
        return Finding("ledger", Verdict.GOOD, "it has not been verified yet: a schedule does so every night")
    if not last.is_clean:
        return Finding(
            "ledger",
            Verdict.BAD,
            f"{last.fault_count:,} things do not add up, such as {last.faults[0].about}: {last.faults[0].message} "
            "`headrace ledger verify` names them",
        )
    ago = health.now - last.finished_at
    if ago > _LATE:
        return Finding("ledger", Verdict.WARNING, f"last verified {_rounded(ago)} ago: `headrace ledger verify`")
    return Finding("ledger", Verdict.GOOD, f"all {last.entries:,} entries add up, {_rounded(ago)} ago")


async def _payments(patient: Patient) -> Finding:
    problems = (await patient.health()).order_problems
    if not problems:
        return Finding("payments", Verdict.GOOD, "no order needs attention")
    return Finding(
        "payments",
        Verdict.WARNING,
        f"orders need attention ({', '.join(f'{name}: {count:,}' for name, count in problems.items())}): "
        "`headrace subscriptions orders --problem` lists them, `headrace subscriptions resolve` ends the alarm",
    )


async def _retention(patient: Patient, config: RetentionConfig) -> Finding:
    health = await patient.health()
    failing = [f"{run.table_name}: {run.error}" for run in health.runs if run.error]
    if failing:
        return Finding("retention", Verdict.WARNING, "; ".join(failing))
    async with patient.db.transaction(readonly=True) as tx:
        minimums = await store.list_minimums(tx)
    differing = [(minimum, config.keep(minimum.table_name)) for minimum in minimums]
    longer = [
        f"{minimum.setting} is {model.shown_keep(keep)} here, and the database keeps months for {minimum.shown}: run "
        "`headrace migrate` with this setting"
        for minimum, keep in differing
        if minimum.is_longer_than(keep)
    ]
    if longer:
        return Finding("retention", Verdict.WARNING, "; ".join(longer))
    others = [
        f"the database lets months of {minimum.table_name} leave after {minimum.shown}, and {minimum.setting} is "
        f"{model.shown_keep(keep)} here: run `headrace migrate` with this setting"
        for minimum, keep in differing
        if minimum.keep != keep
    ]
    late = []
    for table in model.MONTHLY.values():
        keep = config.keep(table.name)
        # A month may be a few days late: it waits for its night, and for users of the table.
        due = await retention.due_months(patient.db, table, keep and keep + _LATE)
        late += [table.partition(month) for month in due]
    if late:
        return Finding(
            "retention",
            Verdict.WARNING,
            f"{', '.join(late)} should be archived: run `headrace partitions expire`",
        )
    if others:
        return Finding("retention", Verdict.NOTE, "; ".join(others))
    if not health.runs:
        return Finding("retention", Verdict.GOOD, "nothing is too old; it has not run yet")
    last = max(run.started_at for run in health.runs)
    removed = sum(run.removed_rows for run in health.runs)
    return Finding("retention", Verdict.GOOD, f"ran {_rounded(health.now - last)} ago and removed {removed:,} rows")


def _rounded(duration: timedelta) -> str:
    return str(timedelta(seconds=round(duration.total_seconds())))


async def _deletions(patient: Patient) -> Finding:
    async with patient.db.transaction(readonly=True) as tx:
        overdue = await deletions.count_overdue(tx, by=_OVERDUE)
    if overdue:
        return Finding(
            "deletions",
            Verdict.WARNING,
            f"{overdue} accounts should have been deleted: `headrace admin deletions` shows what they wait for; "
            "without a running API or scheduler they are not carried out",
        )
    return Finding("deletions", Verdict.GOOD, "no account waits longer than it should")


@contextmanager
def noting(findings: list[Finding], check: str) -> Iterator[None]:
    """A check that cannot even be made is a finding, and the others still run."""
    try:
        yield
    except HeadraceError as exc:
        findings.append(Finding(check, Verdict.BAD, exc.message))
    except asyncpg.PostgresError as exc:  # such as a table that is not there, of which "schema" says what to do
        findings.append(Finding(check, Verdict.BAD, f"cannot be checked: {exc}"))
    except OSError as exc:
        findings.append(Finding(check, Verdict.BAD, f"{type(exc).__name__}: {exc}"))
