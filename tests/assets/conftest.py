from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from fastapi import FastAPI

from headrace.assets.inspection.service import Inspector, InspectorConfig
from headrace.assets.service import Files, Inspects
from headrace.database import Database
from tests.assets import stand
from tests.assets.plain import PlainInspector


@pytest.fixture
def inspector() -> Inspects:
    """Starting a child takes longer than most of these tests; those of the inspection itself do."""
    return PlainInspector()


@pytest.fixture
async def real_inspector() -> AsyncIterator[Inspector]:
    async with Inspector(InspectorConfig(processes=1)) as looking:
        yield looking


@pytest.fixture
def files(inspector: Inspects, tmp_path: Path) -> Files:
    return stand.files(stand.folder(tmp_path / "files"), inspector, tmp_path / "scratch")


@pytest.fixture
def app(db: Database, files: Files) -> FastAPI:
    return stand.app(db, files)
