from collections.abc import AsyncIterator

import pytest

from headrace.database import Database
from tests.billing.shop import Shop, open_shop


@pytest.fixture
async def shop(db: Database) -> AsyncIterator[Shop]:
    async with open_shop(db) as opened:
        yield opened
