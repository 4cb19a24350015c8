"""A file in one request: received, checked, looked into and kept, or nothing of it. W-02, W-05."""

import asyncio
import base64
import hashlib
from collections.abc import AsyncIterator

import httpx2
import pytest
from fastapi import FastAPI

from headrace.assets import uploading
from headrace.assets.service import MAX_FILES_PER_USER as MAX_PER_USER
from headrace.assets.service import Files
from headrace.database import Database
from tests.assets import stand
from tests.assets.stand import png
from tests.client.conftest import served
from tests.edge import stand as edge


async def rows(db: Database, table: str) -> int:
    return int((await db.fetch_alone(f"SELECT count(*) AS n FROM headrace.{table}"))[0]["n"])


def on_disk(files: Files) -> list[str]:
    assert files.storage.folder is not None
    top = files.storage.folder.top
    return sorted(path.relative_to(top).as_posix() for path in top.rglob("*") if path.is_file())


async def test_a_file_comes_back_as_it_was_sent(ada: httpx2.AsyncClient, files: Files, db: Database) -> None:  # W-02
    content = png(tail=3_000_000)
    reply = await ada.post("/v1/assets", params={"name": "Katze 🐈.png"}, content=content)
    assert reply.status_code == 201, reply.text
    made = reply.json()
    assert (made["name"], made["media_type"], made["mime_type"]) == ("Katze 🐈.png", "IMAGE", "image/png")
    assert made["size_bytes"] == len(content)
    assert made["sha256"] == hashlib.sha256(content).hexdigest()
    assert made["meta"]["format"] == "png"
    assert reply.headers["Location"] == f"/v1/assets/{made['id']}"
    assert (await ada.get(f"/v1/assets/{made['id']}")).json() == made

    back = await ada.get(f"/v1/assets/{made['id']}/content")
    assert back.content == content
    assert back.headers["Content-Type"] == "image/png"
    assert back.headers["X-Content-Type-Options"] == "nosniff"
    assert "sandbox" in back.headers["Content-Security-Policy"]
    assert "filename*=UTF-8''Katze%20%F0%9F%90%88.png" in back.headers["Content-Disposition"]
    assert on_disk(files) == [f"media/{made['user_id']}/{made['id']}"]
    assert await rows(db, "uploads") == 0
    told = await db.fetch_alone("SELECT action FROM headrace.audit_events WHERE resource_type = 'asset'")
    assert [row["action"] for row in told] == ["created"]
    events = await db.fetch_alone("SELECT event_type, payload_json FROM headrace.outbox_events")
    assert [(row["event_type"], row["payload_json"]["asset_id"]) for row in events] == [("asset.uploaded", made["id"])]


async def test_a_form_is_read_as_it_comes(ada: httpx2.AsyncClient) -> None:
    content = png(tail=2_500_000) + b"\r\n--not the boundary\r\n"
    reply = await ada.post(
        "/v1/assets", data={"note": "first"}, files={"file": ("cat.png", content, "application/x-lie")}
    )
    assert reply.status_code == 201, reply.text
    assert (reply.json()["name"], reply.json()["size_bytes"]) == ("cat.png", len(content))
    assert (await ada.get(f"/v1/assets/{reply.json()['id']}/content")).content == content


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 1000])
async def test_a_form_may_be_cut_anywhere(ada: httpx2.AsyncClient, size: int) -> None:
    content = png(tail=200)
    form = (
        b'--xyz\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n'
        b'--xyz\r\nContent-Disposition: form-data; name="file"; filename="a%22b.png"\r\n\r\n'
        + content
        + b"\r\n--xyz--\r\n"
    )

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(form), size):
            yield form[start : start + size]

    kind = {"Content-Type": "multipart/form-data; boundary=xyz"}
    reply = await ada.post("/v1/assets", content=pieces(), headers=kind)
    assert reply.status_code == 201, reply.text
    assert reply.json()["sha256"] == hashlib.sha256(content).hexdigest()
    assert reply.json()["name"] == 'a"b.png'


FILE = b'--xyz\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n\r\n' + png()


async def test_another_header_that_names_a_file_makes_a_field_no_file(ada: httpx2.AsyncClient) -> None:
    field = b'--xyz\r\nX-Note: filename="no.png"\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n'
    unquoted = FILE.replace(b'"f"; filename="f"', b"f; filename=photo.png")
    kind = {"Content-Type": "multipart/form-data; boundary=xyz"}
    reply = await ada.post("/v1/assets", content=field + unquoted + b"\r\n--xyz--\r\n", headers=kind)
    assert reply.status_code == 201, reply.text
    assert (reply.json()["sha256"], reply.json()["name"]) == (hashlib.sha256(png()).hexdigest(), "photo.png")


