"""Pictures of results that were held back: seen whatever held them back, and gone with what they are of."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from headrace import ids, outbox
from headrace.assets.erasure import ForgetFiles
from headrace.assets.expiry import let_go
from headrace.assets.model import Kind
from headrace.assets.results import ResultFiles, record
from headrace.assets.store import sweep
from headrace.database import Database
from headrace.outbox import Event
from headrace.removal.images import stages as picture_stages
from headrace.removal.images.comparison import UNPAID_SIDE_PX, save_unpaid
from headrace.removal.images.shared_stages import Mark
from headrace.removal.order import FailureCode, Names, Order, Stage, StageOrder
from headrace.removal.report import Check
from headrace.removal.service.orders.errors import PreviewLimit
from headrace.removal.service.orders.free_limits import (
    MAX_DETECTIONS_PER_FILE,
    MAX_PREVIEWS_PER_FILE,
    MAX_PREVIEWS_PER_USER,
    count_preview,
)
from headrace.removal.service.orders.store import find_held_back
from headrace.tasks.store.tasks import purge_deleted
from tests.assets import stand
from tests.assets.plain import PlainInspector
from tests.assets.stand import png
from tests.edge import stand as edge
from tests.web.world import whole_api

TASK = """
INSERT INTO headrace.tasks (id, user_id, task_type, title, status, error_code, finished_at)
VALUES ($1, $2, 'any', 't', 'FAILED', $3, now()) RETURNING id
"""
STEP = """
INSERT INTO headrace.task_steps (task_id, step_name, status, detail_json)
VALUES ($1, 'INPAINTING', 'FAILED', $2) RETURNING id
"""


async def hold_back(db: Database, user_id: str, code: FailureCode) -> tuple[str, str]:
    """A removal that failed with this code and left a picture; gives its id and where the picture is stored."""
    task_id = ids.new("tsk")
    name = f"{Kind.STEP}/{user_id}/{task_id}/0.{Names.HELD_BACK}"
    await db.fetch_alone(TASK, task_id, user_id, code)
    await db.fetch_alone(STEP, task_id, {"files": {str(Names.HELD_BACK): name}})
    return task_id, name


@pytest.mark.parametrize("code", ["POOR_RESULT", "MARK_REMAINS", "MARK_MOVES", "MARK_WIDE"])
async def test_whatever_kept_a_result_back_it_can_be_seen(code: str, db: Database) -> None:  # W-08
    task_id, name = await hold_back(db, await edge.user(db, "ada"), FailureCode(code))
    async with db.transaction() as tx:
        assert await find_held_back(tx, task_id) == name


async def test_what_steps_have_kept_goes_with_a_deleted_task(db: Database) -> None:
    task_id, name = await hold_back(db, await edge.user(db, "ada"), FailureCode.POOR_RESULT)
    key = name.removeprefix(f"{Kind.STEP}/")
    async with db.transaction() as tx:
        assert await sweep.list_orphans(tx, Kind.STEP, [key]) == []
        await tx.execute("UPDATE headrace.tasks SET deleted_at = now() WHERE id = $1", task_id)
        assert await sweep.list_orphans(tx, Kind.STEP, [key]) == [key]


async def test_what_steps_have_kept_goes_with_the_account(db: Database, tmp_path: Path) -> None:
    files = stand.files(stand.folder(tmp_path / "files"), PlainInspector(), tmp_path / "scratch")
    ada, eve = [await edge.user(db, name) for name in ("ada", "eve")]
    _, gone = await hold_back(db, ada, FailureCode.POOR_RESULT)
    _, stays = await hold_back(db, eve, FailureCode.POOR_RESULT)
    for name in (gone, stays):
        await files.storage.put_bytes(name, b"jpeg")
    async for _ in ForgetFiles(lambda: files).erase(db, ada):
        pass
    assert await files.storage.list_names(Kind.STEP) == [stays]


@pytest.mark.parametrize("untouched", [True, False])
def test_what_accept_poor_would_not_get_either_is_not_offered(
    untouched: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (Names.SOURCE, Names.RESTORED):
        Image.new("RGB", (32, 32)).save(tmp_path / name, "PNG")
    checked = Check(False, None, 1.0, 9.0, untouched=untouched)
    monkeypatch.setattr(picture_stages, "check", lambda *_: checked)
    monkeypatch.setattr(picture_stages, "mark_of", lambda _: SimpleNamespace(loose=np.ones((32, 32), np.bool_)))
    order = Order(str(tmp_path / Names.SOURCE), str(tmp_path / "result.png"), media="IMAGE", output_format="png")
    report = picture_stages.package(StageOrder(order, Stage.PACKAGING, str(tmp_path)), lambda _: None)
    assert (report.refused, report.keeps) == (FailureCode.MARK_REMAINS, [Names.HELD_BACK] if untouched else [])


@pytest.mark.parametrize(("height", "width"), [(240, 180), (2400, 3000)])
def test_what_is_not_paid_for_is_the_whole_picture_small_and_stamped(height: int, width: int, tmp_path: Path) -> None:
    """The crop around the mark at full resolution was the paid result for nothing."""
    flat = np.full((height, width, 3), 90, np.uint8)
    save_unpaid(str(tmp_path / "shown.jpg"), [(flat, flat)])
    with Image.open(tmp_path / "shown.jpg") as opened:
        shown = np.asarray(opened.convert("RGB")).astype(int)
    half = shown.shape[1] // 2
    assert max(half, shown.shape[0]) <= min(UNPAID_SIDE_PX, max(height, width) // 2)  # a piece is not shown in full
    assert half / shown.shape[0] == pytest.approx(width / height, rel=0.02)
    assert np.abs(shown[:, : half - 8] - 90).max() < 5
    stamped = np.abs(shown[:, half:] - 90).max(2) > 20
    tiles = [tile for row in np.array_split(stamped, 3) for tile in np.array_split(row, 3, axis=1)]
    assert all(tile.mean() > 0.1 for tile in tiles)


async def test_pictures_that_are_not_paid_for_are_counted_per_file_and_day(db: Database) -> None:
    user_id = await edge.user(db, "ada")

    async def show(task_id: str, sha256: str) -> None:
        async with db.transaction() as tx:
            await count_preview(tx, task_id, user_id, sha256)

    for number in range(MAX_PREVIEWS_PER_FILE):
        await show(f"tsk_{number}", "a" * 64)
    await show("tsk_0", "a" * 64)  # the same picture once more
    with pytest.raises(PreviewLimit) as refused:
        await show("tsk_more", "a" * 64)
    assert refused.value.retry_after is not None
    await show("tsk_more", "b" * 64)  # a refusal counts nothing
    for number in range(MAX_PREVIEWS_PER_USER - MAX_PREVIEWS_PER_FILE - 1):
        await show(f"tsk_of_file_{number}", f"{number:064x}")
    with pytest.raises(PreviewLimit):
        await show("tsk_last", "c" * 64)


async def test_searches_for_marks_are_counted_per_file_and_day(database_url: str) -> None:
    async with whole_api(database_url) as (world, _):
        asset_id = (await world.send("POST", "/v1/assets?name=a.png", png())).json()["id"]
        path = f"/v1/assets/{asset_id}/detect"
        for _ in range(MAX_DETECTIONS_PER_FILE):
            await world.send("POST", path, {})
        refused = await world.client.post(path, json={})
    assert (refused.status_code, refused.json()["code"]) == (429, "detection_limit")
    assert int(refused.headers["retry-after"]) > 60


def test_a_detailed_png_as_webp_is_not_called_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """WebP with losses differs everywhere from a picture full of detail: every such order failed."""
    noise = np.random.default_rng(1).integers(0, 255, (64, 64, 3)).astype(np.uint8)
    for name in (Names.SOURCE, Names.RESTORED):
        Image.fromarray(noise).save(tmp_path / name, "PNG")
    flat = np.zeros((64, 64), np.bool_)
    mark = Mark(flat, flat, flat.astype(np.float32), noise.astype(np.float32))
    monkeypatch.setattr(picture_stages, "mark_of", lambda _: mark)
    source, result = str(tmp_path / Names.SOURCE), str(tmp_path / "result.webp")
    order = Order(source, result, media="IMAGE", output_format="webp", accept_poor=True)
    stage = StageOrder(order, Stage.PACKAGING, str(tmp_path))
    report = picture_stages.package(stage, lambda _: None)
    assert report.refused is None, report.facts
    with Image.open(result) as written:
        assert (np.asarray(written.convert("RGB")) == noise).all()


async def test_a_deleted_task_keeps_its_row_until_its_bytes_are_gone(db: Database, tmp_path: Path) -> None:
    """The purge of rows ran before the retention of files, and nothing was left that named the bytes."""
    files = stand.files(stand.folder(tmp_path / "files"), PlainInspector(), tmp_path / "scratch")
    user_id = await edge.user(db, "ada")
    task_id, _ = await hold_back(db, user_id, FailureCode.POOR_RESULT)
    (path := tmp_path / "made").write_bytes(b"cleaned")
    made = await ResultFiles(files.storage).store(task_id, user_id, path, name="a.png", mime_type="image/png")
    async with db.transaction() as tx:
        await record(tx, task_id, made, keep=None)
        await tx.execute("UPDATE headrace.tasks SET deleted_at = now() WHERE id = $1", task_id)
        assert await purge_deleted(tx, 10) == 0
    await let_go(files, db)
    assert await files.storage.list_names(Kind.RESULT) == []
    async with db.transaction() as tx:
        assert await purge_deleted(tx, 10) == 1


async def test_step_files_of_a_failed_removal_go_when_its_task_is_deleted(db: Database, tmp_path: Path) -> None:
    """They lay there until the next night, also when the row that named them was gone."""
    files = stand.files(stand.folder(tmp_path / "files"), PlainInspector(), tmp_path / "scratch")
    user_id = await edge.user(db, "ada")
    task_id, _ = await hold_back(db, user_id, FailureCode.MARK_REMAINS)
    kept, other = f"step/{user_id}/{task_id}/1.marks.npz", f"step/{user_id}/tsk_other/1.marks.npz"
    for name in (kept, other):
        await files.storage.put_bytes(name, b"marks")
    async with db.transaction() as tx:
        await tx.execute(
            "INSERT INTO headrace.task_steps (task_id, step_name, status, attempt, detail_json) "
            "VALUES ($1, 'PREPROCESSING', 'SUCCESS', 1, $2)",
            task_id,
            {"files": {"marks.npz": kept}, "facts": {}},
        )
    await let_go(files, db)
    assert kept in await files.storage.list_names(Kind.STEP)  # it may be tried again
    async with db.transaction() as tx:
        await tx.execute("UPDATE headrace.tasks SET deleted_at = now() WHERE id = $1", task_id)
        assert await purge_deleted(tx, 10) == 0
    await let_go(files, db)
    assert await files.storage.list_names(Kind.STEP) == [other]
    async with db.transaction() as tx:
        assert await purge_deleted(tx, 10) == 1


async def test_names_of_files_leave_the_events_with_the_account(db: Database, tmp_path: Path) -> None:
    files = stand.files(stand.folder(tmp_path / "files"), PlainInspector(), tmp_path / "scratch")
    ada, eve = [await edge.user(db, name) for name in ("ada", "eve")]
    async with db.transaction() as tx:
        for user_id in (ada, eve):
            payload = {"asset_id": "ast_1", "user_id": user_id, "name": "my divorce.pdf", "title": "my divorce.pdf"}
            await outbox.append(tx, [Event("asset.uploaded", "asset", "ast_1", payload, user_id=user_id)])
            # Of tasks also the key, the labels and the error are words of their owner.
            for word in ("key", "labels", "error_message"):
                told = {"task_id": "tsk_1", "user_id": user_id, word: {"case": "my divorce.pdf"}}
                await outbox.append(tx, [Event("task.failed", "task", "tsk_1", told, user_id=user_id)])
    async for _ in ForgetFiles(lambda: files).erase(db, ada):
        pass
    rows = await db.fetch_alone("SELECT user_id, payload_json FROM headrace.outbox_events")
    assert {(row["user_id"], "my divorce.pdf" in str(row["payload_json"])) for row in rows} == {
        (ada, False),
        (eve, True),
    }
    assert len(rows) == 8
