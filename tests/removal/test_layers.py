"""Large flat marks, solved as layers of ink, and masks that the network drew too wide. 36, part 2"""

from dataclasses import replace

import cv2
import numpy as np
import pytest

from headrace.removal.images import inpainting, restoring
from headrace.removal.images.eye.layers import separate
from headrace.removal.images.eye.model import Detection, Mask, Picture, Plane, Region, loosened
from headrace.removal.images.eye.solving import solve
from headrace.removal.images.eye.trimming import trimmed
from headrace.removal.images.layered import without_layers

BAND = np.s_[120:170]


@pytest.fixture(scope="module")
def scene() -> Picture:
    """Hills under a sky: edges that a fill would have to invent."""
    rng = np.random.default_rng(3)
    rows, columns = np.indices((300, 400), np.float32)
    hills = 140 + 25 * np.sin(columns / 31) + 14 * np.sin(columns / 9)
    land = np.where((rows > hills)[..., None], (60, 90, 40), (150, 180, 220)).astype(np.float32)
    grain = cv2.GaussianBlur(rng.normal(0, 9, land.shape).astype(np.float32), (0, 0), 1)
    picture: Picture = np.clip(land + grain + (columns / 20)[..., None], 0, 255).astype(np.uint8)
    return picture


def words(size: tuple[int, ...]) -> Mask:
    plane = np.zeros(size[:2], np.uint8)
    cv2.putText(plane, "SAMPLE", (120, 157), cv2.FONT_HERSHEY_SIMPLEX, 1.2, (255,), 3)
    return plane > 0


def banded(scene: Picture) -> tuple[Picture, Plane, Plane]:
    """The scene under a dark band with white words, with alpha and colour."""
    alpha, colour = np.zeros(scene.shape[:2], np.float32), np.zeros(scene.shape, np.float32)
    alpha[BAND] = 0.6
    letters = words(scene.shape)
    alpha[letters], colour[letters] = 0.95, 255
    marked = np.rint(scene + alpha[..., None] * (colour - scene)).astype(np.uint8)
    return marked, alpha, colour


def seen(alpha: Plane, colour: Plane, tight: Mask, *, confirmed: bool = True) -> Detection:
    """What the network would say: alpha and colour blurred and a tenth off, the mask as given."""
    strength = np.rint(255 * np.clip(1.1 * cv2.blur(alpha, (5, 5)), 0, 1)).astype(np.uint8)
    tint = np.clip(cv2.blur(1.1 * alpha[..., None] * colour, (5, 5)), 0, 255).astype(np.uint8)
    rows, columns = np.flatnonzero(tight.any(1)), np.flatnonzero(tight.any(0))
    box = (int(columns[0]), int(rows[0]), int(np.ptp(columns)) + 1, int(np.ptp(rows)) + 1)
    likely = np.where(cv2.dilate(alpha, np.ones((3, 3), np.uint8)) > 0, 250, 120).astype(np.uint8)
    loose = loosened(tight)
    doubt = np.full(tight.shape, 20, np.uint8)
    region = Region(*box, 1.0, int(tight.sum()))
    planes = (likely * loose, strength * loose, tint * loose[..., None], doubt)
    return Detection(*tight.shape, 1, tight, loose, *planes, 1.0, (region,), confirmed=confirmed)  # type: ignore[call-arg, misc]


def wide(alpha: Plane) -> Mask:
    return cv2.dilate(alpha, np.ones((13, 13), np.uint8)) > 0


def off(picture: Picture, clean: Picture, where: Mask) -> float:
    return float(np.abs(picture[where].astype(np.float32) - clean[where]).mean())


def test_the_layers_end_where_the_picture_breaks_not_where_the_network_says(scene: Picture) -> None:
    marked, alpha, colour = banded(scene)
    mark = seen(alpha, colour, wide(alpha))
    layers = separate(
        marked.astype(np.float32), mark.likely.astype(np.float32), mark.strength * np.float32(1 / 255),
        mark.tint.astype(np.float32), mark.loose, 1.2,
    )  # fmt: skip
    assert layers is not None
    inked = cv2.resize((layers.labels > 0).view(np.uint8), (400, 300), interpolation=cv2.INTER_NEAREST) > 0
    assert (inked != (alpha > 0)).mean() < 0.02, "the mask itself is wider by 12 rows of 300"
    assert abs(float(layers.alphas[0]) - 0.6) < 0.05


def test_a_band_with_words_is_computed_as_layers_where_the_solver_leaves_the_words(scene: Picture) -> None:
    marked, alpha, colour = banded(scene)
    mark = seen(alpha, colour, wide(alpha))
    done = without_layers(marked, mark)
    assert done is not None
    assert (done.picture == marked).all(2)[~mark.loose].all(), "nothing changes outside the mask"
    inside = alpha > 0
    assert off(done.picture, scene, inside) < 0.6 * off(solve(marked, mark).picture, scene, inside)
    assert done.computed > done.invented


def test_the_better_of_solver_and_layers_is_handed_out(scene: Picture, monkeypatch: pytest.MonkeyPatch) -> None:
    marked, alpha, colour = banded(scene)
    mark = seen(alpha, colour, wide(alpha))
    monkeypatch.setattr(inpainting, "is_available", lambda: False)
    best = restoring.restore(marked, mark)
    layered = without_layers(marked, trimmed(mark))
    assert layered is not None
    assert (best.picture == layered.picture).all()


def test_thin_opaque_and_repeated_marks_are_no_layers(scene: Picture) -> None:
    marked, alpha, colour = banded(scene)
    mark = seen(alpha, colour, wide(alpha))
    assert without_layers(marked, replace(mark, repeated=True)) is None
    letters = words(scene.shape)
    assert without_layers(marked, replace(mark, tight=letters, loose=loosened(letters))) is None
    hidden = marked.copy()
    hidden[BAND] = 20
    whole = np.where(alpha > 0, 1, 0).astype(np.float32)
    assert without_layers(hidden, seen(whole, np.full_like(colour, 20), wide(whole))) is None


def test_in_a_drawn_box_the_gaps_between_letters_leave_the_mask(scene: Picture) -> None:
    letters = words(scene.shape)
    alpha = letters * np.float32(0.5)
    box = np.zeros_like(letters)
    box[125:165, 110:270] = True
    mark = seen(alpha, np.full(scene.shape, 255, np.float32), box)
    kept = trimmed(mark)
    assert not (letters & ~kept.tight).any()
    assert (kept.tight & ~wide(alpha)).sum() == 0, "what is neither likely nor inked"
    assert kept.tight.sum() < 0.8 * box.sum()
    for other in (replace(mark, confirmed=False), replace(mark, repeated=True)):
        assert trimmed(other) is other
