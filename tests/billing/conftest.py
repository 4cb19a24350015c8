from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.billing.shop import Shop, open_shop


@pytest.fixture
async def shop(database_url: str, tmp_path: Path) -> AsyncIterator[Shop]:
    async with open_shop(database_url, tmp_path) as opened:
        yield opened
