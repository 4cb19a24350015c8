"""Files go into a folder or a bucket, and come back as they were."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.storage import ObjectNotFound, Storage, StorageConfig, StorageUnreachable
from tests.operations import bucket
from tests.operations.bucket import ACCESS_KEY, SECRET_KEY, Bucket


@pytest.fixture
def remote() -> Iterator[Bucket]:
    with bucket.running() as running:
        yield running


def in_bucket(remote: Bucket, *, access_key: str = ACCESS_KEY) -> StorageConfig:
    return StorageConfig(
        "s3://months/headrace",
        {
            "endpoint": remote.url,
            "access_key_id": access_key,
            "secret_access_key": SECRET_KEY,
            "region": "us-east-1",
        },
    )


@pytest.mark.parametrize("size", [0, 1, 12 * 1024 * 1024], ids=["empty", "a byte", "more than a part"])
async def test_a_bucket_keeps_what_it_is_given(remote: Bucket, tmp_path: Path, size: int) -> None:  # W-18
    content = os.urandom(size)
    (tmp_path / "out").write_bytes(content)
    storage = Storage(in_bucket(remote))
    await storage.probe()
    await storage.put("audit_events/x.parquet", tmp_path / "out")
    assert remote.objects["/months/headrace/audit_events/x.parquet"] == content
    digest = await storage.fetch("audit_events/x.parquet", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == content
    assert digest == hashlib.sha256(content).hexdigest()


async def test_a_bucket_that_refuses_is_told_in_a_line(remote: Bucket) -> None:
    with pytest.raises(StorageUnreachable, match="s3://months/headrace cannot be read or written") as refusal:
        await Storage(in_bucket(remote, access_key="SOMEBODY")).probe()
    assert "\n" not in refusal.value.message
    assert SECRET_KEY not in refusal.value.message
    assert remote.refused


async def test_a_check_writes_reads_and_deletes(remote: Bucket, tmp_path: Path) -> None:
    await Storage(StorageConfig(f"file://{tmp_path}/folder")).check()
    assert [path for path in (tmp_path / "folder").rglob("*") if path.is_file()] == []
    with pytest.raises(StorageUnreachable):
        await Storage(in_bucket(remote, access_key="SOMEBODY")).check()


async def test_what_is_not_there_is_not_found(remote: Bucket, tmp_path: Path) -> None:
    for config in (in_bucket(remote), StorageConfig(f"file://{tmp_path}/folder")):
        with pytest.raises(ObjectNotFound):
            await Storage(config).fetch("nothing", tmp_path / "back")


async def test_a_folder_keeps_what_it_is_given(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"rows")
    storage = Storage(StorageConfig(f"file://{tmp_path}/a folder"))
    await storage.probe()
    for _ in range(2):
        await storage.put("t/x.parquet", tmp_path / "out")
    assert await storage.fetch("t/x.parquet", tmp_path / "back") == hashlib.sha256(b"rows").hexdigest()
    assert [path.name for path in (tmp_path / "a folder").glob("t/*")] == ["x.parquet"]


def test_a_place_of_no_known_kind_is_refused() -> None:
    with pytest.raises(StorageUnreachable):
        Storage(StorageConfig("gopher://host/months"))


def test_a_folder_that_is_made_for_archives_is_nobody_else_s(tmp_path: Path) -> None:
    Storage(StorageConfig(f"file://{tmp_path / 'above' / 'archive'}"))
    assert (tmp_path / "above" / "archive").stat().st_mode & 0o077 == 0
