"""Worker and scheduler with the application's login alone, on PostgreSQL 15: old months leave all the same."""  # W-17

import asyncio
import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from headrace.database import Database, DatabaseConfig, connect_alone
from headrace.embedded_postgres import Server
from tests.archive.months import MAKE_MONTH, fill_audit
from tests.e2e.conftest import MakeFolder, Start, address
from tests.e2e.program import CHEAP, SECRET_KEY, eventually, run_program

pytestmark = pytest.mark.long


def months_ago(days: int) -> date:
    return (datetime.now(UTC) - timedelta(days=days)).date().replace(day=1)


async def _make_old_months(server: Server, months: list[date]) -> None:
    """Events of long ago, which only a superuser can write."""
    config = DatabaseConfig(server.url_for_superuser)
    async with connect_alone(config) as connection:
        for month in months:
            await connection.execute(MAKE_MONTH, "audit_events", month)
    async with await Database.connect(config) as db:
        for month in months:
            await fill_audit(db, 5, month)


@pytest.mark.slow
def test_up_declares_the_retention_of_its_settings(folder: Path, start: Start) -> None:
    settings = {**CHEAP, "HEADRACE_RETENTION_AUDIT": "60d"}
    start("up", folder=folder, settings=settings).until_ready()
    findings = json.loads(run_program("doctor", "--json", folder=folder, settings=settings).out)
    assert next(each for each in findings if each["check"] == "retention")["verdict"] == "ok"
    minimums = "SELECT table_name, keep FROM headrace.retention_minimums ORDER BY 1"
    shown = run_program("database", "psql", "--", "-At", "-c", minimums, folder=folder, settings=settings)
    assert "audit_events|60 days" in shown.out.splitlines(), shown.err


@pytest.mark.slow
def test_the_service_retires_months_by_schedule(make_folder: MakeFolder, start: Start, debian: Server) -> None:
    here = make_folder()
    service = {
        **CHEAP,
        **SECRET_KEY,
        "HEADRACE_DATABASE_URL": address(debian, "headrace_service", "choose-another"),
        "HEADRACE_DATA_DIR": "data",
        "HEADRACE_RETENTION_AUDIT": "60d",
    }
    owner = {"HEADRACE_DATABASE_OWNER_URL": address(debian, "headrace_migrator", "choose-one")}
    assert run_program("migrate", folder=here, settings=service | owner).code == 0
    old, young = months_ago(120), months_ago(35)
    asyncio.run(_make_old_months(debian, [old, young]))

    for role in ("scheduler", "worker"):
        start(role, folder=here, settings=service)

    def ask(*words: str) -> list[dict[str, object]]:
        done = run_program(*words, "--json", folder=here, settings=service)
        assert done.code == 0, done.err
        found: list[dict[str, object]] = json.loads(done.out)
        return found

    def schedule() -> str | None:
        named = [
            str(each["id"])
            for each in ask("schedules", "list", "--type", "headrace.retain")
            if "audit_events" in str(each["name"])
        ]
        return named[0] if named else None

    assert eventually(schedule)
    name = schedule()
    assert name is not None
    assert run_program("schedules", "run", name, folder=here, settings=service).code == 0

    def status() -> object:
        runs = ask("executions", "list", "--schedule", name)
        return runs[0]["status"] if runs and runs[0]["status"] in ("SUCCEEDED", "FAILED") else None

    assert eventually(status)
    assert status() == "SUCCEEDED"
    (archive,) = ask("archive", "list")
    assert (archive["month"], archive["status"], archive["rows"]) == (str(old), "DROPPED", 5)
    assert len([*here.glob("data/archive/audit_events/*.parquet")]) == 1
    left = {each["month"] for each in ask("partitions", "list") if each["table"] == "audit_events"}
    assert str(old) not in left
    assert str(young) in left
    assert run_program("audit", "verify", folder=here, settings=service).code == 0
