from collections.abc import AsyncIterator

import pytest

from tests.billing.shop import Shop, open_shop


@pytest.fixture
async def shop(database_url: str) -> AsyncIterator[Shop]:
    async with open_shop(database_url) as opened:
        yield opened
