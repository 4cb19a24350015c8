"""Handing files out: ranges, validators, names, links, previews. W-05."""

import asyncio
import hashlib
import io
import shutil
from collections.abc import AsyncGenerator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx2
import pikepdf
import pytest
from fastapi import FastAPI
from PIL import Image
from reportlab.pdfgen.canvas import Canvas

from benchmarks.document_marks import marked_deck
from headrace.access import Caller, Role
from headrace.assets import links, reading
from headrace.assets.content import disposition
from headrace.assets.errors import LinkInvalid, ReadingEnded
from headrace.assets.expiry import let_go
from headrace.assets.handing_out import content_of, is_there, may_read_on
from headrace.assets.inspection.service import Inspector
from headrace.assets.links import Grant, Target
from headrace.assets.reading import Span, opened
from headrace.assets.service import Files
from headrace.assets.store import assets
from headrace.audit import Who
from headrace.database import Database
from headrace.errors import Unauthenticated
from tests.assets import stand
from tests.assets.inspection import good
from tests.assets.stand import KEY, png
from tests.edge import stand as edge
from tests.missing_programs import missing

CONTENT = png(tail=5000)
SIZE = len(CONTENT)


@pytest.fixture
async def made(ada: httpx2.AsyncClient) -> str:
    return str((await ada.post("/v1/assets", params={"name": 'a "b"; ü\r\n.png'}, content=CONTENT)).json()["id"])


@pytest.mark.parametrize(
    ("asked", "start", "end"),
    [
        ("bytes=0-", 0, SIZE),
        ("bytes=0-0", 0, 1),
        ("bytes=10-19", 10, 20),
        ("bytes=4000-999999", 4000, SIZE),
        ("bytes=-7", SIZE - 7, SIZE),
        ("bytes=-999999", 0, SIZE),
    ],
)
async def test_one_range_is_given(ada: httpx2.AsyncClient, made: str, asked: str, start: int, end: int) -> None:
    reply = await ada.get(f"/v1/assets/{made}/content", headers={"Range": asked})
    assert reply.status_code == 206
    assert reply.content == CONTENT[start:end]
    assert reply.headers["Content-Range"] == f"bytes {start}-{end - 1}/{SIZE}"
    assert reply.headers["Content-Length"] == str(end - start)


@pytest.mark.parametrize("asked", ["bytes=0-1,5-6", "bytes=5-2", "lines=1-2", "bytes=", "bytes=-", "x"])
async def test_what_is_no_single_range_gives_the_whole(ada: httpx2.AsyncClient, made: str, asked: str) -> None:
    reply = await ada.get(f"/v1/assets/{made}/content", headers={"Range": asked})
    assert (reply.status_code, reply.content) == (200, CONTENT)


@pytest.mark.parametrize("asked", [f"bytes={SIZE}-", "bytes=-0"])
async def test_a_range_beyond_the_end_is_refused(ada: httpx2.AsyncClient, made: str, asked: str) -> None:
    reply = await ada.get(f"/v1/assets/{made}/content", headers={"Range": asked})
    assert (reply.status_code, reply.json()["code"]) == (416, "range_not_satisfiable")
    assert reply.headers["Content-Range"] == f"bytes */{SIZE}"


async def test_validators(ada: httpx2.AsyncClient, made: str) -> None:
    path = f"/v1/assets/{made}/content"
    etag = (await ada.get(path)).headers["ETag"]
    assert (await ada.get(path, headers={"If-None-Match": f'"x", W/{etag}'})).status_code == 304
    part = {"Range": "bytes=1-2"}
    assert (await ada.get(path, headers={**part, "If-Range": etag})).status_code == 206
    assert (await ada.get(path, headers={**part, "If-Range": '"other"'})).status_code == 200
    head = await ada.head(path)
    assert (head.status_code, head.headers["Content-Length"], head.content) == (200, str(SIZE), b"")


