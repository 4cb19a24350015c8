import secrets
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI

from headrace.assets.inspection.service import Inspector, InspectorConfig
from headrace.assets.service import Files, Inspects
from headrace.database import Database
from headrace.storage import Storage
from tests.assets import stand
from tests.assets.plain import PlainInspector
from tests.missing_programs import missing
from tests.swift import Swift, is_installed, running


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


@pytest.fixture(scope="module")
def swift(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Swift]:
    """A real S3 server, there as long as tests need it."""
    if not is_installed():
        pytest.skip(missing("Swift"))
    with running(tmp_path_factory.mktemp("swift") / "s") as server:
        yield server


@pytest.fixture
async def bucket_files(swift: Swift, inspector: Inspects, tmp_path: Path) -> AsyncIterator[Files]:
    """Files in a bucket of their own."""
    name = f"b{secrets.token_hex(6)}"
    swift.make_bucket(name)
    storage = Storage(swift.config(name))
    yield stand.files(storage, inspector, tmp_path / "scratch")
    await storage.close()


@pytest.fixture
def app(db: Database, files: Files) -> FastAPI:
    return stand.app(db, files)
