"""A bench with quota: a worker and submitters whose tasks are held and settled."""

from pathlib import Path

import pytest

from headrace.assembly.followers import followers
from headrace.database import Database
from tests.tasks.conftest import Bench


@pytest.fixture
def bench(db: Database, tmp_path: Path) -> Bench:
    made = Bench(db, tmp_path)
    made.followers = followers()
    return made