def test_any_name_fits_into_the_header() -> None:
    header = disposition('a"b\\c; %41 ü🐈.png', inline=False)
    assert header.isascii()
    assert header.startswith('attachment; filename="a_b_c; _41 __.png"')
    assert "filename*=UTF-8''a%22b%5Cc%3B%20%2541%20%C3%BC%F0%9F%90%88.png" in header


async def test_a_link_needs_nothing_else_and_dies_with_its_file(
    ada: httpx2.AsyncClient, app: FastAPI, made: str, db: Database
) -> None:
    link = (await ada.post(f"/v1/assets/{made}/links", json={"inline": True})).json()
    assert link["url"].startswith("http://test/v1/content/")
    path = link["url"].removeprefix("http://test")
    async with edge.client(app) as anybody:
        reply = await anybody.get(path)
        assert (reply.status_code, reply.content) == (200, CONTENT)
        assert reply.headers["Content-Disposition"].startswith("inline;")
        assert (await anybody.get(path, headers={"Range": "bytes=5-9"})).content == CONTENT[5:10]
        await ada.delete(f"/v1/assets/{made}")
        gone = await anybody.get(path)
        assert (gone.status_code, gone.json()["code"]) == (404, "link_invalid")
    told = await db.fetch_alone(
        "SELECT action, \"user\" ->> 'uid' AS uid FROM headrace.audit_events "
        "WHERE resource_type = 'asset' AND action IN ('granted', 'read') ORDER BY seq"
    )
    assert [(row["action"], row["uid"] == "anonymous") for row in told] == [("granted", False), ("read", True)]


async def test_links_cannot_be_made_up_altered_or_used_late(app: FastAPI, made: str, ada: httpx2.AsyncClient) -> None:
    now = datetime.now(UTC)
    good = Grant(Target.CONTENT, made, now + timedelta(minutes=1))
    token = links.seal(KEY, good)
    assert links.unseal(KEY, token).id == made
    bad = [
        links.seal(KEY, replace(good, expires_at=now - timedelta(seconds=2))),
        links.seal(b"x" * 32, good),
        token[:-1] + ("A" if token[-1] != "A" else "B"),
        token[3:],
        "AAAA",
        "%00",
        "é" * 20,
        links.seal(KEY, replace(good, id="ast_nothing")),
    ]
    async with edge.client(app) as anybody:
        answers = {
            (reply.status_code, reply.json()["code"])
            for reply in [await anybody.get(f"/v1/content/{each}") for each in bad]
        }
    assert answers <= {(404, "link_invalid"), (400, "unstorable_text")}
    with pytest.raises(LinkInvalid):
        links.unseal(KEY, bad[0])


async def test_a_preview_is_made_once(db: Database, files: Files, real_inspector: Inspector) -> None:
    served = replace(files, inspector=real_inspector)
    async with edge.client(stand.app(db, served), Authorization=f"Bearer {await edge.user(db, 'ada')}") as ada:
        made = (await ada.post("/v1/assets", params={"name": "p.png"}, content=png(600, 300, shade=77))).json()
        assert (made["meta"]["width"], made["meta"]["height"]) == (600, 300)
        first, again = [await ada.get(f"/v1/assets/{made['id']}/preview") for _ in range(2)]
        assert first.status_code == 200, first.text
        assert (first.content[:4], first.content[8:12]) == (b"RIFF", b"WEBP")
        assert again.content == first.content
        refused = await ada.post("/v1/assets", content=png(600, 300)[:-40])
        assert (refused.status_code, refused.json()["code"]) == (400, "file_truncated")


async def test_who_reads_by_a_link_is_in_the_trail_wherever_they_begin(
    app: FastAPI, made: str, ada: httpx2.AsyncClient, db: Database
) -> None:
    link = (await ada.post(f"/v1/assets/{made}/links", json={})).json()["url"].removeprefix("http://test")
    told = "SELECT FROM headrace.audit_events WHERE resource_type = 'asset' AND action = 'read'"
    async with edge.client(app) as anybody:
        for asked in ("bytes=1-", "bytes=0-9", "bytes=-5", "bytes=0-"):  # a player's requests, the first not from 0
            assert (await anybody.get(link, headers={"Range": asked})).status_code == 206
            assert len(await db.fetch_alone(told)) == 1


