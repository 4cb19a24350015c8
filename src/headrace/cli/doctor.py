"""``headrace doctor``: look at everything Headrace stands on and say what to mend."""

import shutil
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

import asyncpg
import typer

from headrace import migrations
from headrace.accounts.store import deletions
from headrace.cli.output import Json, out, print_json, progress
from headrace.cli.wiring import Place, data_folder, database_of, load_settings, run, secret_key
from headrace.database import Database
from headrace.errors import HeadraceError
from headrace.settings import Settings

_LITTLE_SPACE = 2 * 1024**3
_MUCH_SKEW_S = 2.0
_OVERDUE = timedelta(hours=1)


class Verdict(StrEnum):
    GOOD = "ok"
    WARNING = "warning"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Finding:
    check: str
    verdict: Verdict
    message: str


def doctor(json: Json = False) -> None:
    """Check settings, storage, database, schema, rights and clocks, and say what to mend; exits with 1 if bad."""
    findings: list[Finding] = []
    try:
        settings = load_settings()
    except HeadraceError as exc:
        findings.append(Finding("settings", Verdict.BAD, exc.message))
    else:
        findings.append(Finding("settings", Verdict.GOOD, f"{len(settings.model_fields_set)} of them chosen by you"))
        findings += [_storage(settings), _secret(settings)]
        with (
            _noting(findings, "database"),
            progress("looking at the database") as report,
            database_of(settings, role="doctor", report=report) as place,
        ):
            findings += run(_look_at_database(place))
    if json:
        print_json([asdict(finding) for finding in findings])
    else:
        _print(findings)
    if any(finding.verdict is Verdict.BAD for finding in findings):
        raise typer.Exit(1)


def _storage(settings: Settings) -> Finding:
    try:
        folder = data_folder(settings)
        probe = folder / ".doctor"
        probe.write_bytes(b"?")
        probe.unlink()
    except HeadraceError as exc:
        return Finding("storage", Verdict.BAD, exc.message)
    except OSError as exc:
        return Finding("storage", Verdict.BAD, f"{settings.data_dir} cannot be written to: {exc.strerror}")
    free = shutil.disk_usage(folder).free
    verdict = Verdict.GOOD if free > _LITTLE_SPACE else Verdict.WARNING
    return Finding("storage", verdict, f"{folder} is writable, {free / 1024**3:.1f} GiB free")


def _secret(settings: Settings) -> Finding:
    try:
        secret_key(settings)
    except HeadraceError:
        return Finding(
            "secret key", Verdict.WARNING, "none yet: `headrace up` makes one, `headrace api` needs HEADRACE_SECRET_KEY"
        )
    return Finding("secret key", Verdict.GOOD, "there")


async def _look_at_database(place: Place) -> list[Finding]:
    findings: list[Finding] = []
    async with await Database.connect(place.app) as db:
        findings.append(Finding("database", Verdict.GOOD, f"{place.app.place} answers"))
        checks: Sequence[tuple[str, Callable[[Database], Awaitable[Finding]]]] = [
            ("version", _version),
            ("clock", _clock),
            ("rights", _rights),
            ("partitions", _partitions),
            ("deletions", _deletions),
        ]
        with _noting(findings, "schema"):
            findings.append(await _schema(place))
        for name, check in checks:
            with _noting(findings, name):
                findings.append(await check(db))
    return findings


async def _version(db: Database) -> Finding:
    async with db.transaction(readonly=True) as tx:
        version = int(await tx.fetchval("SELECT current_setting('server_version_num')"))
    if version // 10000 < migrations.runner.OLDEST_SERVER:
        return Finding("version", Verdict.BAD, f"PostgreSQL {version // 10000} is too old: 15 or newer is needed")
    return Finding("version", Verdict.GOOD, f"PostgreSQL {version // 10000}.{version % 10000}")


async def _schema(place: Place) -> Finding:
    try:
        await migrations.verify_current(place.app)
    except HeadraceError as exc:
        return Finding("schema", Verdict.BAD, exc.message)
    changed = (await migrations.status(place.app)).changed
    if changed:
        return Finding(
            "schema", Verdict.WARNING, f"{changed[0].number:04}_{changed[0].name} was edited after it was applied"
        )
    return Finding("schema", Verdict.GOOD, f"at {migrations.available()[-1]}")


async def _clock(db: Database) -> Finding:
    async with db.transaction(readonly=True) as tx:
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


async def _rights(db: Database) -> Finding:
    async with db.transaction(readonly=True) as tx:
        me = await tx.fetchrow(WHO_AM_I)
    assert me is not None
    if me["is_superuser"] or me["is_owner"] or me["may_rewrite_audit"]:
        return Finding(
            "rights",
            Verdict.WARNING,
            f"the application connects as {me['name']}, who may change more than it needs: give HEADRACE_DATABASE_URL "
            "a member of headrace_app and keep this one in HEADRACE_DATABASE_OWNER_URL",
        )
    return Finding("rights", Verdict.GOOD, f"connects as {me['name']}, who cannot rewrite the audit trail")


MISSING_PARTITIONS = """
SELECT parent.relname
FROM pg_partitioned_table partitioned
JOIN pg_class parent ON parent.oid = partitioned.partrelid
WHERE parent.relnamespace = 'headrace'::regnamespace
  AND to_regclass(format('headrace.%I', parent.relname || to_char(now() + interval '1 month', '"_y"YYYY"m"MM'))) IS NULL
ORDER BY 1
"""


async def _partitions(db: Database) -> Finding:
    async with db.transaction(readonly=True) as tx:
        missing = [row["relname"] for row in await tx.fetch(MISSING_PARTITIONS)]
    if missing:
        return Finding("partitions", Verdict.WARNING, f"next month's partition is missing for {', '.join(missing)}")
    return Finding("partitions", Verdict.GOOD, "next month's are there")


async def _deletions(db: Database) -> Finding:
    async with db.transaction(readonly=True) as tx:
        overdue = await deletions.count_overdue(tx, by=_OVERDUE)
    if overdue:
        return Finding(
            "deletions",
            Verdict.WARNING,
            f"{overdue} accounts should have been deleted: `headrace admin deletions` says what they wait for; "
            "without a running API nobody carries them out",
        )
    return Finding("deletions", Verdict.GOOD, "no account waits longer than it should")


@contextmanager
def _noting(findings: list[Finding], check: str) -> Iterator[None]:
    """A check that cannot even be made is a finding, and the others still run."""
    try:
        yield
    except HeadraceError as exc:
        findings.append(Finding(check, Verdict.BAD, exc.message))
    except asyncpg.PostgresError as exc:  # such as a table that is not there, of which "schema" says what to do
        findings.append(Finding(check, Verdict.BAD, f"cannot be checked: {exc}"))
    except OSError as exc:
        findings.append(Finding(check, Verdict.BAD, f"{type(exc).__name__}: {exc}"))


def _print(findings: list[Finding]) -> None:
    marks = {Verdict.GOOD: "[green]✓[/]", Verdict.WARNING: "[yellow]![/]", Verdict.BAD: "[red]✗[/]"}
    for finding in findings:
        out.print(f"{marks[finding.verdict]} [bold]{finding.check:<11}[/] ", end="")
        out.print(finding.message, markup=False, soft_wrap=True)
