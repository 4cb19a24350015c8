"""Animated pictures through the API and by the command: every frame without the mark, and nothing else changed. W-03"""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from headrace.removal.images import animation
from tests.cli.conftest import Call, call
from tests.removal import clips
from tests.removal.conftest import Picture
from tests.removal.stand import Service, serving

__all__ = ["call"]

SHOWN = [40, 60, 80, 100, 120, 140]


@pytest.fixture
async def service(database_url: str, tmp_path: Path) -> AsyncIterator[Service]:
    async with serving(database_url, tmp_path) as opened:
        yield opened


@pytest.mark.long
def test_the_command_takes_animations_as_they_are(call: Call, marked: Picture, scene: Picture, tmp_path: Path) -> None:
    frames = [marked.copy() for _ in range(3)]
    for number, frame in enumerate(frames):
        frame[20:40, 20 + 30 * number : 40 + 30 * number] = (250, 20, 20)
    _save(frames, tmp_path / "moves.png")
    seen = json.loads(call("detect", "moves.png", "--json").out)
    assert seen["candidates"]
    done = call("remove", "moves.png", "--compare", "look.png", "--save-mask", "mask.png", "--accept-poor")
    assert (done.code, done.out.strip()) == (0, "moves.clean.png"), done.err
    source, result = (animation.read(str(tmp_path / name)) for name in ("moves.png", "moves.clean.png"))
    assert (result.durations, result.loop) == (source.durations, source.loop)
    assert all((a[:100] == b[:100]).all() for a, b in zip(source.frames, result.frames, strict=True))
    changed = (marked != scene).any(2)
    errors = [np.abs(each.astype(float) - scene)[changed].mean() for each in (marked, result.frames[1])]
    assert errors[1] < errors[0] / 3
    assert np.asarray(Image.open(tmp_path / "mask.png"))[changed].mean() > 128
    with Image.open(tmp_path / "look.png") as compared:
        assert compared.width > 3 * 640
    for words, why in ((["--to", "other.gif"], "an animated PNG stays one"), (["--strength", "0.9"], "--strength")):
        refused = call("remove", "moves.png", "--force", *words)
        assert (refused.code, why in refused.err.replace("\n", " ").replace("An", "an")) == (2, True), refused.err


@pytest.mark.slow
async def test_animations_lose_their_mark_and_keep_their_timing(
    service: Service, marked: Picture, scene: Picture, tmp_path: Path
) -> None:
    # Frames that differ tell of their mark together; of one that stands still the eye tells.
    alpha = clips.coverage()[..., None] * np.float32(clips.ALPHA)
    scenes = [np.ascontiguousarray(each[:, : clips.WIDTH]) for each in clips.scenes(6)]
    varied = [np.rint(each * (1 - alpha) + 255 * alpha).astype(np.uint8) for each in scenes]
    still = []
    for number in range(3):
        frame = marked.copy()
        frame[20:40, 20 + 30 * number : 40 + 30 * number] = (250, 20, 20)
        still.append(frame)
    _save(varied, tmp_path / "varied.webp", lossless=True)
    _save(still, tmp_path / "still.png")
    for name, method in (("varied.webp", "frames"), ("still.png", "eye")):
        source = animation.read(str(tmp_path / name))
        removal = await service.clean(await service.upload(tmp_path / name))
        assert (removal["status"], removal["output_format"]) == ("SUCCEEDED", name.rpartition(".")[2]), removal
        assert [each["method"] for each in removal["candidates"]] == [method]
        (tmp_path / f"clean.{name}").write_bytes(
            (await service.world.send("GET", f"/v1/tasks/{removal['id']}/result/content")).content
        )
        result = animation.read(str(tmp_path / f"clean.{name}"))
        assert (result.durations, result.loop) == (source.durations, 3)
        away = np.s_[:80] if method == "frames" else np.s_[:100]
        for before, after in zip(source.frames, result.frames, strict=True):
            assert (before[away] == after[away]).all()
        if method == "frames":
            mask = clips.coverage() > 0.02
            assert min(clips.inside(a, b, mask) for a, b in zip(result.frames, scenes, strict=True)) > 27
        else:
            changed = (marked != scene).any(2)
            errors = [np.abs(each.astype(float) - scene)[changed].mean() for each in (marked, result.frames[1])]
            assert errors[1] < errors[0] / 3
            assert (result.frames[0][200:] == result.frames[2][200:]).all()  # what stands still does not flicker


def test_a_gif_keeps_the_colours_beside_the_change(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    frames = [np.kron(rng.integers(0, 255, (6, 8, 3), np.uint8), np.ones((20, 20, 1), np.uint8)) for _ in range(6)]
    _save(frames, tmp_path / "a.gif")
    film = animation.read(str(tmp_path / "a.gif"))
    changed = [frame.copy() for frame in film.frames]
    for frame in changed:
        frame[40:60, 40:60] //= 2
    animation.write(film, changed, str(tmp_path / "b.gif"))
    again = animation.read(str(tmp_path / "b.gif"))
    assert (again.durations, again.loop) == (film.durations, 3)
    for wanted, frame in zip(changed, again.frames, strict=True):
        assert (wanted == frame).all()


def test_what_stands_in_for_an_animated_png_stays_out_of_it(tmp_path: Path) -> None:
    frames = [np.full((20, 30, 3), 60 * number, np.uint8) for number in range(4)]
    first, *rest = [Image.fromarray(frame) for frame in frames]
    path = str(tmp_path / "a.png")
    first.save(path, save_all=True, append_images=rest, duration=SHOWN[:3], loop=3, default_image=True)
    film = animation.read(path)
    animation.write(film, film.frames, str(tmp_path / "b.png"))
    again = animation.read(str(tmp_path / "b.png"))
    assert (film.stand_in, again.stand_in, again.durations, again.loop) == (True, True, film.durations, 3)
    assert all((a == b).all() for a, b in zip(frames, again.frames, strict=True))


def _save(frames: list[Picture], path: Path, **more: Any) -> None:
    first, *rest = [Image.fromarray(frame) for frame in frames]
    first.save(path, save_all=True, append_images=rest, duration=SHOWN[: len(frames)], loop=3, **more)
