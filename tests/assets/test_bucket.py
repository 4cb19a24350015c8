"""Files in a real S3: OpenStack Swift's s3api. W-02, W-05, W-18."""

import asyncio
import hashlib
import shutil
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from headrace.assets.expiry import let_go
from headrace.assets.service import Files
from headrace.assets.sweep import sweep
from headrace.billing import features
from headrace.database import Database
from headrace.storage import ObjectNotFound, Storage, StorageRefused
from headrace.storage.errors import PartsLost
from tests.assets import stand
from tests.assets.stand import png
from tests.edge import stand as edge
from tests.swift import Swift

pytestmark = pytest.mark.long

MIB = 1024 * 1024


@pytest.fixture
async def ada(db: Database, bucket_files: Files) -> AsyncIterator[httpx2.AsyncClient]:
    async with edge.client(stand.app(db, bucket_files), Authorization=f"Bearer {await edge.user(db, 'ada')}") as client:
        yield client


async def names(files: Files) -> list[str]:
    return await files.storage.list_names("")


async def test_a_file_lives_in_a_bucket(
    ada: httpx2.AsyncClient, bucket_files: Files, db: Database, tmp_path: Path
) -> None:  # W-02
    content = png(tail=6 * MIB)
    made = (await ada.post("/v1/assets", params={"name": "Käse.png"}, content=content)).json()
    assert await names(bucket_files) == [f"media/{made['user_id']}/{made['id']}"]
    assert (await ada.get(f"/v1/assets/{made['id']}/content")).content == content
    some = await ada.get(f"/v1/assets/{made['id']}/content", headers={"Range": "bytes=100-199"})
    assert (some.status_code, some.content) == (206, content[100:200])
    assert not [each for each in bucket_files.spool.rglob("*") if each.is_file()]

    # The bucket's own link, by plain curl, with the name and type that we say.
    link = (await ada.post(f"/v1/assets/{made['id']}/links", json={"expires_in": 600})).json()["url"]
    assert curl(await fetched(link, tmp_path)) == content
    async with httpx2.AsyncClient() as anybody:
        reply = await anybody.get(link)
        assert reply.headers["Content-Type"] == "image/png"
        assert "filename*=UTF-8''K%C3%A4se.png" in reply.headers["Content-Disposition"]
        another = made["id"][:-1] + ("0" if made["id"][-1] != "0" else "1")
        assert (await anybody.get(link.replace(made["id"], another))).status_code == 403
        bucket = bucket_files.storage.bucket
        assert bucket is not None
        signer = await bucket.signer()
        assert signer is not None
        key = f"files/media/{made['user_id']}/{made['id']}"
        hour_ago = datetime.now(UTC) - timedelta(hours=1)
        expired = signer.link("GET", key, expires_in=timedelta(minutes=10), now=hour_ago)
        assert (await anybody.get(expired)).status_code == 403

    # Bytes that are not there are told of as such.
    await bucket_files.storage.delete(f"media/{made['user_id']}/{made['id']}")
    gone = await ada.get(f"/v1/assets/{made['id']}/content")
    assert (gone.status_code, gone.json()["code"]) == (503, "bytes_missing")
    assert (await sweep(bucket_files, db)).missing == 1
    assert (await ada.get(f"/v1/assets/{made['id']}")).status_code == 404


async def fetched(link: str, folder: Path) -> Path:
    assert shutil.which("curl")
    target = folder / "fetched"
    process = await asyncio.create_subprocess_exec("curl", "-sSf", "-o", str(target), link)
    assert await process.wait() == 0
    return target


def curl(path: Path) -> bytes:
    return path.read_bytes()


@pytest.mark.parametrize("direct", [False, True], ids=["through the API", "straight to the bucket"])
async def test_parts_become_a_file(ada: httpx2.AsyncClient, bucket_files: Files, db: Database, direct: bool) -> None:
    content = png(tail=17 * MIB)
    await in_parts(ada, content, direct=direct)
    assert len(await names(bucket_files)) == 1
    again = await in_parts(ada, content, direct=direct)  # the same bytes are stored once
    assert len(await names(bucket_files)) == 1
    await ada.delete(f"/v1/assets/{again['id']}")
    done = await let_go(bucket_files, db)
    assert (done.purged, done.failed) == (0, 0)
    assert len(await names(bucket_files)) == 1


