"""``headrace partitions`` and ``headrace archive``, from the first month to the last row."""

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import asyncpg
import pytest

from headrace import ids
from headrace.archive.model import MONTHLY
from headrace.assembly.retention import ROWS as RULES
from headrace.database import Database, DatabaseConfig
from headrace.settings import Settings
from tests.archive import bucket
from tests.archive.bucket import ACCESS_KEY, SECRET_KEY, Bucket
from tests.archive.months import fill_audit, make_month
from tests.archive.test_retention import EXECUTION, LOCKS, OUTBOX
from tests.cli.conftest import Call, Place
from tests.cli.test_admin import fetch
from tests.cli.test_doctor import findings
from tests.conftest import TestServer

NAME = "audit_events_y2025m03"


@pytest.fixture
async def old(server: TestServer, migrated: Place) -> Place:
    """A database with three events of long ago."""
    await make_month(server, migrated.name, "audit_events")
    async with await Database.connect(DatabaseConfig(migrated.app_url)) as db:
        await fill_audit(db, 3)
    return migrated


def test_the_life_of_a_month(call: Call, old: Place, tmp_path: Path) -> None:  # W-17, W-18
    place = {**old.settings, "HEADRACE_ARCHIVE_URL": str(tmp_path / "cold")}
    listed = json.loads(call("partitions", "list", "--json", settings=place).out)
    assert NAME in {entry["name"] for entry in listed}
    assert {entry["month"] for entry in listed if entry["name"].endswith("_default")} == {None}

    expired = call("partitions", "expire", "audit_events", "--json", settings=place)
    assert expired.code == 0, expired.err
    (run,) = json.loads(expired.out)
    assert (run["removed_rows"], run["error"]) == (3, None)
    assert 0 < run["longest_lock_ms"] < 100

    (archive,) = json.loads(call("archive", "list", "--json", settings=place).out)
    assert (archive["table"], archive["month"], archive["rows"], archive["status"]) == (
        "audit_events",
        "2025-03-01",
        3,
        "DROPPED",
    )
    assert archive["min_at"] == "2025-03-01T00:00:00Z"
    assert f"✓ {NAME}: as it was written" in call("archive", "verify", settings=place).out

    sealed = json.loads(call("audit", "verify", "--month", "2025-03", "--json", settings=place).out)
    assert (sealed["ok"], sealed["events"], sealed["not_looked_at"]) == (True, 3, [])

    sql = "SELECT resource->>'identifier' AS task, user_agent FROM audit_events ORDER BY 1"
    answer = call("archive", "query", sql, "--json", settings=place)
    assert json.loads(answer.out) == [
        {"task": "tsk_1", "user_agent": 'curl,"x"\r\n'},
        {"task": "tsk_2", "user_agent": None},
        {"task": "tsk_3", "user_agent": ""},
    ]
    times = call("archive", "query", "SELECT min(created_at) AS first FROM audit_events", "--json", settings=place)
    assert json.loads(times.out) == [{"first": "2025-03-01T00:00:00+00:00"}], times.err
    assert "from 0 archives" in call("archive", "query", "SELECT 1", settings=place).err

    assert "_restored" in call("archive", "restore", NAME, settings=place).out
    assert call("archive", "restore", NAME, settings=place).code == 4
    assert f"restored as headrace.{NAME}_restored" in call("archive", "list", settings=place).out
    assert call("archive", "discard", NAME, settings=place).code == 0

    (file,) = (tmp_path / "cold").rglob("*.parquet")
    file.write_bytes(file.read_bytes()[:-1])
    damaged = call("archive", "verify", settings=place)
    assert damaged.code == 1
    assert f"✗ {NAME}: " in damaged.out
    assert call("archive", "restore", NAME, settings=place).code != 0
    assert "is not the file that was written" in call("archive", "query", sql, settings=place).err


def test_what_is_to_be_kept_for_ever_is_kept(call: Call, old: Place, tmp_path: Path) -> None:  # W-18
    fetch(old, EXECUTION.replace("$1", f"'{ids.new('sch')}'").replace("$2", f"'{ids.SYSTEM_USER}'"))
    fetch(old, LOCKS)
    fetch(old, OUTBOX)
    place = {**old.settings, "HEADRACE_ARCHIVE_URL": str(tmp_path / "cold")}
    keeps = [
        name for name in Settings.model_fields if name.startswith("retention_") and name != "retention_archive_rows"
    ]
    forever = {**place, **{f"HEADRACE_{name.upper()}": "forever" for name in keeps}}

    kept = call("partitions", "expire", "--json", settings=forever)
    assert kept.code == 0, kept.err
    assert {run["table"]: (run["removed_rows"], run["error"]) for run in json.loads(kept.out)} == dict.fromkeys(
        (*RULES, *MONTHLY), (0, None)
    )
    assert not (tmp_path / "cold").exists()
    doctor = json.loads(call("doctor", "--json", settings=forever).out)
    assert next(each for each in doctor if each["check"] == "retention")["verdict"] == "note", (
        "migrate does not have it"
    )
    shown = json.loads(call("settings", "show", "--json", settings=forever).out)
    assert {shown[name] for name in keeps} == {"forever"}

    gone = json.loads(call("partitions", "expire", "--json", settings=place).out)
    assert {run["table"]: run["removed_rows"] for run in gone if run["removed_rows"]} == {
        "audit_events": 3,
        "task_executions": 2,
        "task_locks": 2,
        "outbox_events": 2,
    }, "the same rows go without the word"


