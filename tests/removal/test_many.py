"""One mark on many pictures: learnt from all, taken off each. W-03"""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.cli.conftest import Call, call
from tests.removal import clips

__all__ = ["call"]


@pytest.mark.long
def test_pictures_with_one_mark_tell_each_other_what_it_is(call: Call, tmp_path: Path) -> None:  # W-03
    alpha = clips.coverage()[..., None] * np.float32(clips.ALPHA)
    scenes = [scene[:, : clips.WIDTH] for scene in clips.scenes(6)]
    (tmp_path / "album").mkdir()
    for number, scene in enumerate(scenes):
        marked = np.rint(scene * (1 - alpha) + 255 * alpha).astype(np.uint8)
        Image.fromarray(marked).save(tmp_path / "album" / f"{number}.png")
    (tmp_path / "album" / "note.txt").write_text("no picture")
    (tmp_path / "clean").mkdir()
    told = call("remove", "album", "-o", "clean", "--same-mark", "--json")
    done = {Path(each["file"]).name: each for each in json.loads(told.out)}
    assert done.pop("note.txt")["error"] == "picture_unreadable"
    assert told.code == 1
    mask = clips.coverage() > 0.02
    for number, scene in enumerate(scenes):
        assert done[f"{number}.png"]["removed"], done
        with Image.open(tmp_path / "clean" / f"{number}.png") as opened:
            result = np.asarray(opened)
        assert clips.inside(result, scene, mask) > 27
        far = np.s_[:80]  # lossless: nothing beside the mark has changed
        assert (result[far] == scene[far]).all()
