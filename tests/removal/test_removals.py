"""Removals through the API, with real children: what is ordered, what is done, what is charged, and what is told."""

import asyncio
import io
import os
import shutil
import signal
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import orjson
import pytest
from examples.clean_folder import clean_folder
from PIL import Image

from benchmarks.document_marks import clean_pdf, marked_deck, marked_pdf, pale_words
from benchmarks.removal_documents import drawn, slides_xml
from headrace.client import SyncClient
from headrace.removal.documents.slides import legacy
from headrace.removal.images.comparison import UNPAID_SIDE_PX
from headrace.removal.order import Stage, StageOrder
from headrace.removal.thresholds import MIN_CLEAN_CONFIDENCE, MIN_CONFIDENCE
from tests.assets.stand import png
from tests.client.conftest import served
from tests.missing_programs import missing
from tests.removal import clips
from tests.removal.conftest import Picture
from tests.removal.pictures import poor_ground
from tests.removal.stand import ENDS, Service, serving
from tests.web.world import whole_api
from tests.webhooks.stand import until

pytestmark = pytest.mark.long

STEPS = [each.value for each in Stage]
DONE = [(name, "SUCCEEDED", 1) for name in STEPS]


@pytest.fixture
async def service(database_url: str, tmp_path: Path) -> AsyncIterator[Service]:
    async with serving(database_url, tmp_path) as opened:
        yield opened


