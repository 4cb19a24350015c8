"""A file in parts: in any order, at once, again, and after an interruption. W-02, W-05."""

import asyncio
import hashlib
from datetime import timedelta
from typing import Any

import httpx2

from headrace.assets import parts
from headrace.assets.expiry import let_go
from headrace.assets.service import Files
from headrace.assets.store import uploads
from headrace.database import Database
from tests.assets.stand import png
from tests.assets.test_streaming import on_disk, rows

MIB = 1024 * 1024
CONTENT = png(tail=20 * MIB)


async def begun(ada: httpx2.AsyncClient, content: bytes = CONTENT, **more: Any) -> dict[str, Any]:
    asked = {"name": "large.png", "size_bytes": len(content), **more}
    reply = await ada.post("/v1/uploads", json=asked)
    assert reply.status_code == 201, reply.text
    upload: dict[str, Any] = reply.json()
    return upload


def piece(upload: dict[str, Any], number: int, content: bytes = CONTENT) -> bytes:
    size: int = upload["part_bytes"]
    return content[(number - 1) * size : number * size]


async def send(
    ada: httpx2.AsyncClient, upload: dict[str, Any], number: int, content: bytes = CONTENT
) -> httpx2.Response:
    return await ada.put(f"/v1/uploads/{upload['id']}/parts/{number}", content=piece(upload, number, content))


async def test_parts_in_any_order_at_once_and_twice_become_the_file(
    ada: httpx2.AsyncClient, files: Files, db: Database
) -> None:  # W-02
    upload = await begun(ada, sha256=hashlib.sha256(CONTENT).hexdigest())
    assert upload["parts"] == 3
    replies = await asyncio.gather(*(send(ada, upload, number) for number in (3, 1, 2, 1, 3, 2, 1)))
    assert {reply.status_code for reply in replies} == {200}, [reply.text for reply in replies]
    assert (await ada.get("/v1/uploads")).json()["items"][0]["id"] == upload["id"]
    made = await asyncio.gather(*(ada.post(f"/v1/uploads/{upload['id']}/complete") for _ in range(4)))
    assert {reply.status_code for reply in made} <= {200, 409}
    final = (await ada.post(f"/v1/uploads/{upload['id']}/complete")).json()
    assert final["id"] == upload["asset_id"]
    assert (await ada.get(f"/v1/assets/{final['id']}/content")).content == CONTENT
    assert on_disk(files) == [f"media/{final['user_id']}/{final['id']}"]
    assert await rows(db, "assets") == 1
    late = await send(ada, upload, 1)
    assert (late.status_code, late.json()["code"]) == (409, "upload_over")


async def test_what_is_missing_is_named_and_can_still_be_sent(ada: httpx2.AsyncClient, files: Files) -> None:
    upload = await begun(ada)
    await send(ada, upload, 2)
    early = await ada.post(f"/v1/uploads/{upload['id']}/complete")
    assert (early.status_code, early.json()["details"]["missing"]) == (409, [1, 3])
    assert [each["number"] for each in (await ada.get(f"/v1/uploads/{upload['id']}")).json()["stored"]] == [2]
    # A part that was noted and is not on the disk (any more) is missing, too.
    await send(ada, upload, 1)
    await send(ada, upload, 3)
    (files.spool / upload["id"] / "part.00002").write_bytes(b"half")
    broken = await ada.post(f"/v1/uploads/{upload['id']}/complete")
    assert broken.json()["details"]["missing"] == [2]
    await send(ada, upload, 2)
    assert (await ada.post(f"/v1/uploads/{upload['id']}/complete")).status_code == 200


async def test_parts_that_do_not_fit_are_refused(ada: httpx2.AsyncClient, files: Files) -> None:
    upload = await begun(ada)
    path = f"/v1/uploads/{upload['id']}/parts"
    for number, content, query, code in (
        (4, b"x", {}, "part_invalid"),
        (1, b"x", {}, "part_invalid"),
        (3, piece(upload, 1), {}, "file_too_large"),
        (1, piece(upload, 1), {"sha256": "0" * 64}, "digest_mismatch"),
    ):
        reply = await ada.put(f"{path}/{number}", content=content, params=query)
        assert (reply.status_code, reply.json()["code"]) == (400, code)
    assert on_disk(files) == []


