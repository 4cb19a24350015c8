"""One inspector for all tests of a module: its children are slow to start, and stay warm."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from headrace.assets.inspection.service import Inspector
from tests.assets.inspection.bad_files import CONFIG

Keep = Callable[[bytes], Path]


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def inspector() -> AsyncIterator[Inspector]:
    async with Inspector(CONFIG) as opened:
        yield opened


@pytest.fixture
def keep(tmp_path: Path) -> Keep:
    """Write bytes to a file whose name says nothing."""

    def write(content: bytes) -> Path:
        path = tmp_path / "upload"
        path.write_bytes(content)
        return path

    return write