@pytest.fixture(scope="session")
def photo(marked: Picture, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("photos") / "photo.png"
    Image.fromarray(marked).save(path)
    return path


async def result_of(service: Service, task_id: str, path: Path) -> Path:
    path.write_bytes((await service.world.send("GET", f"/v1/tasks/{task_id}/result/content")).content)
    return path


async def test_each_media_type_from_upload_to_download(  # W-03, W-04, W-05, W-06, W-07
    service: Service, photo: Path, marked: Picture, scene: Picture, tmp_path: Path
) -> None:
    pdf, marked_document = marked_pdf("words", tmp_path, pages=2)
    deck, marked_slides = marked_deck("words on slides", tmp_path, slides=2)
    clip = clips.make(tmp_path / "clip.mp4")
    files = {"IMAGE": photo, "PDF": marked_document, "PPT": marked_slides, "VIDEO": clip.path}
    results: dict[str, Path] = {}
    for media, file in files.items():
        asset_id = await service.upload(file)
        units = 2 if media in ("PDF", "PPT") else 1
        quote = (await service.world.send("POST", "/v1/removals/quote", {"asset_ids": [asset_id]})).json()
        assert (quote["units"], quote["enough"]) == (units, True)
        removal = await service.clean(asset_id)
        assert (removal["status"], removal["error_code"], removal["media_type"]) == ("SUCCEEDED", None, media), removal
        # Of documents the text or the picture in the margin is listed as well, and stays.
        listed = 2 if media in ("PDF", "PPT") else 1
        assert (removal["progress"], removal["units"], len(removal["candidates"])) == (100, units, listed)
        assert await service.steps(removal["id"]) == DONE
        assert await service.ledger(removal["id"]) == [("HELD", units), ("COMMITTED", units)]
        about = (await service.world.send("GET", f"/v1/tasks/{removal['id']}/result")).json()
        assert about["name"] == f"{file.stem}.clean{file.suffix}"
        assert about["metrics"]["residue_after"] < 0.6 < about["metrics"]["residue_before"]
        assert set(about["metrics"]["seconds"]) == set(STEPS)
        preview = await service.world.send("GET", f"/v1/tasks/{removal['id']}/preview")
        assert (preview.status_code, preview.headers["content-type"]) == (200, "image/webp")
        compare = await service.world.client.get(f"/v1/tasks/{removal['id']}/compare")
        assert compare.status_code == (404 if media == "PPT" else 200)
        # What its steps have kept is gone at once, and no status of it was RUNNING.
        assert await service.storage.list_names(f"step/{removal['user_id']}") == []
        statuses = await service.rows(
            "SELECT DISTINCT payload_json ->> 'status' AS status FROM headrace.outbox_events WHERE aggregate_id = $1",
            removal["id"],
        )
        assert {row["status"] for row in statuses} <= {"QUEUED", "PREPROCESSING", "SUCCEEDED"}
        results[media] = await result_of(service, removal["id"], tmp_path / f"{media}{file.suffix}")
        events = await service.rows(
            "SELECT event_type FROM headrace.outbox_events WHERE aggregate_id = $1 ORDER BY id", removal["id"]
        )
        assert [each["event_type"] for each in events] == ["task.created", "task.started", "task.succeeded"]
    restored = np.asarray(Image.open(results["IMAGE"]))
    changed = (restored != marked).any(2)
    assert np.abs(restored.astype(float) - scene)[changed].mean() < np.abs(marked.astype(float) - scene)[changed].mean()
    assert 0.05 < changed.mean() < 0.3  # every pixel elsewhere is as it was
    assert drawn(results["PDF"])[1] == drawn(pdf)[1]
    assert slides_xml(results["PPT"]) == slides_xml(deck)
    assert clips.stamps(results["VIDEO"]) == clips.stamps(clip.path)
    assert clips.packets(results["VIDEO"], "audio") == clips.packets(clip.path, "audio")
    before, after = (clips.frames(each)[9] for each in (clip.path, results["VIDEO"]))
    assert clips.inside(after, clip.clean[9], clip.mask) > clips.inside(before, clip.clean[9], clip.mask) + 8
    declared = await service.rows("SELECT * FROM headrace.removals ORDER BY declared_at")
    assert [row["rights_basis"] for row in declared] == ["OWNER"] * 4
    assert all(row["principal_uid"] == row["user_id"] and row["client_ip"] for row in declared)
    trail = await service.rows(
        "SELECT resource FROM headrace.audit_events WHERE resource_type = 'task' AND action = 'created'"
    )
    assert len(trail) == 4
    # The relay has told of each: a notification, and a webhook that was received.
    await until(lambda: len(service.receiver.requests) == 4)
    told = {orjson.loads(each.body)["data"]["task_id"] for each in service.receiver.requests}
    assert told == {row["task_id"] for row in declared}
    notes = (await service.world.send("GET", "/v1/notifications")).json()["items"]
    assert [note["type"] for note in notes] == ["TASK_SUCCEEDED"] * 4


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("soffice") is None, reason=missing("LibreOffice"))
async def test_old_slides_through_the_service(service: Service, tmp_path: Path) -> None:  # W-07
    _, marked_slides = marked_deck("words on slides", tmp_path, slides=2)
    legacy.convert(str(marked_slides), str(tmp_path / "old.ppt"))
    asset_id = await service.upload(tmp_path / "old.ppt")
    for wanted in ("ppt", "pptx"):
        removal = await service.clean(asset_id, output_format=wanted)
        assert (removal["status"], removal["error_code"]) == ("SUCCEEDED", None), removal
        about = (await service.world.send("GET", f"/v1/tasks/{removal['id']}/result")).json()
        assert about["name"] == f"old.clean.{wanted}"
        assert "converted by LibreOffice" in about["metrics"]["warnings"][-1]
        result = await result_of(service, removal["id"], tmp_path / f"result.{wanted}")
        assert (await service.clean(await service.upload(result)))["error_code"] == "NO_MARK"
    broken = tmp_path / "broken.ppt"
    content = bytearray((tmp_path / "old.ppt").read_bytes())
    content[2048:] = bytes(len(content) - 2048)
    broken.write_bytes(content)
    reply = await service.world.client.post("/v1/assets?name=broken.ppt", content=broken.read_bytes())
    assert reply.json()["code"] == "file_damaged", reply.text


