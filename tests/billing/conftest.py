"""A bench with quota, where tasks are held and settled; and a shop, where plans are bought."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from headrace.assembly.followers import followers
from headrace.database import Database
from tests.billing.shop import Shop, open_shop
from tests.tasks.conftest import Bench


@pytest.fixture
def bench(db: Database, tmp_path: Path) -> Bench:
    made = Bench(db, tmp_path)
    made.followers = followers()
    return made


@pytest.fixture
async def shop(db: Database) -> AsyncIterator[Shop]:
    async with open_shop(db) as opened:
        yield opened
