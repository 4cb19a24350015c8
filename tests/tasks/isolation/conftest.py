"""Children that the tests of a module share."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from headrace.tasks.isolation.children import Children
from tests.tasks.isolation.stand import Stand, closing


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def shared_children() -> AsyncIterator[Children]:
    """Two children for a whole module: a fresh interpreter takes most of a second."""
    async with closing(Children(size=2)) as children:
        yield children


@pytest_asyncio.fixture(loop_scope="module")
async def stand(shared_children: Children, tmp_path: Path) -> Stand:
    await shared_children.prepare(1)
    return Stand(shared_children, tmp_path)
