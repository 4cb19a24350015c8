"""A photograph-like picture and a mark on it, made here: the tests need no files.

What the eye sees on it is found out once: it takes most of a second, and is the same every time.
"""

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from headrace.removal.images.eye.detecting import detect
from headrace.removal.images.eye.model import Detection, Restoration
from headrace.removal.images.eye.solving import solve

Picture = NDArray[np.uint8]


@pytest.fixture(scope="session")
def scene() -> Picture:
    """Soft hills of light with some grain, in colours as pale as a photograph's."""
    rng = np.random.default_rng(3)
    soft = cv2.resize(rng.uniform(40, 170, (4, 5, 3)).astype(np.float32), (640, 480), interpolation=cv2.INTER_CUBIC)
    grainy = np.clip(soft + rng.normal(0, 3, soft.shape), 0, 255).astype(np.uint8)
    grey = grainy.mean(2, keepdims=True)
    picture: Picture = (grey + 0.5 * (grainy - grey)).astype(np.uint8)
    return picture


@pytest.fixture(scope="session")
def marked(scene: Picture) -> Picture:
    ink = np.zeros(scene.shape[:2], np.uint8)
    cv2.putText(ink, "SAMPLE", (90, 270), cv2.FONT_HERSHEY_DUPLEX, 4.0, 255, 14, cv2.LINE_AA)
    alpha = ink[..., None].astype(np.float32) / 255 * 0.45
    return np.rint(scene * (1 - alpha) + 255 * alpha).astype(np.uint8)


@pytest.fixture(scope="session")
def detection(marked: Picture) -> Detection:
    return detect(marked)


@pytest.fixture(scope="session")
def restored(marked: Picture, detection: Detection) -> Restoration:
    return solve(marked, detection)
