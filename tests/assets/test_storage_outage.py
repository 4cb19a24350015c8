"""A missing bucket, a wrong key, an endpoint that is down, a folder that is gone: what users of the API read. W-02."""

import hashlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest
from structlog.testing import capture_logs

from headrace import Headrace
from headrace.assets.service import Inspects
from headrace.database import Database
from headrace.storage import Storage, StorageConfig
from headrace.tasks.model import TaskStatus
from tests.archive import bucket
from tests.archive.bucket import ACCESS_KEY, SECRET_KEY, Bucket
from tests.assets import stand
from tests.assets.saving_program import CONFIG, registry
from tests.assets.stand import png
from tests.edge import stand as edge

WITHIN = timedelta(seconds=60)
HOW = ["missing bucket", "wrong key", "endpoint down", "folder gone"]


@pytest.fixture
def remote() -> Iterator[Bucket]:
    with bucket.running() as running:
        yield running


def config_of(remote: Bucket, how: str, tmp_path: Path) -> StorageConfig:
    """Storage that works, until ``break_down``; but for the wrong key, which never does."""
    if how == "folder gone":
        return StorageConfig(f"file://{tmp_path}/inner-folder")
    options = {
        "endpoint": remote.url,
        "access_key_id": "AKIAWRONG" if how == "wrong key" else ACCESS_KEY,
        "secret_access_key": SECRET_KEY,
        "region": "us-east-1",
    }
    return StorageConfig("s3://inner-bucket/files", options, retry_for=timedelta(seconds=0.1))


def break_down(remote: Bucket, how: str, tmp_path: Path) -> None:
    if how == "missing bucket":
        remote.missing = True
    elif how == "endpoint down":
        remote.shutdown()
        remote.server_close()
    elif how == "folder gone":
        (tmp_path / "inner-folder").rename(tmp_path / "elsewhere")


@asynccontextmanager
async def opened(
    config: StorageConfig, inspector: Inspects, tmp_path: Path, db: Database
) -> AsyncIterator[httpx2.AsyncClient]:
    storage = Storage(config)
    app = stand.app(db, stand.files(storage, inspector, tmp_path / "scratch"))
    async with edge.client(app, Authorization=f"Bearer {await edge.user(db, 'ada')}") as client:
        yield client
    await storage.close()


def refused(reply: httpx2.Response, tmp_path: Path) -> None:
    """503 with a stable code, and nothing that says where files are kept."""
    assert (reply.status_code, reply.json()["code"]) == (503, "storage_unreachable"), reply.text
    assert reply.headers["Retry-After"] == "1"
    for word in ("inner-", "127.0.0.1", "AKIA", SECRET_KEY, str(tmp_path)):
        assert word not in reply.text


@pytest.mark.parametrize("how", HOW)
async def test_users_read_503_and_no_place(
    how: str, remote: Bucket, inspector: Inspects, db: Database, tmp_path: Path
) -> None:
    content = png(tail=100)
    config = config_of(remote, how, tmp_path)
    async with opened(config, inspector, tmp_path, db) as ada:
        made = await ada.post("/v1/assets", content=content)
        announced = {"name": "x", "size_bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        upload = (await ada.post("/v1/uploads", json=announced)).json()
        break_down(remote, how, tmp_path)
        with capture_logs() as logged:
            if how != "wrong key":
                assert made.status_code == 201
                refused(await ada.get(f"/v1/assets/{made.json()['id']}/content"), tmp_path)
                refused(await ada.get(f"/v1/assets/{made.json()['id']}/preview"), tmp_path)
            refused(await ada.post("/v1/assets", content=png(shade=7)), tmp_path)
            refused(await ada.put(f"/v1/uploads/{upload['id']}/parts/1", content=content), tmp_path)
        reasons = [each["reason"] for each in logged if each["event"] == "request.unserved"]
        assert len(reasons) == (2 if how == "wrong key" else 4)
        assert all("inner-folder" in each or f"s3://inner-bucket/files at {remote.url}" in each for each in reasons)
        assert SECRET_KEY not in str(logged)


@pytest.mark.parametrize("name", ["report", "threaded", "confined"])
async def test_the_owner_of_a_task_whose_file_cannot_be_saved_reads_no_place(
    name: str, database_url: str, db: Database, tmp_path: Path
) -> None:
    (tmp_path / "inner-file").touch()
    user_id = await edge.user(db, "ada")
    async with Headrace(database_url, registry, files_url=str(tmp_path / "inner-file" / "files")) as hr:
        task_id = await hr.submit(name, {}, user_id=user_id, max_attempts=1)
        async with hr.working(CONFIG):
            task = await hr.wait(task_id, within=WITHIN)
    assert task.status is TaskStatus.FAILED
    assert task.error_message is not None
    assert "Files cannot be stored or read right now" in task.error_message
    assert "inner-file" not in task.error_message
