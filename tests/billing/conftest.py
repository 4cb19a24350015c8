"""A bench with quota: a worker and submitters whose tasks are held and settled."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from headrace.assembly.followers import followers
from headrace.database import Database
from tests.tasks.conftest import Bench


@pytest.fixture
async def bench(db: Database, tmp_path: Path) -> AsyncIterator[Bench]:
    made = Bench(db, tmp_path)
    made.followers = followers()
    return made
