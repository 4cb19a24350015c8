"""Archives and months over HTTP, and the figures at /metrics."""

from contextlib import AbstractAsyncContextManager

import httpx2
import pytest

from headrace.admin.figures import HealthFigures
from headrace.archive.retiring import retire_month
from headrace.archive.routes import router
from headrace.audit import Who
from headrace.database import Database, DatabaseConfig
from headrace.storage import Storage, StorageConfig
from headrace.web.app import create_app
from headrace.web.config import WebConfig
from tests.archive.months import MONTH, fill_audit
from tests.edge import stand

ADMIN = {"Authorization": f"Bearer {stand.USER},ADMIN"}


def client(db: Database) -> AbstractAsyncContextManager[httpx2.AsyncClient]:
    return stand.client(create_app(stand.services(db, figures=HealthFigures(db)), WebConfig(), routers=[router]))


async def test_an_administrator_sees_months_and_archives(
    db: Database, owner: DatabaseConfig, place: StorageConfig
) -> None:
    await fill_audit(db, 3)
    archive = (await retire_month(db.config, Storage(place), "audit_events", MONTH, who=Who.system())).archive
    async with client(db) as api:
        partitions = (await api.get("/v1/admin/partitions", headers=ADMIN)).json()["items"]
        assert {"usage_ledger_y2025m03", "audit_events_default"} <= {entry["name"] for entry in partitions}
        (listed,) = (await api.get("/v1/admin/archives?table=audit_events&status=DROPPED", headers=ADMIN)).json()[
            "items"
        ]
        assert (listed["sha256"], listed["rows"]) == (archive.sha256, 3)
        assert (await api.get(f"/v1/admin/archives/{archive.id}", headers=ADMIN)).json() == listed
        assert (await api.get("/v1/admin/archives/audit_events_y2025m03", headers=ADMIN)).json() == listed
        missing = await api.get("/v1/admin/archives/arc_none", headers=ADMIN)
        assert (missing.status_code, missing.json()["code"]) == (404, "archive_not_found")
        assert (await api.post("/v1/admin/partitions", headers=ADMIN)).json() == {"made": [], "problems": []}
        shown = (await api.get("/metrics")).text
    assert 'headrace_archives{state="DROPPED"} 1.0' in shown
    assert 'headrace_partitions_ahead{table="audit_events"} 3.0' in shown
    assert 'headrace_partition_default_rows{table="usage_ledger"} 0.0' in shown
    assert 'headrace_partition_bytes{partition="usage_ledger_y2025m03",table="usage_ledger"}' in shown
    assert 'headrace_table_dead_rows{table="tasks"}' in shown
    assert "headrace_outbox_oldest_unpublished_seconds 0.0" in shown


@pytest.mark.parametrize("path", ["archives", "archives/arc_1", "partitions"])
async def test_nobody_else_does(db: Database, path: str) -> None:
    async with client(db) as api:
        assert (await api.get(f"/v1/admin/{path}", headers=stand.AUTHORIZED)).status_code == 403
        assert (await api.get(f"/v1/admin/{path}")).status_code == 401