async def test_a_long_download_ends_with_the_file_or_with_the_right_to_read_it(
    made: str, ada: httpx2.AsyncClient, files: Files, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:  # W-05
    monkeypatch.setattr(reading, "_ASK_EVERY_S", -1.0)
    monkeypatch.setattr("headrace.storage.service._PIECE", 1000)
    async with db.transaction() as tx:
        asset = await assets.find(tx, made)
    assert asset is not None
    owner, somebody = [Caller(Who.system(), each, Role.USER) for each in (asset.user_id, "u_somebody")]
    now: list[Caller | None] = [owner]

    async def again() -> Caller:
        if now[0] is None:
            raise Unauthenticated
        return now[0]

    async def begun(is_allowed: reading.IsAllowed) -> AsyncGenerator[bytes, None]:
        pieces = await opened(files.storage, content_of(asset), Span(0, SIZE), is_allowed)
        assert [await anext(pieces) for _ in range(3)] == [CONTENT[at : at + 1000] for at in (0, 1000, 2000)]
        return pieces

    by_caller, by_link = may_read_on(db, again, Target.CONTENT, made), is_there(db, Target.CONTENT, made)
    for since in (None, somebody):  # the key was revoked; the file is another's
        now[0] = owner
        pieces = await begun(by_caller)
        now[0] = since
        with pytest.raises(ReadingEnded):
            await anext(pieces)
    now[0] = owner
    readers = [await begun(by_caller), await begun(by_link)]
    assert (await ada.delete(f"/v1/assets/{made}")).status_code == 204
    for pieces in readers:
        with pytest.raises(ReadingEnded):
            await anext(pieces)


async def test_the_place_where_a_picture_was_taken_is_not_kept(
    db: Database, files: Files, real_inspector: Inspector
) -> None:  # W-18
    content = good.all_kinds()["jpeg-turned"]
    served = replace(files, inspector=real_inspector)
    asked = {"name": "p.jpg", "size_bytes": len(content), "strip_location": True}
    async with edge.client(stand.app(db, served), Authorization=f"Bearer {await edge.user(db, 'ada')}") as ada:
        with_it = (await ada.post("/v1/assets", content=content)).json()
        streamed = (await ada.post("/v1/assets", params={"strip_location": True}, content=content)).json()
        begun = (await ada.post("/v1/uploads", json={**asked, "sha256": with_it["sha256"]})).json()
        assert (await ada.put(f"/v1/uploads/{begun['id']}/parts/1", content=content)).status_code == 200
        in_parts = (await ada.post(f"/v1/uploads/{begun['id']}/complete")).json()
        assert streamed["sha256"] == in_parts["sha256"] != with_it["sha256"]
        for made, has_place in ((with_it, True), (streamed, False), (in_parts, False)):
            back = (await ada.get(f"/v1/assets/{made['id']}/content")).content
            assert made["sha256"] == hashlib.sha256(back).hexdigest()
            assert (good.GPS_LATITUDE in back) is has_place
        # What cannot be done is not passed over in silence, and nothing is kept.
        refused = await ada.post("/v1/assets", params={"strip_location": True}, content=good.pdf())
        assert (refused.status_code, refused.json()["code"]) == (400, "file_unsupported")
    assert sum(path.is_file() for path in served.spool.iterdir()) == 0
    assert len([path for path in served.spool.parent.rglob("*") if path.is_file()]) == 2


async def test_each_page_of_a_pdf_can_be_seen(db: Database, files: Files, real_inspector: Inspector) -> None:
    written = io.BytesIO()
    canvas = Canvas(written, pagesize=(300, 200))
    for page in (1, 2):
        canvas.rect(0, 0, 300 if page == 2 else 0, 200, fill=1)
        canvas.showPage()
    canvas.save()
    served = replace(files, inspector=real_inspector)
    async with edge.client(stand.app(db, served), Authorization=f"Bearer {await edge.user(db, 'ada')}") as ada:
        made = (await ada.post("/v1/assets", params={"name": "p.pdf"}, content=written.getvalue())).json()
        path = f"/v1/assets/{made['id']}/pages"
        first, second = [await ada.get(f"{path}/{page}") for page in (1, 2)]
        assert first.status_code == 200, first.text
        white, black = [Image.open(io.BytesIO(each.content)).convert("L") for each in (first, second)]
        assert white.size == (1600, 1067)
        assert (white.getpixel((800, 500)), black.getpixel((800, 500))) == (255, 0)
        known = await ada.get(f"{path}/2", headers={"If-None-Match": second.headers["etag"]})
        assert (known.status_code, known.content) == (304, b"")
        picture = (await ada.post("/v1/assets", params={"name": "p.png"}, content=png())).json()
        with pikepdf.open(io.BytesIO(written.getvalue())) as pdf:
            pdf.save(locked := io.BytesIO(), encryption=pikepdf.Encryption(owner="a", user="b"))
        sealed = (await ada.post("/v1/assets", params={"name": "l.pdf"}, content=locked.getvalue())).json()
        for nothing in (f"{path}/3", f"/v1/assets/{picture['id']}/pages/1", f"/v1/assets/{sealed['id']}/pages/1"):
            refused = await ada.get(nothing)
            assert (refused.status_code, refused.json()["code"]) == (404, "page_not_found")
        assert list(served.spool.iterdir()) == []


@pytest.mark.long
@pytest.mark.skipif(shutil.which("soffice") is None, reason=missing("LibreOffice"))
async def test_slides_are_drawn_once_and_go_with_their_file(
    db: Database, files: Files, real_inspector: Inspector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Path] = []

    async def counted(path: Path, kind: str, target: Path, *, folder: Path, tenant: str | None = None) -> bool:
        drawn.append(path)
        return await Inspector.as_pdf(real_inspector, path, kind, target, folder=folder, tenant=tenant)

    monkeypatch.setattr(real_inspector, "as_pdf", counted)
    served = replace(files, inspector=real_inspector)
    _, deck = marked_deck("words on slides", tmp_path, slides=2)
    async with edge.client(stand.app(db, served), Authorization=f"Bearer {await edge.user(db, 'ada')}") as ada:
        made = (await ada.post("/v1/assets", params={"name": "a.pptx"}, content=deck.read_bytes())).json()
        path = f"/v1/assets/{made['id']}/pages"
        first, second = await asyncio.gather(*(ada.get(f"{path}/{page}") for page in (1, 2)))
        assert [Image.open(io.BytesIO(each.content)).size for each in (first, second)] == [(1600, 1200)] * 2
        assert first.content != second.content
        assert (await ada.get(f"{path}/3")).json()["code"] == "page_not_found"
        assert len(drawn) == 1
        assert list(served.spool.iterdir()) == []
        assert (await ada.delete(f"/v1/assets/{made['id']}")).status_code < 300
        await let_go(served, db)
        assert [*served.spool.parent.rglob("*.slides.pdf")] == []


async def test_without_libreoffice_slides_are_not_drawn_and_that_is_said(
    db: Database, files: Files, real_inspector: Inspector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def missing(*_: object, **__: object) -> bool:
        return False

    monkeypatch.setattr(real_inspector, "as_pdf", missing)
    served = replace(files, inspector=real_inspector)
    _, deck = marked_deck("words on slides", tmp_path, slides=1)
    async with edge.client(stand.app(db, served), Authorization=f"Bearer {await edge.user(db, 'ada')}") as ada:
        made = (await ada.post("/v1/assets", params={"name": "a.pptx"}, content=deck.read_bytes())).json()
        refused = await ada.get(f"/v1/assets/{made['id']}/pages/1")
    assert (refused.status_code, refused.json()["code"]) == (404, "page_not_found")
    assert "LibreOffice" in refused.json()["detail"]
