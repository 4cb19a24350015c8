"""Several results as one archive: whole, in order, of the length that was said, and nobody else's."""

import io
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import httpx2
import pytest
from fastapi import Request
from fastapi.responses import StreamingResponse

from headrace import ids
from headrace.assets.errors import ReadingEnded
from headrace.assets.handing_out import result_content
from headrace.assets.results import ResultFiles, record
from headrace.assets.service import Files
from headrace.assets.store import results
from headrace.assets.zipping import Entry, length_of, serve_archive, unique_names
from headrace.database import Database
from tests.assets import stand
from tests.edge import stand as edge

TASK = """
INSERT INTO headrace.tasks (id, user_id, task_type, title, status, finished_at)
VALUES ($1, $2, 'any', 't', 'SUCCEEDED', now())
RETURNING id
"""
NAMES = ["cat.png", "cat.png", "Cat.png", "水.png", "plain.png", "a.b.png", "cat (2).png"]


def test_no_file_of_an_archive_hides_another() -> None:
    found = unique_names(NAMES)
    assert found == ["cat.png", "cat (2).png", "Cat (3).png", "水.png", "plain.png", "a.b.png", "cat (2) (2).png"]
    assert unique_names([".hidden", ".hidden"]) == [".hidden", ".hidden (2)"]


def test_of_several_gigabytes_the_length_is_not_told() -> None:
    assert length_of(["a"], [2**31]) is None


async def make_result(db: Database, files: Files, user_id: str, name: str, content: bytes, folder: Path) -> str:
    """A task that is over, with a file as its result."""
    task_id = ids.new("tsk")
    await db.fetch_alone(TASK, task_id, user_id)
    (path := folder / "made").write_bytes(content)
    made = await ResultFiles(files.storage).store(task_id, user_id, path, name=name, mime_type="image/png")
    async with db.transaction() as tx:
        await record(tx, task_id, made, keep=None)
    return task_id


async def test_results_come_as_one_archive_of_the_length_that_was_said(
    db: Database, files: Files, tmp_path: Path
) -> None:
    ada, eve = [await edge.user(db, name) for name in ("ada", "eve")]
    large = bytes(range(256)) * 10_000
    contents = [large if number == 3 else f"{number}".encode() * number for number in range(len(NAMES))]
    made = [
        await make_result(db, files, ada, name, content, tmp_path)
        for name, content in zip(NAMES, contents, strict=True)
    ]
    asked = [*made, made[0]]  # named twice is in it once
    async with edge.client(stand.app(db, files), Authorization=f"Bearer {ada}") as client:
        reply = await client.get("/v1/results/archive", params={"task_id": asked})
        assert (reply.status_code, reply.headers["content-type"]) == (200, "application/zip")
        assert reply.headers["content-disposition"].startswith('attachment; filename="results.zip"')
        assert int(reply.headers["content-length"]) == len(reply.content)
        with zipfile.ZipFile(io.BytesIO(reply.content)) as archive:
            assert archive.testzip() is None
            assert archive.namelist() == unique_names(NAMES)
            assert [archive.read(each) for each in archive.namelist()] == contents
        head = await client.head("/v1/results/archive", params={"task_id": asked})
        assert (head.headers["content-length"], head.content) == (str(len(reply.content)), b"")
        await _refused(client, 422, "validation_failed", [])
        await _refused(client, 422, "validation_failed", asked[:1] * 101)
        await _refused(client, 404, "task_not_found", [*asked, "tsk_01h455vb4pex5vsknk084sn02q"])
    async with edge.client(stand.app(db, files), Authorization=f"Bearer {eve}") as client:
        await _refused(client, 404, "task_not_found", asked[:1])


async def _refused(client: httpx2.AsyncClient, status: int, code: str, asked: list[str]) -> None:
    reply = await client.get("/v1/results/archive", params={"task_id": asked})
    assert (reply.status_code, reply.json()["code"]) == (status, code), reply.text


@pytest.mark.parametrize("gone", [0, 1])
async def test_a_missing_file_breaks_the_archive_off(db: Database, files: Files, tmp_path: Path, gone: int) -> None:
    ada = await edge.user(db, "ada")
    made = [await make_result(db, files, ada, f"{each}.png", b"x" * 10, tmp_path) for each in range(2)]
    rows = await db.fetch_alone("SELECT result_key FROM headrace.task_results ORDER BY id")
    await files.storage.delete(f"result/{rows[gone]['result_key']}")
    async with edge.client(stand.app(db, files), Authorization=f"Bearer {ada}") as client:
        if gone == 0:
            await _refused(client, 503, "bytes_missing", made)
            return
        with pytest.raises(Exception):  # noqa: B017 - whatever the client makes of half an answer
            await client.get("/v1/results/archive", params={"task_id": made})


async def test_an_archive_ends_with_the_right_to_read_it(db: Database, files: Files, tmp_path: Path) -> None:
    ada = await edge.user(db, "ada")
    made = [await make_result(db, files, ada, f"{each}.png", b"x" * 10, tmp_path) for each in range(2)]
    async with db.transaction() as tx:
        found = [await results.find(tx, each) for each in made]
    contents = [result_content(each) for each in found if each is not None]
    asked: list[int] = []

    async def not_any_more() -> bool:
        asked.append(1)
        return False

    request = Request({"type": "http", "method": "GET", "headers": []})
    entries = [Entry(each, not_any_more) for each in contents]
    reply = await serve_archive(request, files.storage, entries, name="a.zip", made_at=datetime.now(UTC))
    assert isinstance(reply, StreamingResponse)
    with pytest.raises(ReadingEnded):
        async for _ in reply.body_iterator:
            pass
    assert asked == [1]