def test_months_expire_before_rows_and_rows_show_their_progress(call: Call, old: Place, tmp_path: Path) -> None:
    """All rows went first, for minutes and without a word, though `doctor` recommends the command for months."""
    fetch(old, EXECUTION.replace("$1", f"'{ids.new('sch')}'").replace("$2", f"'{ids.SYSTEM_USER}'"))
    done = call("partitions", "expire", settings={**old.settings, "HEADRACE_ARCHIVE_URL": str(tmp_path / "cold")})
    assert done.code == 0, done.err
    steps = [line.removeprefix("· ") for line in done.err.splitlines()]
    month = next(number for number, step in enumerate(steps) if step.startswith(f"retiring {NAME}"))
    rows = steps.index("removing rows of task_executions: 2 so far")
    assert month < rows


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_text('/etc/passwd')",
        "COPY (SELECT 1) TO 'here.csv'",
        "SELECT * FROM users",
        "not SQL",
    ],
)
def test_a_query_reads_the_archives_and_nothing_else(call: Call, old: Place, tmp_path: Path, sql: str) -> None:
    done = call("archive", "query", sql, settings=old.settings)
    assert done.code == 2, done
    assert "should not have happened" not in done.err
    assert not (tmp_path / "here.csv").exists()


def test_a_query_does_not_even_look_for_other_files(call: Call, old: Place, tmp_path: Path) -> None:
    done = call("archive", "query", f"SELECT * FROM read_csv('{tmp_path}/nothing.csv')", settings=old.settings)
    assert done.code == 2
    assert "disabled by configuration" in " ".join(done.err.split())


@pytest.fixture
def remote() -> Iterator[Bucket]:
    with bucket.running() as running:
        yield running


def test_a_month_goes_into_a_bucket_and_is_asked_there(call: Call, old: Place, remote: Bucket) -> None:
    place = {
        **old.settings,
        "HEADRACE_ARCHIVE_URL": "s3://months/headrace",
        "HEADRACE_ARCHIVE_S3_ENDPOINT": remote.url,
        "HEADRACE_ARCHIVE_S3_REGION": "us-east-1",
        "HEADRACE_ARCHIVE_S3_ACCESS_KEY": ACCESS_KEY,
        "HEADRACE_ARCHIVE_S3_SECRET_KEY": SECRET_KEY,
    }
    retired = call("partitions", "retire", "audit_events", "2025-03", settings=place)
    assert retired.code == 0, retired.err
    assert "3 rows" in retired.out
    assert len([name for name in remote.objects if name.endswith(".parquet")]) == 1
    count = call("archive", "query", "SELECT count(*) AS n FROM audit_events", "--json", settings=place)
    assert json.loads(count.out) == [{"n": 3}]
    until = ["--until", "2025-02", "--json"]
    assert call("archive", "query", "SELECT count(*) AS n FROM audit_events", *until, settings=place).code == 3
    assert call("archive", "query", "SELECT broken FROM audit_events", settings=place).code == 2


def test_a_query_for_months_that_are_not_archived_says_so(call: Call, old: Place) -> None:
    done = call("archive", "query", "SELECT * FROM audit_events", "--since", "2026-01", settings=old.settings)
    assert done.code == 3
    assert done.err.endswith(
        "Nothing of audit_events from 2026-01 on is archived: `headrace archive list` shows the archives.\n"
    )


@pytest.fixture
async def monthless(server: TestServer, migrated: Place) -> Place:
    """A database without this month, whose events fit nowhere but in the default partition."""
    await server.run(f"DROP TABLE headrace.audit_events{datetime.now(UTC):_y%Ym%m}", database=migrated.name)
    return migrated


def test_months_that_cannot_be_made_are_a_failure(call: Call, monthless: Place) -> None:
    call("admin", "create", "root", settings=monthless.settings)
    done = call("partitions", "ahead", settings=monthless.settings)
    assert (done.code, "not made: audit_events: its default partition holds rows" in done.out) == (1, True)