@pytest.mark.parametrize(
    "form",
    [
        b"",
        b"--xyz--\r\n",
        b"nothing of the kind",
        b'--xyz\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--xyz--\r\n',
        b'--xyz\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n\r\nhalf a file',
        FILE + b'\r\n--xyz\r\nContent-Disposition: form-data; name="g"; filename="g"\r\n\r\n2\r\n--xyz--\r\n',
        FILE + b"\r\n--xyzjunk\r\nmore\r\n--xyz--\r\n",
        FILE + b"\r\n--xyz junk\r\n",
        FILE + b"\r\n--xyz",
        b"a" * 200_000 + b"\r\n" + FILE + b"\r\n--xyz--\r\n",
        FILE + b"\r\n--xyz--\r\n" + b"a" * 200_000,
    ],
    ids=[
        "empty",
        "no part",
        "no form",
        "no file",
        "no end",
        "second file",
        "boundary's beginning",
        "junk",
        "open end",
        "long preamble",
        "long epilogue",
    ],  # both were read without a limit
)
async def test_a_form_without_one_whole_file_is_refused(ada: httpx2.AsyncClient, files: Files, form: bytes) -> None:
    kind = {"Content-Type": "multipart/form-data; boundary=xyz"}
    reply = await ada.post("/v1/assets", content=form, headers=kind)
    assert (reply.status_code, reply.json()["code"]) == (400, "form_invalid")
    assert on_disk(files) == []


async def test_digests_are_checked(ada: httpx2.AsyncClient, files: Files, db: Database) -> None:  # W-05
    content = png()
    right, wrong = hashlib.sha256(content), hashlib.sha256(b"other")
    header = {"Content-Digest": f"sha-512=:AAAA:, sha-256=:{base64.b64encode(right.digest()).decode()}:"}
    sent = await ada.post("/v1/assets", content=content, headers=header, params={"sha256": right.hexdigest().upper()})
    assert sent.status_code == 201, sent.text
    for query in ({"sha256": wrong.hexdigest()}, {"sha256": "abc"}):
        refused = await ada.post("/v1/assets", content=png(shade=1), params=query)
        assert refused.json()["code"] in {"digest_mismatch", "digest_invalid"}
    assert len(on_disk(files)) == 1
    assert (await rows(db, "assets"), await rows(db, "uploads")) == (1, 0)


@pytest.mark.parametrize(("content", "code"), [(b"", "file_empty"), (b"MZ" * 500, "file_unknown")])
async def test_what_is_refused_is_not_kept(
    ada: httpx2.AsyncClient, files: Files, db: Database, content: bytes, code: str
) -> None:  # W-02
    reply = await ada.post("/v1/assets", content=content)
    assert (reply.status_code, reply.json()["code"]) == (400, code)
    assert on_disk(files) == []
    assert (await rows(db, "assets"), await rows(db, "uploads")) == (0, 0)


async def test_a_repeated_request_makes_one_file(ada: httpx2.AsyncClient, files: Files, db: Database) -> None:
    key = {"Idempotency-Key": "once"}
    first, again = [await ada.post("/v1/assets", content=png(), headers=key) for _ in range(2)]
    assert first.json() == again.json()
    assert again.headers["Idempotency-Replayed"] == "true"
    other = await ada.post("/v1/assets", content=png(shade=9), headers=key)
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")
    assert len(on_disk(files)) == 1
    assert (await rows(db, "assets"), await rows(db, "uploads")) == (1, 0)


async def test_equal_files_are_stored_once_and_live_their_own_lives(
    ada: httpx2.AsyncClient, eve: httpx2.AsyncClient, files: Files, db: Database
) -> None:  # W-02
    first, second = [
        (await ada.post("/v1/assets", params={"name": name}, content=png())).json() for name in ("a.png", "b.png")
    ]
    assert first["id"] != second["id"]
    assert len(on_disk(files)) == 1
    assert (await ada.get("/v1/assets/usage")).json()["stored_bytes"] == len(png())
    other = (await eve.post("/v1/assets", content=png())).json()  # nobody learns what others have
    assert len(on_disk(files)) == 2
    assert other["id"] not in {first["id"], second["id"]}

    from headrace.assets.expiry import let_go

    assert (await ada.delete(f"/v1/assets/{first['id']}")).status_code == 204
    assert (await let_go(files, db)).purged == 0
    assert (await ada.get(f"/v1/assets/{second['id']}/content")).content == png()
    assert (await ada.get(f"/v1/assets/{first['id']}")).status_code == 404
    await ada.delete(f"/v1/assets/{second['id']}")
    await let_go(files, db)
    assert on_disk(files) == [f"media/{other['user_id']}/{other['id']}"]


async def test_a_client_that_hangs_up_leaves_nothing(db: Database, app: FastAPI, files: Files) -> None:  # W-02
    async with served(app) as url:
        host, _, port = url.removeprefix("http://").partition(":")
        _, writer = await asyncio.open_connection(host, int(port))
        key = await edge.user(db, "ada")
        head = f"POST /v1/assets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nContent-Length: 5000000\r\n\r\n"
        writer.write(head.encode() + b"x" * 2_000_000)
        await writer.drain()
        async with asyncio.timeout(60):
            while await rows(db, "uploads") == 0:
                await asyncio.sleep(0.01)
            writer.close()
            while await rows(db, "uploads") == 1:
                await asyncio.sleep(0.01)
    assert on_disk(files) == []


