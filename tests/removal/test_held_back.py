"""Pictures of results that were held back: seen whatever held them back, and gone with what they are of."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from headrace import ids
from headrace.assets.erasure import ForgetFiles
from headrace.assets.model import Kind
from headrace.assets.store import sweep
from headrace.database import Database
from headrace.removal.orders.store import find_held_back
from headrace.removal.pipeline import picture_stages
from headrace.removal.pipeline.model import FailureCode, Names, RemovalOrder, Stage, StageOrder
from tests.assets import stand
from tests.assets.plain import PlainInspector
from tests.edge import stand as edge

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
    facts = {"residue_after": 9.0, "outline_left": 0.0, "seen_on_flat": 0.0, "untouched": untouched}
    monkeypatch.setattr(picture_stages, "check", lambda *_: facts)
    monkeypatch.setattr(picture_stages, "mark_of", lambda _: SimpleNamespace(loose=np.ones((32, 32), np.bool_)))
    order = RemovalOrder(asset_id="", sha256="", format="png", units=1, output_format="png")
    report = picture_stages.package(StageOrder("IMAGE", Stage.PACKAGING, str(tmp_path), order), lambda _: None)
    assert (report.refused, report.keeps) == (FailureCode.MARK_REMAINS, [Names.HELD_BACK] if untouched else [])