async def test_what_is_not_done_is_not_charged(service: Service, scene: Picture, tmp_path: Path) -> None:  # W-08
    plain = tmp_path / "plain.png"
    Image.fromarray(np.ascontiguousarray(scene[:160, :200])).save(plain)
    none = await service.clean(await service.upload(plain))
    assert (none["status"], none["error_code"]) == ("FAILED", "NO_MARK")
    # Pale words on a single page: somebody must say that they are a mark.
    asset_id = await service.upload(clean_pdf(tmp_path / "doubtful.pdf", 1, pale_words))
    look = (await service.world.send("POST", f"/v1/assets/{asset_id}/detect", {})).json()
    asked = await service.clean(asset_id)
    assert (asked["status"], asked["error_code"]) == ("FAILED", "NEEDS_REVIEW"), asked
    for each in (none, asked):
        assert [status for status, _ in await service.ledger(each["id"])] == ["HELD", "RELEASED"]
        (event,) = await service.rows(
            "SELECT * FROM headrace.outbox_events WHERE aggregate_id = $1 AND event_type = 'task.failed'", each["id"]
        )
        assert event is not None
    assert (await service.steps(asked["id"]))[:2] == DONE[:2]
    # The candidates are there, and a MANUAL order starts from them.
    named = [each["id"] for each in asked["candidates"]]
    assert named
    done = await service.clean(asset_id, mode="MANUAL", candidates=named[:1])
    assert done["status"] == "SUCCEEDED", done
    assert [status for status, _ in await service.ledger(done["id"])] == ["HELD", "COMMITTED"]
    # A look had said so before, and costs nothing.
    seen = (await service.world.send("GET", f"/v1/tasks/{look['id']}")).json()
    assert (seen["status"], seen["result"]["outcome"]) == ("SUCCEEDED", "NEEDS_REVIEW")
    assert [each["id"] for each in seen["result"]["candidates"]] == named
    assert await service.ledger(look["id"]) == []
    # Whoever submits a look themselves cannot choose the child that opens the file: one for old slides may do more.
    payload = {**seen["payload"], "format": "ppt", "output_format": "ppt"}
    free = (await service.world.send("POST", "/v1/tasks", {"type": "removal.detect", "payload": payload})).json()
    async with asyncio.timeout(60):
        while (ended := (await service.world.send("GET", f"/v1/tasks/{free['id']}")).json())["status"] not in ENDS:
            await asyncio.sleep(0.05)
    assert (ended["status"], ended["error_code"]) == ("FAILED", "UNSUPPORTED"), ended
    await _a_folder(service, tmp_path)


async def test_a_result_that_the_user_already_has_is_not_charged(service: Service, photo: Path) -> None:  # W-08
    """Six orders in high quality were charged; four of the files were those that had been paid for."""
    first = await service.clean(await service.upload(photo))
    again = await service.clean(await service.upload(photo))
    assert (first["status"], first["charged"]) == (again["status"], 1) == ("SUCCEEDED", 1)
    assert again["charged"] == 0
    assert await service.ledger(again["id"]) == [("HELD", 1), ("RELEASED", 1)]
    results = [(await service.world.send("GET", f"/v1/tasks/{each['id']}/result")).json() for each in (first, again)]
    assert results[0]["sha256"] == results[1]["sha256"]
    assert [each["metrics"].get("same_as") for each in results] == [None, first["id"]]


@pytest.mark.slow
async def test_a_search_that_is_not_paid_for_ends_before_others_wait_long(service: Service, photo: Path) -> None:
    """A file of 200 KB kept the only process for detection busy for half a minute, and could have for an hour."""
    service.remover._config = replace(service.remover._config, look_seconds=0.01)
    asset_id = await service.upload(photo)
    look = (await service.world.send("POST", f"/v1/assets/{asset_id}/detect", {})).json()
    async with asyncio.timeout(60):
        while (ended := (await service.world.send("GET", f"/v1/tasks/{look['id']}")).json())["status"] not in ENDS:
            await asyncio.sleep(0.05)
    assert (ended["status"], ended["error_code"]) == ("FAILED", "TOO_LONG"), ended
    assert (await service.clean(asset_id))["status"] == "SUCCEEDED"  # which is paid for


