"""What tells that a mark is in a view: neither an outline alone, nor a view that cannot show it."""

from fractions import Fraction

import numpy as np
import pytest

from headrace.removal.images.views import detection
from headrace.removal.images.views.detection import Look
from headrace.removal.images.views.solving import Matte
from headrace.removal.report import Check, Verdict, of_check
from headrace.removal.video import static_marks, templates
from headrace.removal.video.blur import detail_ratio
from headrace.removal.video.frame_removal import Eraser
from headrace.removal.video.planes import Layout
from headrace.removal.video.probing import Facts
from headrace.removal.video.sampling import Sample

HEIGHT, WIDTH = 64, 96
WORD, EMBLEM = np.s_[20:40, 40:80], np.s_[20:40, 10:30]


def look(*places: tuple[slice, slice]) -> Look:
    """A look that sees white, half-transparent ink in these places."""
    seen = np.zeros((6, HEIGHT, WIDTH), np.uint8)
    for place in places:
        seen[0][place], seen[1][place] = 250, 128
        for plane in (2, 3, 4):
            seen[plane][place] = 110
    return Look(seen)


def ground(level: int) -> "np.ndarray[tuple[int, int, int], np.dtype[np.uint8]]":
    return np.full((HEIGHT, WIDTH, 3), level, np.uint8)


def test_a_view_as_bright_as_the_ink_denies_nothing() -> None:  # W-03
    """A white emblem on a white sky is invisible: the one shot over a meadow counts, and it was left there."""
    views = [ground(90), *4 * [ground(90)]]
    for view in views[1:]:
        view[:, :35] = 252
    looks = [look(WORD, EMBLEM), *4 * [look(WORD)]]
    assert detection.likely(looks)[EMBLEM].max() < 128
    together = detection.likely(detection.weighed(looks, views))
    assert together[EMBLEM].min() > 128
    assert together[WORD].min() > 128
    assert together[50:, :].max() < 128


def test_views_that_show_the_ground_still_deny() -> None:
    looks = detection.weighed([look(WORD, EMBLEM), *4 * [look(WORD)]], 5 * [ground(90)])
    assert detection.likely(looks)[EMBLEM].max() < 128


@pytest.mark.parametrize(("is_seen", "present"), [(True, 1.0), (False, 0.6)])
def test_times_without_an_outline_are_looked_at(
    is_seen: bool, present: float, monkeypatch: pytest.MonkeyPatch
) -> None:  # W-03
    """A red logo as bright as the road has no outline: it was taken for gone, and stayed in the result."""
    layout, stamps = Layout("yuv420p", 1, 1, 8, full=False), tuple(range(10))
    facts = Facts("", "mp4", "h264", WIDTH, HEIGHT, 0, None, layout, Fraction(1), Fraction(1), stamps, 1, 0, 0, 0)
    samples = [
        Sample(number, float(number), [np.full(size, 100, np.uint8) for size in ((64, 96), (32, 48), (32, 48))])
        for number in range(10)
    ]
    there, sure = np.arange(10) < 6, np.ones(10)
    presence = templates.Presence(there, sure, sure)
    found = static_marks.Found((0, HEIGHT, 0, WIDTH), 0.9, presence, np.where(there, 0, -1))
    found.looks = [look(WORD)]
    monkeypatch.setattr(detection, "look", lambda *_args, **_options: look(WORD) if is_seen else look())
    static_marks._fill_gaps(found, samples, facts, 1, lambda: None)
    assert found.presence.there.mean() == present
    assert (found.which >= 0).mean() == present


@pytest.mark.parametrize(
    ("side", "is_blurred", "verdict"), [(40, True, Verdict.LOOK), (40, False, Verdict.CLEAN), (10, True, Verdict.CLEAN)]
)
def test_a_wide_blur_over_a_rich_picture_is_worth_a_look(side: int, is_blurred: bool, verdict: Verdict) -> None:
    """A word over a third of the clip was filled with a smear, and the result called clean."""
    layout = Layout("yuv420p", 1, 1, 8, full=False)
    bright = np.random.default_rng(7).integers(16, 235, (120, 200)).astype(np.uint8)
    alpha = np.zeros((80, 80), np.float32)
    alpha[20 : 20 + side, 20 : 20 + side] = 1
    matte = Matte(alpha, np.repeat(200 * alpha[..., None], 3, 2), alpha > 0, 1.0)
    eraser = Eraser((20, 100, 40, 120), matte, layout, invent=True)
    if is_blurred:
        bright[40 : 40 + side, 60 : 60 + side] = 120
    sample = Sample(0, 0.0, [bright, np.full((60, 100), 128, np.uint8), np.full((60, 100), 128, np.uint8)])
    detail = detail_ratio([sample], layout, [eraser])
    assert of_check(Check(True, None, 1.0, 0.0, detail=detail)) is verdict
