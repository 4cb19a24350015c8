"""``headrace files``, as a new user would: a large file, killed on the way, and the same command again. W-02."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from headrace.assets.service import Files
from headrace.database import Database
from tests.assets import stand
from tests.assets.plain import PlainInspector
from tests.assets.stand import png
from tests.client.conftest import served
from tests.edge import stand as edge

MIB = 1024 * 1024


@pytest.fixture
async def environment(db: Database, tmp_path: Path) -> AsyncIterator[dict[str, str]]:
    files: Files = stand.files(stand.folder(tmp_path / "files"), PlainInspector(), tmp_path / "scratch")
    async with served(stand.app(db, files)) as url:
        ada = await edge.user(db, "ada")
        await stand.grant_features(db, ada, {"feature": "max_file_bytes", "bytes": 2 << 30})
        yield {"HEADRACE_URL": url, "HEADRACE_API_KEY": ada, "PATH": "/usr/bin:/bin"}


async def headrace(environment: dict[str, str], folder: Path, *arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "headrace", "files", *arguments),
        env=environment,
        cwd=folder,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def done(environment: dict[str, str], folder: Path, *arguments: str) -> tuple[int, str, str]:
    process = await headrace(environment, folder, *arguments)
    out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


@pytest.mark.long
@pytest.mark.parametrize("size", [40 * MIB, pytest.param(1000 * MIB, marks=pytest.mark.slow)], ids=["40 MB", "1 GB"])
@pytest.mark.timeout(600)
async def test_a_killed_put_goes_on_where_it_was(
    environment: dict[str, str], db: Database, tmp_path: Path, size: int
) -> None:  # W-02
    (tmp_path / "big.png").write_bytes(png(tail=size))
    first = await headrace(environment, tmp_path, "put", "big.png")
    count = "SELECT count(*) AS parts, max(created_at) AS last FROM headrace.upload_parts"
    async with asyncio.timeout(300):
        while (before := (await db.fetch_alone(count))[0])["parts"] < size / (8 * MIB) * 0.6:
            await asyncio.sleep(0.002)
            if first.returncode is not None:
                break
    killed = first.returncode is None
    if killed:
        first.kill()
    await first.communicate()
    code, out, err = await done(environment, tmp_path, "put", "big.png")
    assert (code, err) == (0, ""), err
    (made,) = await db.fetch_alone("SELECT * FROM headrace.assets WHERE id = $1", out.strip())
    assert made["size_bytes"] == (tmp_path / "big.png").stat().st_size
    if killed:
        kept = "SELECT count(*) AS parts FROM headrace.upload_parts WHERE created_at <= $1"
        assert (await db.fetch_alone(kept, before["last"]))[0]["parts"] >= before["parts"]
        assert len(await db.fetch_alone("SELECT FROM headrace.uploads")) == 1


@pytest.mark.long
async def test_put_list_show_get_link_delete(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(png())
    code, out, err = await done(environment, tmp_path, "put", "a.png", "--json")
    assert code == 0, err
    made = json.loads(out)
    listed = json.loads((await done(environment, tmp_path, "list", "--json"))[1])
    assert [each["id"] for each in listed] == [made["id"]]
    assert "image/png" in (await done(environment, tmp_path, "show", made["id"]))[1]
    assert (await done(environment, tmp_path, "get", made["id"]))[2].startswith("headrace: a.png exists")
    assert (await done(environment, tmp_path, "get", made["id"], "-o", "b.png"))[0] == 0
    assert (tmp_path / "b.png").read_bytes() == png()
    assert "/v1/content/" in (await done(environment, tmp_path, "link", made["id"]))[1]
    assert (await done(environment, tmp_path, "delete", made["id"]))[0] == 0
    code, _, err = await done(environment, tmp_path, "show", made["id"])
    assert (code != 0, "There is no such file" in err) == (True, True)


async def test_what_is_missing_is_said_in_a_line(environment: dict[str, str], tmp_path: Path) -> None:
    without = {**environment, "HEADRACE_API_KEY": ""}
    for given, arguments, words in (
        (without, ("list",), "HEADRACE_API_KEY"),
        (environment, ("put", "nothing.png"), "nothing.png is not a file"),
        ({**environment, "HEADRACE_URL": "ftp://x"}, ("list",), "http://"),
    ):
        code, _, err = await done(given, tmp_path, *arguments)
        assert code != 0
        assert words in err
        assert len(err.strip().splitlines()) == 1
