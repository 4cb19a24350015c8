from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from fastapi import FastAPI

from headrace.assets.service import Files, Inspects
from headrace.database import Database
from tests.assets import stand
from tests.assets.plain import PlainInspector


@pytest.fixture
async def inspector() -> AsyncIterator[Inspects]:
    yield PlainInspector()


@pytest.fixture
def files(inspector: Inspects, tmp_path: Path) -> Files:
    return stand.files(stand.folder(tmp_path / "files"), inspector, tmp_path / "scratch")


@pytest.fixture
def app(db: Database, files: Files) -> FastAPI:
    return stand.app(db, files)