async def _a_folder(service: Service, tmp_path: Path) -> None:
    """The example, over a socket: what has a mark is clean, what has none stays, what is no media is not taken."""
    (folder := tmp_path / "in").mkdir()
    (folder / "a.pdf").write_bytes(marked_pdf("tiles", tmp_path, pages=1)[1].read_bytes())
    (folder / "b.pdf").write_bytes(clean_pdf(tmp_path / "none.pdf", 1).read_bytes())
    (folder / "c.txt").write_text("no picture")
    scopes = ["files:read", "files:write", "tasks:read", "tasks:write"]
    key = (await service.world.send("POST", "/v1/api-keys", {"name": "example", "scopes": scopes})).json()["key"]
    async with served(service.app) as url:

        def clean() -> tuple[bool, list[str], bytes]:
            with SyncClient(url, key) as client:
                whole = clean_folder(client, folder, tmp_path / "out")
                done = {each.asset_name: each for each in client.removals.list()}
                return (
                    whole,
                    [f"{done[name].error_code}" for name in ("a.pdf", "b.pdf")],
                    client.removals.preview(done["a.pdf"].id),
                )

        whole, codes, preview = await asyncio.to_thread(clean)
    assert (whole, codes) == (False, ["None", "NO_MARK"])
    assert preview[8:12] == b"WEBP"
    assert [each.name for each in (tmp_path / "out").iterdir()] == ["a.pdf"]


