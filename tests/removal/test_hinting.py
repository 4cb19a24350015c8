"""What somebody knows of a mark is heeded: where it is, what it is, and what must stay."""

import cv2
import numpy as np
import pytest

from headrace.removal.images.eye.detecting import detect
from headrace.removal.images.eye.hinting import Hints
from headrace.removal.images.eye.model import Mask, Picture
from headrace.removal.images.eye.solving import solve


def _changed(marked: Picture, hints: Hints) -> Mask:
    detection = detect(marked, hints=hints)
    changed: Mask = (solve(marked, detection).picture != marked).any(2)
    return changed


def test_nothing_is_changed_outside_a_box(marked: Picture) -> None:
    changed = _changed(marked, Hints(boxes=((0, 0, 320, 480),)))
    assert changed[:, :320].any()
    assert not changed[:, 320:].any()


def test_nothing_is_changed_in_what_is_to_be_kept(marked: Picture) -> None:
    changed = _changed(marked, Hints(keep=((0, 0, 320, 480),)))
    assert changed[:, 320:].any()
    assert not changed[:, :320].any()


@pytest.mark.parametrize("by_mask", [True, False], ids=["mask", "keep"])
def test_a_strip_that_is_to_be_kept_is_no_gap_of_the_mark(by_mask: bool) -> None:
    """On smooth ground gaps of a mask are closed; also the strip that the user kept was, across each stroke."""
    letters = np.zeros((480, 640), np.uint8)
    cv2.putText(letters, "SAMPLE", (120, 260), cv2.FONT_HERSHEY_DUPLEX, 3, 255, 12, cv2.LINE_AA)
    sky = np.random.default_rng(3).normal(140, 1, (480, 640, 1)).repeat(3, 2)
    alpha = letters[..., None] / 510
    marked = np.rint(sky * (1 - alpha) + 255 * alpha).astype(np.uint8)
    mask = letters > 40
    mask[233:239] = False
    changed = _changed(marked, Hints(mask=mask) if by_mask else Hints(keep=((0, 233, 640, 6),)))
    assert changed[:230].any()
    assert changed[242:].any()
    assert not changed[235:237].any()  # a mask has a margin of two pixels
    assert by_mask or not changed[233:239].any()


def test_a_mask_is_taken_as_it_is(scene: Picture) -> None:
    marked = scene.copy()
    cv2.rectangle(marked, (200, 200), (260, 230), (250, 20, 20), -1)
    mask = np.zeros(scene.shape[:2], np.bool_)
    mask[198:233, 198:263] = True
    changed = _changed(marked, Hints(mask=mask))
    assert changed[205:225, 205:255].all()
    near = cv2.dilate(mask.view(np.uint8), np.ones((5, 5), np.uint8)).view(np.bool_)
    assert not changed[~near].any()


def test_a_mask_of_another_size_is_refused(scene: Picture) -> None:
    with pytest.raises(ValueError, match="another size"):
        detect(scene, hints=Hints(mask=np.ones((4, 4), np.bool_)))


@pytest.mark.parametrize("box", [(-1, 0, 5, 5), (0, 0, 0, 5), (0, 0, 5, -2)])
def test_a_box_that_is_none_is_refused(box: tuple[int, int, int, int]) -> None:
    with pytest.raises(ValueError, match="left, top, width, height"):
        Hints(boxes=(box,))


def test_one_region_alone_is_taken_off(scene: Picture) -> None:
    marked = scene.copy()
    for at in ((30, 60), (380, 450)):
        cv2.putText(marked, "SAMPLE", at, cv2.FONT_HERSHEY_DUPLEX, 1.6, (255, 255, 255), 3, cv2.LINE_AA)
    detection = detect(marked)
    assert len(detection.regions) >= 2
    first = detection.regions[0]
    alone = detection.only([1])
    assert alone.regions == (first,)
    rows, columns = np.nonzero(alone.mask_tight)
    assert first.top - 1 <= rows.min()
    assert rows.max() <= first.top + first.height
    assert first.left - 1 <= columns.min()
    with pytest.raises(ValueError, match="numbered from 1"):
        detection.only([99])
