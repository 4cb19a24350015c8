"""Files go into a folder or a bucket, and come back as they were."""

import asyncio
import errno
import hashlib
import os
import traceback
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from headrace.errors import HeadraceError
from headrace.storage import (
    ObjectNotFound,
    Storage,
    StorageConfig,
    StorageFull,
    StorageRefused,
    StorageUnreachable,
    service,
)
from tests.archive import bucket
from tests.archive.bucket import ACCESS_KEY, SECRET_KEY, Bucket


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
    with pytest.raises(StorageRefused) as refusal:
        await Storage(in_bucket(remote, access_key="SOMEBODY")).probe()
    reason = refusal.value.operator_message
    assert reason.startswith(
        f"s3://months/headrace at {remote.url} refuses the access key (403 Forbidden AccessDenied)"
    )
    assert "\n" not in reason
    assert SECRET_KEY not in reason
    assert remote.refused


UNREACHABLE = {
    "endpoint": "http://ada:swordfish@127.0.0.1:1",
    "access_key_id": "AKIA",
    "secret_access_key": "swordfish",
}


async def verbs(storage: Storage, tmp_path: Path) -> AsyncIterator[HeadraceError]:
    """The error of each verb, on storage where none succeeds."""
    (tmp_path / "out").write_bytes(b"x")
    for attempt in (
        storage.check(),
        storage.put("media/a", tmp_path / "out"),
        storage.put_bytes("media/a", b"x"),
        storage.read_bytes("media/a"),
        storage.fetch("media/a", tmp_path / "in"),
    ):
        with pytest.raises(HeadraceError) as raised:
            await attempt
        yield raised.value


@pytest.mark.parametrize("how", ["missing bucket", "wrong key", "endpoint down", "no folder", "a file as folder"])
async def test_users_read_no_place_and_operators_do(remote: Bucket, tmp_path: Path, how: str) -> None:
    """The message goes to callers of the API, and to owners of failed tasks."""
    remote.missing = how == "missing bucket"
    folder = tmp_path / "inner-folder"
    storage = Storage(
        {
            "missing bucket": in_bucket(remote),
            "wrong key": in_bucket(remote, access_key="SOMEBODY"),
            "endpoint down": StorageConfig("s3://months/headrace", UNREACHABLE, retry_for=timedelta(seconds=0.1)),
        }.get(how)
        or StorageConfig(f"file://{folder}")
    )
    if storage.folder is not None:
        folder.rmdir()
        if how == "a file as folder":
            folder.touch()
    passing = how == "endpoint down"
    async for error in verbs(storage, tmp_path):
        assert isinstance(error, StorageUnreachable)
        assert isinstance(error, StorageRefused) is not passing, error.operator_message
        assert error.message == "Files cannot be stored or read right now: try again later."
        assert error.code == "storage_unreachable"
        assert error.details == {}
        # The whole traceback of a bucket's error goes to the log, and may repeat no signed request.
        shown = "".join(traceback.format_exception(error)) if storage.bucket else str(error)
        assert not any(word in shown for word in ("127.0.0.1", "SOMEBODY", "swordfish", "inner-folder")), shown
        assert ("inner-folder" if storage.folder else "s3://months/headrace at http://") in error.operator_message
        assert not any(word in error.operator_message for word in ("swordfish", "ada:", SECRET_KEY))
    await storage.close()


async def test_a_full_disk_is_no_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process starts on a full disk: files can still be read, and deleting some makes room."""
    storage = Storage(StorageConfig(f"file://{tmp_path}"))

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(StorageFull) as raised:
        await storage.check()
    assert not isinstance(raised.value, StorageRefused)
    assert str(tmp_path) not in raised.value.message
    assert raised.value.operator_message == f"file://{tmp_path} cannot be read or written: No space left on device."


async def test_a_check_that_hangs_ends_as_an_outage(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(service, "_CHECK_WITHIN_S", 0.01)
    storage = Storage(StorageConfig(f"file://{tmp_path}"))

    async def hang(name: str, content: bytes) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(storage, "put_bytes", hang)
    with pytest.raises(StorageUnreachable, match="try again later"):
        await storage.check()


async def test_a_check_writes_reads_and_deletes(remote: Bucket, tmp_path: Path) -> None:
    await Storage(StorageConfig(f"file://{tmp_path}/folder")).check()
    assert [path for path in (tmp_path / "folder").rglob("*") if path.is_file()] == []
    await Storage(in_bucket(remote)).check()
    assert remote.objects == {}
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
