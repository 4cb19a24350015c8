from collections.abc import AsyncIterator

import asyncpg
import httpx2
import pytest

from headrace.database import Database, DatabaseConfig
from tests.edge import stand


@pytest.fixture
async def no_db() -> Database:
    """A database that does not answer: most of what stands around the routes must work without one."""
    return Database(DatabaseConfig("postgresql://nowhere.invalid/none"), asyncpg.create_pool(min_size=0))


@pytest.fixture
async def client(no_db: Database) -> AsyncIterator[httpx2.AsyncClient]:
    async with stand.client(stand.app(no_db)) as opened:
        yield opened
