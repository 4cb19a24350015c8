"""Must be seen: an upload that is killed, cut off or has no room at any stage is resumed or gone; nothing claims bytes
that are not there, and no bytes stay for ever. W-02, W-18."""

import asyncio
import contextlib
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from headrace.assets import parts
from headrace.assets.errors import PartsMissing
from headrace.assets.expiry import let_go
from headrace.assets.service import Files
from headrace.assets.sweep import sweep
from headrace.database import Database
from headrace.storage import Storage, StorageConfig
from tests.assets import stand
from tests.assets.plain import PlainInspector
from tests.assets.stand import png
from tests.conftest import ROOT, TestServer
from tests.edge.stand import USER
from tests.tasks.people import caller_of

pytestmark = pytest.mark.long

POINTS = range(1, 26)
AT_ONCE = timedelta(seconds=-5)


def folder_of(files: Files) -> list[str]:
    assert files.storage.folder is not None
    top = files.storage.folder.top
    return sorted(path.relative_to(top).as_posix() for path in top.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("points", "method", "harm"),
    [
        pytest.param(POINTS[::8], "stream", "kill", id="some-stream-kill"),
        pytest.param(POINTS[::8], "parts", "cut", id="some-parts-cut"),
        *(
            pytest.param(POINTS, method, harm, id=f"every-{method}-{harm}", marks=pytest.mark.slow)
            for method in ("stream", "parts")
            for harm in ("kill", "cut")
        ),
    ],
)
@pytest.mark.timeout(600)
async def test_an_upload_that_is_harmed_at_any_point_is_resumed_or_gone(
    db: Database, database_url: str, server: TestServer, tmp_path: Path, method: str, harm: str, points: range
) -> None:  # W-02
    storage = Storage(StorageConfig(f"file://{tmp_path / 'files'}"))
    files = stand.files(storage, PlainInspector(), tmp_path / "scratch")
    superuser = server.url(urlsplit(database_url).path.strip("/"))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.races.upload_process", database_url, superuser, str(tmp_path / "files")),
        cwd=ROOT, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    harmed = 0
    try:
        for point in points:
            process.stdin.write(f"{method} {harm} {point}\n".encode())
            async with asyncio.timeout(60):
                harmed += (await process.stdout.readline()).strip() == b"-9"
            await every_file_has_its_bytes(db, files)
            await resume(db, files)
            await every_file_has_its_bytes(db, files)
        # A day later nothing is left but files.
        await let_go(files, db, now=datetime.now(UTC) + timedelta(days=2))
        await sweep(files, db, older_than=AT_ONCE)
        rows = await db.fetch_alone("SELECT storage_key FROM headrace.assets WHERE status = 'UPLOADED'")
        assert folder_of(files) == sorted({f"media/{row['storage_key'].partition('#')[0]}" for row in rows})
        assert await db.fetch_alone("SELECT FROM headrace.uploads WHERE status <> 'COMPLETED'") == []
    finally:
        process.kill()
        await process.wait()
    assert harmed > 0 or harm == "cut"


async def resume(db: Database, files: Files) -> None:
    """Whoever comes back completes what is there; a lease of the dead is over first."""
    async with db.transaction() as tx:
        await tx.execute("UPDATE headrace.uploads SET lease_until = now() - interval '1 s' WHERE status = 'COMPLETING'")
        left = await tx.fetch(
            "SELECT id FROM headrace.uploads WHERE method = 'PARTS' AND status IN ('OPEN', 'COMPLETING')"
        )
    for row in left:
        with contextlib.suppress(PartsMissing):
            await parts.complete(files, db, caller_of(USER), row["id"])


async def every_file_has_its_bytes(db: Database, files: Files) -> None:
    for row in await db.fetch_alone("SELECT * FROM headrace.assets WHERE status = 'UPLOADED'"):
        name = f"{row['storage_bucket']}/{row['storage_key'].partition('#')[0]}"
        assert await files.storage.size_of(name) == row["size_bytes"]


@pytest.mark.parametrize("method", ["stream", "parts"])
async def test_a_storage_without_room_keeps_nothing(
    db: Database, database_url: str, server: TestServer, tmp_path: Path, method: str
) -> None:  # W-02
    superuser = server.url(urlsplit(database_url).path.strip("/"))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.races.upload_process", database_url, superuser, str(tmp_path / "files")),
        cwd=ROOT, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    async with asyncio.timeout(60):
        told, said = await process.communicate(f"{method} full 0\n".encode())
    assert told.strip() == b"28", said.decode()[-2000:]  # storage_full
    storage = Storage(StorageConfig(f"file://{tmp_path / 'files'}"))
    files = stand.files(storage, PlainInspector(), tmp_path / "scratch")
    assert folder_of(files) == []
    assert await db.fetch_alone("SELECT FROM headrace.assets") == []
    await let_go(files, db, now=datetime.now(UTC) + timedelta(days=2))
    assert await db.fetch_alone("SELECT FROM headrace.uploads") == []
    assert png()