async def test_a_poor_result_is_seen_before_it_is_bought(service: Service, tmp_path: Path) -> None:  # W-08
    picture, box = poor_ground()
    (tmp_path / "cells.png").write_bytes(picture)
    asset_id = await service.upload(tmp_path / "cells.png")
    told = {"mode": "MANUAL", "hints": [{"boxes": [box]}]}
    refused = await service.clean(asset_id, **told)
    assert (refused["status"], refused["held_back"]) == ("FAILED", True), refused
    assert refused["error_code"] in {"POOR_RESULT", "MARK_REMAINS"}
    path = f"/v1/removals/{refused['id']}/held-back"
    seen = await service.world.client.get(path)
    assert (seen.status_code, seen.headers["content-type"]) == (200, "image/jpeg")
    with Image.open(io.BytesIO(seen.content)) as sides, Image.open(tmp_path / "cells.png") as whole:
        # The whole picture, small: a crop around the mark was the result for nothing.
        assert max(sides.width // 2, sides.height) <= UNPAID_SIDE_PX
        assert sides.width / 2 / sides.height == pytest.approx(whole.width / whole.height, rel=0.02)
        before, after = (
            np.asarray(sides)[:, part] for part in (slice(sides.width // 2), slice(sides.width // 2, None))
        )
    assert np.abs(before.astype(int) - after).mean() > 1
    assert [status for status, _ in await service.ledger(refused["id"])] == ["HELD", "RELEASED"]
    # Nobody's but the owner's; and gone when the sweep has been.
    other, _ = await service.world.session()
    reply = await service.world.client.get(path, headers={"Authorization": f"Bearer {other}"})
    assert (reply.status_code, reply.json()["code"]) == (404, "removal_not_found")
    taken = await service.clean(asset_id, accept_poor=True, **told)
    assert (taken["status"], taken["accept_poor"], taken["held_back"]) == ("SUCCEEDED", True, False), taken
    assert (await service.world.client.get(path.replace(refused["id"], taken["id"]))).json()["code"] == (
        "nothing_held_back"
    )
    await service.rows(
        "UPDATE headrace.tasks SET finished_at = now() - interval '25 hours' WHERE id = $1 RETURNING id", refused["id"]
    )
    assert (await service.world.client.get(path)).status_code == 404


async def test_a_result_that_is_worth_a_look_is_handed_out_and_charged(  # W-08
    service: Service, tmp_path: Path, marked: Picture
) -> None:
    # Grain over the mark: some of its outline stays.
    grain = np.random.default_rng(5).normal(0, 3.5, marked.shape[:2])[..., None]
    Image.fromarray(np.clip(marked + grain, 0, 255).astype(np.uint8)).save(tmp_path / "hills.png")
    removal = await service.clean(await service.upload(tmp_path / "hills.png"))
    assert (removal["status"], removal["held_back"]) == ("SUCCEEDED", False), removal
    result = (await service.world.send("GET", f"/v1/tasks/{removal['id']}/result")).json()
    assert result["metrics"]["verdict"] == "LOOK"
    assert MIN_CONFIDENCE <= result["metrics"]["confidence"] < MIN_CLEAN_CONFIDENCE
    assert [status for status, _ in await service.ledger(removal["id"])] == ["HELD", "COMMITTED"]


@pytest.mark.slow
async def test_a_poor_clip_is_seen_before_it_is_bought(service: Service, tmp_path: Path) -> None:  # W-08
    # So strong in one shot that some of it stays there.
    made = clips.make(tmp_path / "clip.mp4", strength=lambda number: 1.6 if number // clips.LENGTH == 3 else 1.0)
    asset_id = await service.upload(made.path)
    refused = await service.clean(asset_id)
    assert (refused["status"], refused["error_code"], refused["held_back"]) == ("FAILED", "MARK_REMAINS", True), refused
    seen = await service.world.client.get(f"/v1/removals/{refused['id']}/held-back")
    assert (seen.status_code, seen.headers["content-type"]) == (200, "image/jpeg")
    with Image.open(io.BytesIO(seen.content)) as sides:
        assert sides.width <= 2 * UNPAID_SIDE_PX
        before, after = np.split(np.asarray(sides)[:, : sides.width // 2 * 2].astype(int), 2, axis=1)
    assert np.abs(before - after).mean() > 1
    assert [status for status, _ in await service.ledger(refused["id"])] == ["HELD", "RELEASED"]


async def test_a_killed_child_is_resumed_at_its_step_and_a_canceled_one_is_gone(
    service: Service, tmp_path: Path
) -> None:  # W-04
    asset_id = await service.upload(marked_pdf("words", tmp_path, pages=2)[1])
    undisturbed = await service.clean(asset_id)
    killed: list[Stage] = []

    def kill_once(order: StageOrder) -> None:
        if order.stage is Stage.INPAINTING and not killed:
            killed.append(order.stage)
            (pid,) = service.remover.pids
            os.kill(pid, signal.SIGSTOP)  # it is given the stage, and never begins it
            asyncio.get_running_loop().call_later(0.2, os.kill, pid, signal.SIGKILL)

    service.remover.before = kill_once
    removal = await service.clean(asset_id)
    assert removal["status"] == "SUCCEEDED", removal
    assert await service.steps(removal["id"]) == [
        *DONE[:2],
        ("INPAINTING", "FAILED", 1),
        ("PREPROCESSING", "SKIPPED", 2),
        ("DETECTING", "SKIPPED", 2),
        ("INPAINTING", "SUCCEEDED", 2),
        ("PACKAGING", "SUCCEEDED", 2),
    ]
    # The same bytes as the first result: not charged a second time.
    assert await service.ledger(removal["id"]) == [("HELD", 2), ("RELEASED", 2)]
    same = await service.rows("SELECT DISTINCT sha256 FROM headrace.task_results")
    assert len(same) == 1, undisturbed

    await _canceled_at_once(service, asset_id)


async def _canceled_at_once(service: Service, asset_id: str) -> None:  # W-08
    begun = asyncio.Event()

    def hold(order: StageOrder) -> None:
        if order.stage is Stage.DETECTING:
            (pid,) = service.remover.pids
            os.kill(pid, signal.SIGSTOP)
            begun.set()

    service.remover.before = hold
    task_id = (await service.order(asset_id))["items"][0]["id"]
    async with asyncio.timeout(60):
        await begun.wait()
    await service.world.send("POST", f"/v1/tasks/{task_id}/cancel")
    removal = await service.over(task_id)
    assert removal["status"] == "CANCELED"
    (row,) = await service.rows(
        "SELECT extract(epoch FROM finished_at - cancel_requested_at) AS took FROM headrace.tasks WHERE id = $1",
        task_id,
    )
    assert row["took"] < 1 + os.getloadavg()[0]  # a busy machine takes its time; a quiet one under a second
    assert await service.ledger(task_id) == [("HELD", 2), ("RELEASED", 2)]


async def test_what_cannot_be_ordered(service: Service, photo: Path, tmp_path: Path) -> None:  # W-06, W-15
    world, mine = service.world, await service.upload(photo)
    pdf = await service.upload(clean_pdf(tmp_path / "plain.pdf", pages=2))

    async def refused(status: int, code: str, /, **body: object) -> None:
        whole = {"asset_ids": [mine], "rights": {"basis": "OWNER"}, **body}
        whole = {name: each for name, each in whole.items() if each is not None}
        reply = await world.client.post("/v1/removals", json=whole)
        assert (reply.status_code, reply.json()["code"]) == (status, code), reply.text

    await refused(422, "validation_failed", rights=None)
    await refused(422, "validation_failed", rights={"basis": "NONE"})
    await refused(400, "removal_invalid", mode="MANUAL")
    await refused(400, "removal_invalid", candidates=[1])
    await refused(400, "removal_invalid", asset_ids=[mine, mine])
    await refused(400, "removal_invalid", output_format="pdf")
    await refused(400, "removal_invalid", pages=[[1, 1]])
    await refused(400, "removal_invalid", asset_ids=[pdf], pages=[[3, 9]])
    await refused(400, "removal_invalid", asset_ids=[pdf], mode="MANUAL", mask_asset_id=mine)
    await refused(404, "asset_not_found", mode="MANUAL", mask_asset_id="ast_01h455vb4pex5vsknk084sn02q")
    await service.db.fetch_alone("UPDATE headrace.entitlements SET quota_left = 2 WHERE quota_left > 2 RETURNING id")
    await refused(402, "quota_exhausted", asset_ids=[mine, pdf])
    # All or none: nothing of the refused orders is left.
    for table in ("tasks", "removals"):
        assert await service.rows(f"SELECT FROM headrace.{table}") == []
    # One key is one order, however often it is sent.
    asset_id = pdf
    body = {"asset_ids": [asset_id], "rights": {"basis": "LICENSEE"}}
    post, key = service.world.client.post, {"Idempotency-Key": "one"}
    replies = await asyncio.gather(*(post("/v1/removals", json=body, headers=key) for _ in range(3)))
    replies = [each for each in replies if each.status_code == 201]
    replies.append(await post("/v1/removals", json=body, headers=key))
    assert {reply.json()["items"][0]["id"] for reply in replies} == {
        row["task_id"] for row in await service.rows("SELECT task_id FROM headrace.removals")
    }
    assert len(await service.rows("SELECT FROM headrace.usage_ledger WHERE status = 'HELD'")) == 1


async def test_without_a_worker_for_it_an_order_waits_and_why_says_so(database_url: str) -> None:
    async with whole_api(database_url) as (world, _):
        task_id = await world.removal()
        why = (await world.send("GET", f"/v1/tasks/{task_id}/why")).json()
        task = (await world.send("GET", f"/v1/tasks/{task_id}")).json()
    assert [reason["code"] for reason in why["reasons"]] == ["no_worker"], why
    # A worker that was started before there were animations and batches takes an order that is neither.
    assert task["payload"].keys().isdisjoint({"frames", "batch_id"})


async def test_lists_tell_what_was_taken_as_it_is(database_url: str) -> None:
    async with whole_api(database_url) as (world, _):
        plain = await world.removal()
        asset_id = (await world.send("GET", f"/v1/removals/{plain}")).json()["asset_id"]
        body = {"asset_ids": [asset_id], "rights": {"basis": "OWNER"}, "accept_poor": True}
        poor = (await world.send("POST", "/v1/removals", body)).json()["items"][0]["id"]
        items = (await world.send("GET", "/v1/removals")).json()["items"]
    assert [(each["id"], each["accept_poor"]) for each in items] == [(poor, True), (plain, False)]


async def test_what_was_uploaded_and_not_ordered_is_listed(database_url: str) -> None:  # W-03
    async with whole_api(database_url) as (world, _):

        async def uploaded(shade: int) -> str:
            return str((await world.send("POST", "/v1/assets?name=a.png", png(shade=shade))).json()["id"])

        first, again, mask, waits, gone = [await uploaded(shade) for shade in (1, 1, 2, 3, 4)]
        order = {"asset_ids": [first], "rights": {"basis": "OWNER"}, "mode": "MANUAL", "mask_asset_id": mask}
        await world.send("POST", "/v1/removals", order)
        await world.send("DELETE", f"/v1/assets/{gone}")
        items = (await world.send("GET", "/v1/removals/not-ordered")).json()["items"]
        token, _ = await world.session()
        others = await world.client.get("/v1/removals/not-ordered", headers={"Authorization": f"Bearer {token}"})
    # Neither what was ordered under another name, nor a mask, nor what is deleted, nor anything of somebody else.
    assert [each["id"] for each in items] == [waits], again
    assert others.json() == {"items": []}
