from collections.abc import AsyncIterator

import httpx2
import pytest

from headrace.database import Database
from tests.edge import stand


@pytest.fixture
def behaviour() -> stand.Behaviour:
    return stand.Behaviour()


@pytest.fixture
async def client(db: Database, behaviour: stand.Behaviour) -> AsyncIterator[httpx2.AsyncClient]:
    """A caller who is signed in."""
    async with stand.client(stand.app(db, behaviour), **stand.AUTHORIZED) as opened:
        yield opened