def test_a_month_that_was_made_again_is_no_success(call: Call, server: TestServer, old: Place) -> None:
    assert call("partitions", "retire", "audit_events", "2025-03", settings=old.settings).code == 0
    asyncio.run(make_month(server, old.name, "audit_events"))
    done = call("partitions", "retire", "audit_events", "2025-03", settings=old.settings)
    assert (done.code, f"made again since: headrace.{NAME} stays" in done.err) == (4, True)
    assert call("partitions", "expire", "audit_events", settings=old.settings).code == 1


def test_months_leave_without_the_owner_s_address(call: Call, old: Place) -> None:
    settings = {name: value for name, value in old.settings.items() if name != "HEADRACE_DATABASE_OWNER_URL"}
    assert f"{NAME} should be archived" in findings(call("doctor", "--json", settings=settings))["retention"]["message"]
    done = call("partitions", "expire", "audit_events", settings=settings)
    assert done.code == 0, done.err
    assert findings(call("doctor", "--json", settings=settings))["retention"]["verdict"] == "ok"
    restore = call("archive", "restore", NAME, settings=settings)
    assert restore.code == 5
    assert "set HEADRACE_DATABASE_OWNER_URL to a member of headrace_owner" in restore.err


def test_migrate_decides_how_young_a_month_may_leave(call: Call, server: TestServer, old: Place) -> None:
    month = (datetime.now(UTC).replace(day=1) - timedelta(days=100)).date().replace(day=1)
    asyncio.run(make_month(server, old.name, "audit_events", month))
    shorter = {**old.settings, "HEADRACE_RETENTION_AUDIT": "60d"}
    named = findings(call("doctor", "--json", settings=shorter))["retention"]
    assert (named["verdict"], named["message"]) == (
        "warning",
        "HEADRACE_RETENTION_AUDIT is 60 days here, and the database keeps months for 180 days: run `headrace migrate` "
        "with this setting",
    )
    young = call("partitions", "retire", "audit_events", f"{month:%Y-%m}", settings=shorter)
    assert young.code == 4
    assert "to shorten that, run `headrace migrate` with HEADRACE_RETENTION_AUDIT" in young.err
    expired = call("partitions", "expire", "audit_events", "--json", settings=shorter)
    assert expired.code == 1
    (run,) = json.loads(expired.out)
    assert run["removed_rows"] == 3, "what is old enough goes all the same"

    assert "SET keep = interval '60 days 0 seconds'" in call("migrate", "--sql", settings=shorter).out
    moved = call("migrate", settings=shorter)
    assert moved.err.splitlines()[-1] == "months of audit_events stay for at least 60 days"
    assert json.loads(call("migrate", "--json", settings=shorter).out)["retention"] == {}
    (run,) = json.loads(call("partitions", "expire", "audit_events", "--json", settings=shorter).out)
    assert (run["error"], [each["month"] for each in run["retired"]]) == (None, [str(month)])
    longer = findings(call("doctor", "--json", settings=old.settings))["retention"]
    assert longer["verdict"] == "note"
    assert "leave after 60 days, and HEADRACE_RETENTION_AUDIT is 180 days here" in longer["message"]


def test_a_month_is_written_as_a_month(call: Call, old: Place) -> None:
    done = call("partitions", "retire", "audit_events", "March", settings=old.settings)
    assert (done.code, "write it as 2026-01" in done.err) == (2, True)


def test_a_table_without_a_time_to_keep_is_refused(call: Call, old: Place) -> None:
    done = call("partitions", "expire", "users", settings=old.settings)
    assert (done.code, "users has no retention period; these have one: " in done.err) == (2, True)


@pytest.fixture
async def behind(server: TestServer, migrated: Place) -> Place:
    connection = await asyncpg.connect(server.url(migrated.name))
    names = await connection.fetch("SELECT tablename FROM pg_tables WHERE tablename ~ 'ledger_y' ORDER BY 1 DESC")
    for row in names[:3]:
        await connection.execute(f"DROP TABLE headrace.{row['tablename']}")
    await connection.close()
    return migrated


def test_missing_months_are_noticed_and_made(call: Call, behind: Place) -> None:
    told = call("doctor", settings=behind.settings).out
    assert "next month's partition is missing for usage_ledger: run `headrace partitions ahead`" in told
    assert len(json.loads(call("partitions", "ahead", "--json", settings=behind.settings).out)["made"]) == 3
    assert call("partitions", "ahead", settings=behind.settings).out == "all there\n"


def test_doctor_says_what_should_have_gone(call: Call, old: Place) -> None:
    assert f"{NAME} should be archived: run `headrace partitions expire`" in call("doctor", settings=old.settings).out
    call("partitions", "expire", settings=old.settings)
    assert "and removed 3 rows" in call("doctor", settings=old.settings).out
