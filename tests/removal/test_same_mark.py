"""Pictures that were ordered with one mark in common, through the API. W-03"""

from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from headrace.removal.order import Names, Stage, StageOrder
from tests.removal import clips
from tests.removal.stand import Service, serving


@pytest.fixture
async def service(database_url: str, tmp_path: Path) -> AsyncIterator[Service]:
    async with serving(database_url, tmp_path) as opened:
        yield opened


def _save(picture: np.ndarray, path: Path) -> Path:
    Image.fromarray(np.ascontiguousarray(picture)).save(path)
    return path


@pytest.mark.slow
async def test_pictures_of_one_order_share_what_they_learn_of_their_mark(  # W-03, W-08
    service: Service, tmp_path: Path
) -> None:
    alpha = clips.coverage()[..., None] * np.float32(clips.ALPHA)
    *scenes, plain = [scene[:, : clips.WIDTH] for scene in clips.scenes(5)]
    files = [
        _save(np.rint(scene * (1 - alpha) + 255 * alpha).astype(np.uint8), tmp_path / f"{number}.png")
        for number, scene in enumerate(scenes)
    ]
    assets = [await service.upload(path) for path in (*files, _save(plain, tmp_path / "plain.png"))]
    stages: list[StageOrder] = []
    service.remover.before = stages.append
    placed = await service.order(*assets, same_mark=True)
    assert (placed["units"], len({each["batch_id"] for each in placed["items"]})) == (5, 1)
    done = [await service.over(each["id"]) for each in placed["items"]]
    assert [(each["status"], each["error_code"]) for each in done] == [("SUCCEEDED", None)] * 4 + [
        ("FAILED", "NO_MARK")
    ]
    mask = clips.coverage() > 0.02
    for scene, removal in zip(scenes, done[:4], strict=True):
        assert await service.ledger(removal["id"]) == [("HELD", 1), ("COMMITTED", 1)]
        reply = await service.world.send("GET", f"/v1/tasks/{removal['id']}/result/content")
        result = np.asarray(Image.open(BytesIO(reply.content)))
        assert clips.inside(result, scene, mask) > 27
        assert (result[:80] == scene[:80]).all()
        assert [each["method"] for each in removal["candidates"]] == ["pictures"]
    assert await service.ledger(done[4]["id"]) == [("HELD", 1), ("RELEASED", 1)]
    # Whole cleaned pictures stayed for a day beside the results; the mark stays for others that may learn it.
    kept = await service.storage.list_names(f"step/{placed['items'][0]['user_id']}")
    assert {name.rpartition("/")[2].partition(".")[2] for name in kept} == {str(Names.MATTE)}
    # Whoever came first has looked at the others, of as many as run at once; the rest took up what these had learnt.
    looked = [each for each in stages if each.stage is Stage.DETECTING]
    assert [len(each.views) for each in looked if each.views] in ([4], [4, 4])
    assert len(looked) == 5


async def test_a_mark_in_common_needs_pictures_that_have_it(service: Service, tmp_path: Path) -> None:  # W-06
    scenes = clips.scenes(3)
    assets = [await service.upload(_save(scene, tmp_path / f"{n}.png")) for n, scene in enumerate(scenes)]
    body = {"asset_ids": assets, "rights": {"basis": "OWNER"}, "same_mark": True}
    for path in ("/v1/removals", "/v1/removals/quote"):
        sent = body if path == "/v1/removals" else {key: body[key] for key in ("asset_ids", "same_mark")}
        reply = await service.world.client.post(path, json=sent)
        assert (reply.status_code, reply.json()["code"]) == (400, "removal_invalid"), reply.text
        assert "4 pictures" in reply.json()["detail"]