async def test_a_refused_or_aborted_upload_leaves_nothing(
    ada: httpx2.AsyncClient, files: Files, db: Database
) -> None:  # W-05
    for content, more, code in (
        (b"MZ" * 1000, {}, "file_unknown"),
        (png(), {"sha256": "0" * 64}, "digest_mismatch"),
    ):
        upload = await begun(ada, content, **more)
        await send(ada, upload, 1, content)
        refused = await ada.post(f"/v1/uploads/{upload['id']}/complete")
        assert (refused.status_code, refused.json()["code"]) == (400, code)
        assert (await ada.get(f"/v1/uploads/{upload['id']}")).status_code == 404
    upload = await begun(ada)
    await send(ada, upload, 1)
    assert (await ada.delete(f"/v1/uploads/{upload['id']}")).status_code == 204
    assert on_disk(files) == []
    assert (await rows(db, "assets"), await rows(db, "uploads"), await rows(db, "upload_parts")) == (0, 0, 0)


async def test_an_upload_that_nobody_completes_is_swept_and_one_that_is_being_completed_is_not(
    ada: httpx2.AsyncClient, files: Files, db: Database
) -> None:  # W-18
    left, held = await begun(ada), await begun(ada)
    for upload in (left, held):
        await send(ada, upload, 1)
    async with db.transaction() as tx:
        await tx.execute("UPDATE headrace.uploads SET expire_at = now() - interval '1 s'")
        await tx.execute(
            "UPDATE headrace.uploads SET status = 'COMPLETING', lease_token = 't', "
            "lease_until = now() + interval '1 min' WHERE id = $1",
            held["id"],
        )
    assert (await ada.get("/v1/assets/usage")).json()["stored_bytes"] == 2 * len(CONTENT)
    assert (await let_go(files, db)).uploads == 1
    assert {each.split("/")[1] for each in on_disk(files)} == {held["id"]}
    # Whoever completed it has died: another may, and then the sweep.
    async with db.transaction() as tx:
        await tx.execute("UPDATE headrace.uploads SET lease_until = now() - interval '1 s'")
    assert (await let_go(files, db)).uploads == 1
    assert on_disk(files) == []
    assert (await ada.get("/v1/assets/usage")).json()["stored_bytes"] == 0


async def test_a_slow_completer_cannot_register_what_another_has_taken_over(
    ada: httpx2.AsyncClient, files: Files, db: Database
) -> None:
    upload = await begun(ada, png())
    await send(ada, upload, 1, png())
    async with db.transaction() as tx:
        await tx.execute(
            "UPDATE headrace.uploads SET status = 'COMPLETING', lease_token = 'slow', "
            "lease_until = now() + interval '1 min'"
        )
    busy = await ada.post(f"/v1/uploads/{upload['id']}/complete")
    assert (busy.status_code, busy.json()["code"]) == (409, "upload_being_completed")
    async with db.transaction() as tx:
        await tx.execute("UPDATE headrace.uploads SET lease_until = now() - interval '1 s'")
    made = (await ada.post(f"/v1/uploads/{upload['id']}/complete")).json()
    assert made["id"] == upload["asset_id"]
    from headrace.assets.store import uploads

    async with db.transaction() as tx:
        assert not await uploads.complete(tx, upload["id"], token="slow", remember=files.config.upload_lifetime)
        assert await uploads.abort(tx, upload["id"], token="slow") is None


async def test_a_killed_completion_blocks_its_upload_for_seconds(ada: httpx2.AsyncClient, db: Database) -> None:
    """The lease of a process that was killed in `complete` was two minutes long."""
    upload = await begun(ada)
    async with db.transaction() as tx:
        (row,) = await tx.fetch("SELECT user_id FROM headrace.uploads WHERE id = $1", upload["id"])
        await uploads.begin_completing(tx, upload["id"], row["user_id"], token="killed", lease=parts._LEASE)
    busy = await ada.post(f"/v1/uploads/{upload['id']}/complete")
    assert busy.json()["code"] == "upload_being_completed"
    (row,) = await db.fetch_alone("SELECT lease_until - now() AS left FROM headrace.uploads")
    assert row["left"] <= timedelta(seconds=20)
