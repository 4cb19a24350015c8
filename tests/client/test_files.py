"""Files from another program: up and down, with progress, and on after an interruption. W-02."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from headrace.assets.service import Files
from headrace.client import Client, RetryPolicy, SyncClient
from headrace.client.files import BrokenDownload
from headrace.database import Database
from headrace.errors import HeadraceError, Invalid, NotFound
from tests.assets import stand
from tests.assets.plain import PlainInspector
from tests.assets.stand import png
from tests.client.conftest import served
from tests.edge import stand as edge

MIB = 1024 * 1024


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return stand.files(stand.folder(tmp_path / "files"), PlainInspector(), tmp_path / "scratch")


@pytest.fixture
async def api(db: Database, files: Files) -> AsyncIterator[str]:
    async with served(stand.app(db, files)) as url:
        yield url


@pytest.fixture
async def key(db: Database) -> str:
    return await edge.user(db, "ada")


@pytest.mark.long
async def test_a_large_file_goes_up_in_parts_and_comes_back(api: str, key: str, tmp_path: Path) -> None:  # W-02
    source, target = tmp_path / "large.png", tmp_path / "back.png"
    source.write_bytes(png(tail=20 * MIB))
    size = source.stat().st_size
    seen: list[tuple[int, int]] = []
    async with Client(api, key) as client:
        made = await client.files.upload(source, on_progress=lambda done, total: seen.append((done, total)))
        assert (made.name, made.size_bytes, made.mime_type) == ("large.png", size, "image/png")
        assert seen[0] == (0, size)
        assert seen[-1] == (size, size)
        assert await client.files.get(made.id) == made
        assert [each.id async for each in client.files.list(name="LARGE")] == [made.id]
        # Half of it is there from an earlier try.
        target.with_name("back.png.part").write_bytes(source.read_bytes()[: 7 * MIB])
        await client.files.download(made.id, target, on_progress=lambda done, total: seen.append((done, total)))
        assert target.read_bytes() == source.read_bytes()
        assert (await client.files.usage()).stored_bytes == size
        link = await client.files.link(made.id)
        assert link.url not in repr(link)
        await client.files.delete(made.id)
        with pytest.raises(NotFound) as gone:
            await client.files.get(made.id)
        assert gone.value.code == "asset_not_found"


@pytest.mark.long
async def test_an_interrupted_upload_goes_on_where_it_was(api: str, key: str, tmp_path: Path) -> None:
    source = tmp_path / "large.png"
    source.write_bytes(png(tail=40 * MIB))
    sent: list[str] = []
    async with Client(api, key, transport=Breaking(after=3, sent=sent), retry=RetryPolicy(retries=0)) as client:
        with pytest.raises(HeadraceError):
            await client.files.upload(source, at_once=1)
    async with Client(api, key, transport=Breaking(after=100, sent=sent)) as client:
        made = await client.files.upload(source)
    assert made.sha256 == hashlib.sha256(source.read_bytes()).hexdigest()
    assert len(sent) == len(set(sent)) == 6  # no part was sent twice
    assert len({path.split("/")[3] for path in sent}) == 1


class Breaking(httpx2.AsyncBaseTransport):
    """A line that breaks when so many parts have gone over it."""

    def __init__(self, *, after: int, sent: list[str]) -> None:
        self._inner = httpx2.AsyncHTTPTransport()
        self._left = after
        self._sent = sent

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method == "PUT":
            if self._left == 0:
                raise httpx2.WriteError("cut", request=request)
            self._left -= 1
            self._sent.append(request.url.path)
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        await self._inner.aclose()


async def test_what_the_server_refuses_is_an_error_with_its_code(api: str, key: str, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.exe"
    wrong.write_bytes(b"MZ" * 100)
    async with Client(api, key) as client:
        with pytest.raises(Invalid) as refused:
            await client.files.upload(wrong)
    assert refused.value.code == "file_unknown"


async def test_a_download_that_is_not_the_file_is_thrown_away(api: str, key: str, tmp_path: Path) -> None:
    async with Client(api, key) as client:
        made = await client.files.send(png(tail=1000), name="a.png")
        (tmp_path / "a.png.part").write_bytes(b"x" * 10)
        with pytest.raises(BrokenDownload):
            await client.files.download(made.id, tmp_path / "a.png")
        assert not (tmp_path / "a.png.part").exists()
        await client.files.download(made.id, tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes() == png(tail=1000)


async def test_the_same_without_an_event_loop(api: str, key: str, tmp_path: Path) -> None:
    source = tmp_path / "s.png"
    source.write_bytes(png(tail=5 * MIB))

    def work() -> None:
        with SyncClient(api, key) as client:
            made = client.files.upload(source)
            assert [each.id for each in client.files.list()] == [made.id]
            client.files.download(made.id, tmp_path / "t.png")
            assert client.files.usage().stored_bytes == made.size_bytes
            assert client.files.link(made.id).url
            begun = client.files.begin("x", 10)
            assert client.files.get_upload(begun.id).status == "OPEN"
            client.files.abort(begun.id)
            client.files.delete(made.id)

    await asyncio.to_thread(work)
    assert (tmp_path / "t.png").read_bytes() == source.read_bytes()