@pytest.mark.slow
async def test_200_megabytes_in_parts(
    ada: httpx2.AsyncClient, bucket_files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(features._DEFAULT_FILE_BYTES, features.MeteredMedia.IMAGE, 300 * MIB)
    made = await in_parts(ada, png(tail=200 * MIB), direct=True)
    assert made["size_bytes"] > 200 * MIB


async def in_parts(ada: httpx2.AsyncClient, content: bytes, *, direct: bool) -> dict[str, Any]:
    digest = hashlib.sha256(content).hexdigest()
    asked = {"name": "large.png", "size_bytes": len(content), "sha256": digest, "direct": direct}
    upload = (await ada.post("/v1/uploads", json=asked)).json()
    size, count = upload["part_bytes"], upload["parts"]
    early = await ada.post(f"/v1/uploads/{upload['id']}/complete")
    assert (early.status_code, early.json()["code"]) == (409, "parts_missing")
    pieces = {number: content[(number - 1) * size : number * size] for number in range(count, 0, -1)}
    if direct:
        body = {"numbers": [*pieces]}
        links = (await ada.post(f"/v1/uploads/{upload['id']}/links", json=body)).json()["links"]
        async with httpx2.AsyncClient(timeout=60) as anybody:
            sent = [await anybody.put(link["url"], content=pieces[link["number"]]) for link in links]
        assert {each.status_code for each in sent} == {200}
    else:
        path = f"/v1/uploads/{upload['id']}/parts"
        sent = [await ada.put(f"{path}/{number}", content=piece) for number, piece in pieces.items()]
        assert {each.status_code for each in sent} == {200}, sent[0].text
    there = (await ada.get(f"/v1/uploads/{upload['id']}")).json()["stored"]
    assert [each["number"] for each in there] == list(range(1, count + 1))
    made = await ada.post(f"/v1/uploads/{upload['id']}/complete")
    assert made.status_code == 200, made.text
    assert (made.json()["sha256"], made.json()["id"]) == (digest, upload["asset_id"])
    assert (await ada.post(f"/v1/uploads/{upload['id']}/complete")).json() == made.json()
    found: dict[str, Any] = made.json()
    return found


async def test_a_direct_upload_of_something_else_leaves_nothing(
    ada: httpx2.AsyncClient, bucket_files: Files, db: Database
) -> None:  # W-05
    content = png(tail=1000)
    for sent, code in ((content[:-1] + b"!", "digest_mismatch"), (content[:-5], "parts_missing")):
        asked = {"name": "x", "size_bytes": len(content), "sha256": hashlib.sha256(content).hexdigest(), "direct": True}
        upload = (await ada.post("/v1/uploads", json=asked)).json()
        answer = await ada.post(f"/v1/uploads/{upload['id']}/links", json={"numbers": [1]})
        async with httpx2.AsyncClient() as anybody:
            await anybody.put(answer.json()["links"][0]["url"], content=sent)
        refused = await ada.post(f"/v1/uploads/{upload['id']}/complete")
        assert refused.json()["code"] == code
    # One is gone with its refusal; the other waits for the right part until it expires.
    assert await names(bucket_files) == []
    await let_go(bucket_files, db, now=datetime.now(UTC) + timedelta(days=2))
    assert await db.fetch_alone("SELECT id FROM headrace.uploads") == []


async def begun(ada: httpx2.AsyncClient, content: bytes) -> tuple[str, str]:
    """A direct upload of one part; gives its id and the link."""
    upload = (await ada.post("/v1/uploads", json={"name": "x", "size_bytes": len(content), "direct": True})).json()
    answer = await ada.post(f"/v1/uploads/{upload['id']}/links", json={"numbers": [1]})
    return upload["id"], answer.json()["links"][0]["url"]


async def test_a_link_takes_no_more_bytes_than_were_announced(ada: httpx2.AsyncClient) -> None:
    """The links signed the host alone: 60 MiB went into an upload of 1,000 bytes, beside the quota."""
    content = png(tail=1000)
    _, link = await begun(ada, content)
    async with httpx2.AsyncClient() as anybody:
        assert (await anybody.put(link, content=content + bytes(MIB))).status_code == 403
        assert (await anybody.put(link, content=content)).status_code == 200


@pytest.mark.parametrize("found_by", ["links", "complete", "GET"])
async def test_a_stored_part_that_is_larger_than_announced_ends_its_upload(
    found_by: str, ada: httpx2.AsyncClient, bucket_files: Files, db: Database
) -> None:
    """For storages that do not check the length."""
    content = png(tail=1000)
    upload_id, _ = await begun(ada, content)
    bucket = bucket_files.storage.bucket
    assert bucket is not None
    signer = await bucket.signer()
    assert signer is not None
    (row,) = await db.fetch_alone("SELECT storage_key, storage_upload_id AS id FROM headrace.uploads")
    asked = {"partNumber": "1", "uploadId": row["id"]}
    key = f"files/media/{row['storage_key']}.parts"
    link = signer.link("PUT", key, expires_in=timedelta(minutes=1), query=asked)
    async with httpx2.AsyncClient() as anybody:
        assert (await anybody.put(link, content=content + bytes(MIB))).status_code == 200
    path = f"/v1/uploads/{upload_id}"
    if found_by == "GET":
        refused = await ada.get(path)
    else:
        refused = await ada.post(f"{path}/{found_by}", json={"numbers": [1]} if found_by == "links" else None)
    assert (refused.status_code, refused.json()["code"]) == (400, "size_mismatch")
    assert (await ada.get(path)).status_code == 404
    with pytest.raises(PartsLost):
        await bucket.list_parts(f"media/{row['storage_key']}.parts", row["id"])


async def test_a_link_that_is_used_after_the_end_does_not_change_the_file(
    ada: httpx2.AsyncClient, bucket_files: Files, db: Database
) -> None:
    """On Swift a part can be written after its upload was completed."""
    content = png(tail=1000)
    upload_id, link = await begun(ada, content)
    async with httpx2.AsyncClient() as anybody:
        await anybody.put(link, content=content)
        made = (await ada.post(f"/v1/uploads/{upload_id}/complete")).json()
        await anybody.put(link, content=content[:-1] + b"!")
    assert (await ada.get(f"/v1/assets/{made['id']}/content")).content == content
    assert await names(bucket_files) == [f"media/{made['user_id']}/{made['id']}"]


async def test_links_do_not_keep_an_upload_for_ever(ada: httpx2.AsyncClient, db: Database) -> None:
    upload_id, _ = await begun(ada, png(tail=1000))
    await db.fetch_alone(
        "UPDATE headrace.uploads SET created_at = now() - interval '6 days 23 hours 50 minutes' RETURNING id"
    )
    answer = (await ada.post(f"/v1/uploads/{upload_id}/links", json={"numbers": [1], "expires_in": 3600})).json()
    left = datetime.fromisoformat(answer["expires_at"]) - datetime.now(UTC)
    assert left < timedelta(minutes=11)
    (row,) = await db.fetch_alone("SELECT expire_at - created_at AS age FROM headrace.uploads")
    assert row["age"] == timedelta(days=7)


async def test_what_is_not_in_the_bucket_is_not_found(bucket_files: Files, tmp_path: Path) -> None:
    with pytest.raises(ObjectNotFound):
        await bucket_files.storage.size_of("media/nobody/nothing")
    with pytest.raises(ObjectNotFound):
        await bucket_files.storage.fetch("media/nobody/nothing", tmp_path / "x")
    await bucket_files.storage.delete("media/nobody/nothing")


async def test_a_missing_bucket_is_found_by_the_check_and_is_no_missing_file(swift: Swift) -> None:
    """An upload answered 404, and `doctor` was content."""
    missing = Storage(swift.config("nobody-made-this"))
    try:
        bucket = missing.bucket
        assert bucket is not None
        attempts = (missing.check(), missing.put_bytes("x", b"x"), missing.read_bytes("x"), bucket.begin("x"))
        for attempt in (*attempts, bucket.list_parts("x", "1")):
            with pytest.raises(StorageRefused):
                await attempt
    finally:
        await missing.close()
    swift.make_bucket("made-for-the-check")
    made = Storage(swift.config("made-for-the-check"))
    try:
        await made.check()
    finally:
        await made.close()
