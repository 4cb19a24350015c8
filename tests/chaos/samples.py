"""Small marked files of the four media, made once for a run."""

from pathlib import Path

import cv2
import numpy as np
from PIL import Image

from benchmarks.document_marks import marked_deck, marked_pdf
from tests.removal import clips

MEDIA = ("IMAGE", "PDF", "PPT", "VIDEO")


def make_samples(folder: Path) -> dict[str, Path]:
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(3)
    soft = cv2.resize(rng.uniform(40, 170, (4, 5, 3)).astype(np.float32), (480, 360), interpolation=cv2.INTER_CUBIC)
    grainy = np.clip(soft + rng.normal(0, 3, soft.shape), 0, 255)
    scene = (grainy + grainy.mean(2, keepdims=True)) / 2  # as pale as a photograph
    ink = np.zeros(scene.shape[:2], np.uint8)
    cv2.putText(ink, "SAMPLE", (60, 200), cv2.FONT_HERSHEY_DUPLEX, 3.0, 255, 11, cv2.LINE_AA)
    alpha = ink[..., None].astype(np.float32) / 255 * 0.45
    Image.fromarray(np.rint(scene * (1 - alpha) + 255 * alpha).astype(np.uint8)).save(folder / "photo.png")
    return {
        "IMAGE": folder / "photo.png",
        "PDF": marked_pdf("words", folder, pages=1)[1],
        "PPT": marked_deck("words on slides", folder, slides=1)[1],
        "VIDEO": clips.make(folder / "clip.mp4").path,
    }
