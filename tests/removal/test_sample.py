"""The console's sample picture: the one that the server knows, and one that comes out clean."""

import hashlib
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

from headrace.removal.images.eye.detecting import detect
from headrace.removal.images.restoring import restore
from headrace.removal.service.sample import SAMPLE_SHA256, is_sample

SAMPLE = Path(__file__).parents[2] / "console" / "src" / "pages" / "remove" / "sample.jpg"


def test_the_sample_of_the_console_is_the_one_that_is_not_charged() -> None:
    assert hashlib.sha256(SAMPLE.read_bytes()).hexdigest() == SAMPLE_SHA256
    assert is_sample(SAMPLE_SHA256)
    assert not is_sample("0" * 64)
    assert not is_sample(None)


@pytest.mark.long
@pytest.mark.parametrize("high", [False, True])
def test_no_letter_of_the_sample_stays_in_its_sky(high: bool) -> None:
    """A ghost is waves of letters' size that the sky beside the mark does not have. W-08"""
    with Image.open(SAMPLE) as image:
        marked = np.array(image.convert("RGB"))
    detection = detect(marked, threads=2)
    restored = restore(marked, detection, high=high, looks_twice=False, threads=2)
    assert restored.refused is None
    assert not restored.needs_look
    mark = cv2.dilate(detection.mask_loose.view(np.uint8), np.ones((9, 9), np.uint8)).view(np.bool_)
    near = cv2.dilate(mark.view(np.uint8), np.ones((41, 41), np.uint8)).view(np.bool_) & ~mark
    after = restored.picture.astype(np.float32)
    # The largest ones of letters' size, and the grain of one pixel's: as in the sky around.
    for narrow, wide, share, least, most in ((3, 8, 99.5, 0.0, 1.25), (0.5, 3, 50, 0.8, 1.25)):
        waves = np.abs(cv2.GaussianBlur(after, (0, 0), narrow) - cv2.GaussianBlur(after, (0, 0), wide)).mean(2)
        ratio = float(np.percentile(waves[mark], share) / np.percentile(waves[near], share))
        assert least <= ratio <= most, (narrow, wide, ratio)
