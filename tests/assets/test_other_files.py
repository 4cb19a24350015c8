"""Files that are no media: taken where the settings name their types, and handed out as downloads."""

from pathlib import Path

import httpx2
import pytest
from fastapi import FastAPI

from headrace.access import Caller, Role
from headrace.assembly.files import file_config
from headrace.assets.expiry import let_go
from headrace.assets.inspection.service import Inspector
from headrace.assets.other_types import KNOWN, type_of
from headrace.assets.service import Files
from headrace.audit import Who
from headrace.database import Database
from headrace.errors import HeadraceError, Invalid
from headrace.removal.service.orders.errors import MediaUnsupported
from headrace.removal.service.orders.model import Wanted
from headrace.removal.service.orders.service import quote
from headrace.settings import Settings
from tests.assets import stand
from tests.assets.stand import png
from tests.assets.test_streaming import on_disk


@pytest.fixture
def files(real_inspector: Inspector, tmp_path: Path) -> Files:
    taken = frozenset({"text/plain", "application/zip"})
    return stand.files(stand.folder(tmp_path / "files"), real_inspector, tmp_path / "scratch", other_types=taken)


@pytest.fixture
def app(db: Database, files: Files) -> FastAPI:
    return stand.app(db, files)


async def test_a_file_of_a_type_that_the_settings_name_is_taken_and_handed_out_as_a_download(
    ada: httpx2.AsyncClient, eve: httpx2.AsyncClient, files: Files, db: Database
) -> None:
    page = b"<html><script>alert(1)</script></html>"
    reply = await ada.post("/v1/assets", params={"name": "page.html"}, content=page)
    assert reply.status_code == 201, reply.text
    made = reply.json()
    assert (made["media_type"], made["mime_type"], made["meta"]["encrypted"]) == ("OTHER", "text/plain", False)
    path = f"/v1/assets/{made['id']}"
    read = await ada.get(f"{path}/content", params={"inline": True})
    assert read.content == page
    assert read.headers["content-type"].startswith("text/plain")
    assert read.headers["content-disposition"].startswith("attachment")
    assert read.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in read.headers["content-security-policy"]
    assert (await eve.get(f"{path}/content")).status_code == 404
    assert (await ada.get(f"{path}/preview")).json()["code"] == "preview_not_found"
    assert (await ada.get(f"{path}/pages/1")).json()["code"] == "page_not_found"
    listed = (await ada.get("/v1/assets", params={"media_type": "OTHER"})).json()["items"]
    assert [each["id"] for each in listed] == [made["id"]]
    assert (await ada.delete(path)).status_code == 204
    await let_go(files, db)
    assert on_disk(files) == []


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"\x1f\x8b" + bytes(range(256)), "file_unknown"),  # gzip, which the settings do not name
        (bytes(range(256)), "file_unknown"),  # nobody knows what it is
        (png()[:-30], "file_truncated"),  # media are looked into as always
        (png() + b"PK\x03\x04" + b"x" * 40, "file_polyglot"),
    ],
    ids=["gzip", "unknown", "truncated", "polyglot"],
)
async def test_other_types_and_broken_media_are_refused_as_before(
    ada: httpx2.AsyncClient, files: Files, content: bytes, code: str
) -> None:
    reply = await ada.post("/v1/assets", content=content)
    assert (reply.status_code, reply.json()["code"]) == (400, code)
    assert on_disk(files) == []


async def test_a_mark_is_not_taken_off_a_file_that_is_no_media(ada: httpx2.AsyncClient, db: Database) -> None:
    made = (await ada.post("/v1/assets", params={"name": "rows.csv"}, content=b"a,b\n1,2\n")).json()
    async with db.transaction() as tx:
        with pytest.raises(MediaUnsupported, match=r"rows\.csv is text/plain: marks are taken off pictures"):
            await quote(tx, Caller(Who.system(), made["user_id"], Role.USER), [made["id"]], Wanted())


@pytest.mark.parametrize(
    ("head", "mime_type"),
    [
        (b"PK\x03\x04", "application/zip"),
        (b"a,b\r\n\xc3\xa4,1\n", "text/plain"),
        (b"\xef\xbb\xbfname", "text/plain"),
        (b"x" * (64 * 1024 - 1) + b"\xc3", "text/plain"),  # cut in the middle of a character
        (b"\xff\xfe", "application/octet-stream"),
        (b"a\0b", "application/octet-stream"),
        (b"RIFF\0\0\0\0WAVEfmt ", "audio/wav"),
    ],
)
def test_the_type_is_found_in_the_content(head: bytes, mime_type: str) -> None:
    assert type_of(head) == mime_type
    assert mime_type in KNOWN


def test_no_other_type_is_taken_by_default_and_a_type_that_cannot_be_told_is_refused() -> None:
    assert file_config(Settings()).other_types == frozenset()
    assert file_config(Settings(files_types="text/plain, *")).other_types == {"text/plain", "*"}
    with pytest.raises(Invalid, match=r"HEADRACE_FILES_TYPES names text/csv") as refused:
        file_config(Settings(files_types="text/csv"))
    assert isinstance(refused.value, HeadraceError)
