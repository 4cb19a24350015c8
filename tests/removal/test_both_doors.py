"""`headrace remove` and the service give the same verdict, the same candidates and the same bytes on 40 files."""

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from PIL import Image

from benchmarks.document_marks import DECK_KINDS, PDF_KINDS, marked_deck, marked_pdf
from tests.e2e.program import HEADRACE, environment
from tests.removal import clips
from tests.removal.conftest import Picture
from tests.removal.pictures import poor_ground
from tests.removal.stand import Service, serving

WORDS = ("SAMPLE", "DRAFT", "(c) 2024 ada", "PREVIEW")


@pytest.fixture
async def service(database_url: str, tmp_path: Path) -> AsyncIterator[Service]:
    async with serving(database_url, tmp_path) as opened:
        yield opened


def _pictures(folder: Path, scene: Picture) -> list[Path]:
    """Words of each size and strength in each kind of file, an animation, a poor ground, and one without a mark."""
    made = []
    for number, (alpha, size) in enumerate([(0.3, 1.0), (0.45, 2.0), (0.6, 4.0)] * 4):
        ink = np.zeros(scene.shape[:2], np.uint8)
        place = (40 + 20 * number, 120 + 25 * number)
        cv2.putText(ink, WORDS[number % 4], place, cv2.FONT_HERSHEY_DUPLEX, size, 255, int(3 * size), cv2.LINE_AA)
        share = ink[..., None].astype(np.float32) / 255 * alpha
        picture = Image.fromarray(np.rint(scene * (1 - share) + 255 * share).astype(np.uint8))
        path = folder / f"picture{number}.{('png', 'jpg', 'webp', 'tif')[number % 4]}"
        picture.save(path, quality=92)  # which PNG and TIFF ignore
        made.append(path)
    frames = [Image.open(made[4]).convert("RGB").rotate(0.1 * turn) for turn in range(3)]
    frames[0].save(folder / "moves.gif", save_all=True, append_images=frames[1:], duration=80)
    (folder / "poor.png").write_bytes(poor_ground()[0])
    Image.fromarray(scene).save(folder / "clean.png")
    Image.open(made[1]).convert("L").save(folder / "grey.png")
    return [*made, *(folder / name for name in ("moves.gif", "poor.png", "clean.png", "grey.png"))]


def _documents(folder: Path) -> list[Path]:
    made = []
    pdfs, decks = list(PDF_KINDS)[:12], list(DECK_KINDS)[:8]
    for number, kind in enumerate(pdfs):
        place = folder / f"pdf{number}"
        place.mkdir()
        made.append(marked_pdf(kind, place, pages=2 + number % 3)[1])
    for number, kind in enumerate(decks):
        place = folder / f"deck{number}"
        place.mkdir()
        made.append(marked_deck(kind, place, slides=3)[1])
    return made


def _clips(folder: Path) -> list[Path]:
    return [
        clips.make(folder / "plain.mp4").path,
        clips.make(folder / "unmarked.mp4", marked=False).path,
        clips.make(folder / "uneven.mp4", uneven=True).path,
        clips.make(folder / "weak.mp4", strength=lambda _: 0.5).path,
    ]


@pytest.mark.slow
async def test_both_doors_agree_on_forty_files(service: Service, scene: Picture, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    files = [*_pictures(folder, scene), *_documents(folder), *_clips(folder)]
    assert len(files) == 40
    await service.db.fetch_alone("UPDATE headrace.entitlements SET quota_left = 500, quota_total = 500 RETURNING id")
    differences = []
    for file in files:
        by_command = await asyncio.to_thread(_by_command, file, tmp_path)
        by_service = await _by_service(service, file)
        differences += [
            f"{file.name} {what}: {_shown(one)} by the command, {_shown(other)} by the service"
            for (what, one), other in zip(by_command.items(), by_service.values(), strict=True)
            if one != other
        ]
    assert not differences, "\n".join(differences)


def _by_command(file: Path, folder: Path) -> dict[str, Any]:
    target = folder / f"command-{file.name}"
    command = [*HEADRACE, "remove", str(file), "--to", str(target), "--accept-poor", "--json"]
    done = subprocess.run(command, env=environment(), cwd=folder, capture_output=True, timeout=300, check=False)
    report = json.loads(done.stdout)
    return {
        "removed": target.exists(),
        "scores": [round(each["score"], 4) for each in report["candidates"]],
        "boxes": [_box(each) for each in report["candidates"]],
        "verdict": report.get("verdict") if report["outcome"] == "removed" else None,
        "bytes": target.read_bytes() if target.exists() else None,
    }


def _box(candidate: dict[str, Any]) -> list[float]:
    box = candidate.get("box", candidate)
    if isinstance(box, dict):
        box = [box[name] for name in ("left", "top", "width", "height")]
    return [round(float(each), 1) for each in box]


async def _by_service(service: Service, file: Path) -> dict[str, Any]:
    removal = await service.clean(await service.upload(file), accept_poor=True)
    done = removal["status"] == "SUCCEEDED"
    content, verdict = None, None
    if done:
        content = (await service.world.send("GET", f"/v1/tasks/{removal['id']}/result/content")).content
        verdict = (await service.world.send("GET", f"/v1/tasks/{removal['id']}/result")).json()["metrics"]["verdict"]
    return {
        "removed": done,
        "scores": [round(each["score"], 4) for each in removal["candidates"]],
        "boxes": [_box(each) for each in removal["candidates"]],
        "verdict": verdict,
        "bytes": content,
    }


def _shown(value: object) -> str:
    return f"{len(value)} bytes" if isinstance(value, bytes) else repr(value)
