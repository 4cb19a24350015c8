from datetime import timedelta
from pathlib import Path

import pytest

from headrace.database import Database, DatabaseConfig
from headrace.storage import StorageConfig
from tests.archive.months import make_month, name_of, set_minimum
from tests.conftest import TestServer


@pytest.fixture
async def owner(server: TestServer, db: Database) -> DatabaseConfig:
    """The owner of a database that has a month of long ago in each table."""
    for table in ("audit_events", "usage_ledger", "webhook_deliveries"):
        await make_month(server, name_of(db), table)
    await set_minimum(server, name_of(db), "usage_ledger", timedelta(days=180))
    return DatabaseConfig(server.url(name_of(db)))


@pytest.fixture
def place(tmp_path: Path) -> StorageConfig:
    return StorageConfig(f"file://{tmp_path / 'an archive'}")