async def test_equal_files_at_once_are_stored_once(ada: httpx2.AsyncClient, files: Files, db: Database) -> None:
    replies = await asyncio.gather(*(ada.post("/v1/assets", content=png(tail=100_000)) for _ in range(12)))
    assert {reply.status_code for reply in replies} == {201}
    assert len(on_disk(files)) == 1
    for reply in replies:
        assert (await ada.get(f"/v1/assets/{reply.json()['id']}/content")).content == png(tail=100_000)


async def test_the_quota_holds_under_a_rush(db: Database, files: Files, tmp_path: object) -> None:  # W-18
    size = len(png(shade=1))
    tight = stand.files(files.storage, files.inspector, files.scratch, stored_bytes=3 * size + 1)
    async with edge.client(stand.app(db, tight), Authorization=f"Bearer {await edge.user(db, 'ida')}") as ida:
        replies = await asyncio.gather(*(ida.post("/v1/assets", content=png(shade=each)) for each in range(1, 9)))
        codes = sorted(reply.status_code for reply in replies)
        assert codes == [201] * 3 + [429] * 5
        refused = next(reply.json() for reply in replies if reply.status_code == 429)
        assert refused["code"] == "storage_quota_exceeded"

        # Who does not say how much comes is held to it, too.
        async def pieces() -> AsyncIterator[bytes]:
            yield png(shade=99)

        assert (await ida.post("/v1/assets", content=pieces())).status_code == 429
        # Equal bytes need no more room.
    assert len(on_disk(files)) == 3


async def test_a_file_that_is_too_large_is_refused_before_it_is_sent(db: Database, files: Files) -> None:
    from headrace.assets.inspection.model import FileLimits

    small = stand.files(files.storage, files.inspector, files.scratch, limits=FileLimits(max_bytes=1000))
    async with edge.client(stand.app(db, small), Authorization=f"Bearer {await edge.user(db, 'ida')}") as ida:

        async def endless() -> AsyncIterator[bytes]:
            for _ in range(100):
                yield b"x" * 500

        for content in (b"x" * 1001, endless()):
            reply = await ida.post("/v1/assets", content=content)
            assert (reply.status_code, reply.json()["code"]) == (400, "file_too_large")
    assert on_disk(files) == []


async def test_a_file_is_saved_under_the_ending_of_what_it_is(ada: httpx2.AsyncClient) -> None:
    """A picture that is also a web page was handed out as `x.html`."""
    for name, saved in (("x.html", "x.html.png"), ("x.PNG", "x.PNG"), ("x", "x.png"), ("a.png.svg", "a.png.svg.png")):
        made = (await ada.post("/v1/assets", params={"name": name}, content=png())).json()
        back = await ada.get(f"/v1/assets/{made['id']}/content")
        assert f'filename="{saved}"' in back.headers["Content-Disposition"]
        assert made["name"] == name


async def test_one_user_cannot_take_all_requests_with_unfinished_bodies(app: FastAPI, db: Database) -> None:
    """Two thousand files on their way of one account gave everybody 503."""
    release = asyncio.Event()

    async def dripping() -> AsyncIterator[bytes]:
        yield png()[:10]
        await release.wait()
        yield png()[10:]

    tokens = [await edge.user(db, name) for name in ("eve", "bob")]
    eve_client, ada_client = [edge.client(app, Authorization=f"Bearer {token}") for token in tokens]
    async with eve_client as eve, ada_client as ada:
        size = {"Content-Length": str(len(png()))}
        sending = [
            asyncio.create_task(eve.post("/v1/assets", content=dripping(), headers=size)) for _ in range(MAX_PER_USER)
        ]
        async with asyncio.timeout(60):
            while (await rows(db, "uploads")) < MAX_PER_USER:
                await asyncio.sleep(0.01)
            refused = await eve.post("/v1/assets", content=png())
            other = await ada.post("/v1/assets", content=png())
            release.set()
            done = await asyncio.gather(*sending)
        assert (refused.status_code, refused.json()["code"]) == (429, "too_many_open_bodies")
        assert other.status_code == 201
        assert {each.status_code for each in done} == {201}
        assert (await eve.post("/v1/assets", content=png())).status_code == 201


async def test_uploads_under_way_of_one_user_have_a_cap(
    ada: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploading, "MAX_OPEN_UPLOADS", 2)
    replies = [await ada.post("/v1/uploads", json={"name": "x", "size_bytes": 100}) for _ in range(3)]
    assert [each.status_code for each in replies] == [201, 201, 429]
    assert replies[-1].json()["code"] == "too_many_uploads"
    await ada.delete(f"/v1/uploads/{replies[0].json()['id']}")
    assert (await ada.post("/v1/uploads", json={"name": "x", "size_bytes": 100})).status_code == 201
