"""What speaks for and against a result: figures of the picture inside the former mark, beside its surroundings.

``confidence`` weighs them. Nothing here knows the picture without the mark.
"""

from typing import Any, NamedTuple

import cv2
import numpy as np

from headrace.removal.images.eye.inference import Detector
from headrace.removal.images.eye.model import Detection, Levels, Mask, Picture, Plane, grey_of
from headrace.removal.images.eye.residue import MAX_PIXELS, boxes_around

_RING_PX, _GAP_PX = 25, 13  # the surroundings of a mark: as wide as this, beginning this far away
_GROUND_PX = 61  # pixels over which the ground is taken together
_JOINED_PX = 31  # parts of a mark this near are looked at together
_MIN_PART_RATIO, _MAX_PARTS = 0.04, 12  # of the mark's pixels: smaller parts are not looked at by themselves
_MAX_PIXELS = 1_500_000  # of a mark's surroundings; larger ones are looked at on a smaller copy, as a person does
_SIGMAS_PX = (1.0, 2.0, 4.0)  # sizes of detail that are compared inside and outside
# A template is held against the result in its place and in these places beside it, where it is not.
_OFFSETS_PX = [(dy, dx) for dy in (-14, -7, 0, 7, 14) for dx in (-14, -7, 0, 7, 14) if abs(dy) + abs(dx) >= 14]


class Evidence(NamedTuple):
    """Figures of one result; more is worse, unless said otherwise. Of parts the worst counts."""

    template: float  # how far the mark's outline stands out in its place, in deviations from places beside it
    worst_template: float
    outline: float  # the share of the outline that stays, 1 for all of it
    edge: float  # how much steeper the mark's border is than the surroundings (logarithm)
    fine: float  # how much more detail is inside than outside, by its size (logarithms); less than 0 is blurred
    middle: float
    coarse: float
    blurred: float  # the most that a part lacks of the detail around it
    noisy: float  # and the most that one has more
    shift: float  # how far the inside is off the ground around it, beside what the ground varies
    worst_shift: float
    seen: float  # what a second look takes for a mark: its mean alpha, how much is likely, and in the worst part
    seen_likely: float
    worst_seen: float
    roughness: float  # of the surroundings
    disagreement: float  # how far another fill is off this one, beside the roughness
    worst_disagreement: float


def measure_evidence(
    before: Picture, after: Picture, mark: Detection, *, other: Picture | None = None, threads: int = 2
) -> Evidence:
    """The evidence on ``after``, the picture without ``mark``; ``other`` is another result for the same mark."""
    tight, loose, alpha, tint = _planes_of(mark)
    here = _around(loose)
    pictures = [before, after] if other is None else [before, after, other]
    if loose[here].size <= _MAX_PIXELS:
        seen = [plane[here] for plane in _second_detection(after, loose, threads)]
        pictures = [each[here] for each in pictures]
        return _weighed(pictures, (tight[here], loose[here]), seen, (alpha[here], tint[here]))
    # As bytes: a picture may fill a good part of the memory.
    scale = (_MAX_PIXELS / loose[here].size) ** 0.5
    pictures = [_scaled(each[here], scale) for each in pictures]
    masks = [_scaled(each[here].view(np.uint8) * np.uint8(255), scale) >= 64 for each in (tight, loose)]
    if not masks[0].any():
        masks[0] = masks[1] = _scaled(loose[here].view(np.uint8) * np.uint8(255), scale) > 0
    masks[1] |= masks[0]
    seen = _second_detection(pictures[1], masks[1], threads)
    return _weighed(pictures, (masks[0], masks[1]), seen, (_scaled(alpha[here], scale), _scaled(tint[here], scale)))


def _planes_of(mark: Detection) -> tuple[Mask, Mask, Levels, Levels]:
    """The mark's masks, alpha and colour times alpha, in 255ths, of the picture's size."""
    if mark.step == 1 and mark.finer is None:
        return mark.tight, mark.loose, mark.strength, mark.tint
    alpha = mark.alpha
    tint = np.rint(mark.colour * alpha[..., None]).astype(np.uint8)
    return mark.mask_tight, mark.mask_loose, np.rint(255 * alpha).astype(np.uint8), tint


def _scaled(plane: Any, scale: float) -> Any:
    return cv2.resize(plane, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)


def _weighed(
    pictures: list[Picture], masks: tuple[Mask, Mask], seen: list[Levels], ink: tuple[Levels, Levels]
) -> Evidence:
    before, after = pictures[:2]
    other = pictures[2] if len(pictures) > 2 else None
    tight, loose = masks
    alpha, tint = ink[0] * np.float32(1 / 255), ink[1].astype(np.float32)
    likely, strength = (plane.astype(np.float32) / 255 for plane in seen)
    floats = after.astype(np.float32)
    grey = grey_of(floats)
    outside = (~loose).astype(np.float32)
    square = (_GROUND_PX, _GROUND_PX)
    known = cv2.blur(outside, square)
    share = np.maximum(known, np.float32(1e-3))
    ground: Plane = (cv2.blur(floats * outside[..., None], square) / share[..., None]).astype(np.float32)
    ring = _dilated(tight, _RING_PX) & ~_dilated(tight, _GAP_PX) & ~loose
    if not ring.any():
        ring = ~loose if not loose.all() else loose
    bands: list[Plane] = [np.abs(_blurred(grey, sigma) - _blurred(grey, 2 * sigma)) for sigma in _SIGMAS_PX]
    rough = _mean(bands[0], ring)
    softened: Plane = cv2.blur(floats, (5, 5)).astype(np.float32)
    off: Plane = np.abs(softened - ground).max(2)
    varied = _mean(off, ring)
    apart = None
    if other is not None:
        apart = np.abs(softened - cv2.blur(other.astype(np.float32), (5, 5))).max(2)
    grey_before = grey_of(before.astype(np.float32))
    expected = _steps(_expected(grey_before, ground, alpha, tint))
    steps = _steps(grey)
    slope = np.hypot(steps[..., 0], steps[..., 1])
    border = _dilated(tight, 3) & ~cv2.erode(tight.view(np.uint8), np.ones((3, 3), np.uint8)).view(np.bool_)
    parts = _parts(tight, loose)

    def detail(band: Plane, inside: Mask, around: Mask) -> float:
        return float(np.log((_mean(band, inside) + 0.3) / (_mean(band, around) + 0.3)))

    def shift(inside: Mask) -> float:
        some = inside & (known > 0.1)
        return _mean(off, some if some.any() else inside) / (varied + 4)

    def disagreement(inside: Mask) -> float:
        return 0.0 if apart is None else float(np.log((_mean(apart, inside) + 1) / (2 * rough + 1)))

    details = [detail(bands[1], part, _nearby(part, loose, ring)) for part in parts]
    first = float((_steps(grey_before) * expected).sum())
    left = float((np.clip(steps, -60, 60) * expected).sum())
    return Evidence(
        template=_standing_out(steps, expected, loose),
        worst_template=max(_standing_out(steps, expected, _dilated(part, 5)) for part in parts),
        outline=float(np.clip(left / first, -1, 1)) if first > 0 else 0.0,
        edge=float(np.log((_mean(slope, border) + 0.5) / (_mean(slope, ring) + 0.5))),
        fine=detail(bands[0], loose, ring),
        middle=detail(bands[1], loose, ring),
        coarse=detail(bands[2], loose, ring),
        blurred=max(-each for each in details),
        noisy=max(details),
        shift=shift(loose),
        worst_shift=max(shift(part) for part in parts),
        seen=_mean(strength, loose),
        seen_likely=_mean(likely, loose),
        worst_seen=max(_mean(strength * likely, part) for part in parts),
        roughness=float(np.log(rough + 0.3)),
        disagreement=disagreement(loose),
        worst_disagreement=max(disagreement(part) for part in parts),
    )


def _second_detection(after: Picture, loose: Mask, threads: int) -> list[Levels]:
    """Probability and alpha of a mark by a second look; zero where that would take too long."""
    boxes = boxes_around(loose)
    if sum((box[0].stop - box[0].start) * (box[1].stop - box[1].start) for box in boxes) > MAX_PIXELS:
        return [np.zeros(loose.shape, np.uint8)] * 2
    planes, _ = Detector(threads, frugal=False).fine(after, boxes)
    return [planes[0], planes[1]]


def _expected(grey: Plane, ground: Plane, alpha: Plane, tint: Plane) -> Plane:
    """By how many levels the mark changes the picture, on the ground that is around it."""
    below: Plane = np.where(alpha > 0, grey_of(ground), grey)
    changed: Plane = grey_of(tint) - alpha * below
    return changed


def _standing_out(steps: Plane, expected: Plane, inside: Mask) -> float:
    """How far the mark's steps agree with the picture's, in deviations from what they do in places beside it."""
    rows, columns = np.flatnonzero(inside.any(1)), np.flatnonzero(inside.any(0))
    reach = 16
    here = np.s_[max(0, rows[0] - reach) : rows[-1] + reach + 1, max(0, columns[0] - reach) : columns[-1] + reach + 1]
    wanted = expected[here] * inside[here][..., None]
    power = float((wanted**2).sum())
    if power < 1:
        return 0.0
    found = np.clip(steps[here], -30, 30)
    agreed = float((found * wanted).sum())
    beside = [float((np.roll(found, offset, (0, 1)) * wanted).sum()) for offset in _OFFSETS_PX]
    deviation = float(np.std(beside)) + 0.02 * power
    return abs(agreed - float(np.mean(beside))) / deviation


def _parts(tight: Mask, loose: Mask) -> list[Mask]:
    """The larger parts of the mark, by what lies near together; all of it where there are too many."""
    count, labels = cv2.connectedComponents(_dilated(tight, _JOINED_PX).view(np.uint8), connectivity=8)
    pixels = np.bincount(labels[loose], minlength=count)
    pixels[0] = 0
    chosen = [n for n in np.argsort(-pixels)[:_MAX_PARTS] if pixels[n] >= _MIN_PART_RATIO * pixels.sum()]
    return [loose & (labels == n) for n in chosen] or [loose]


def _nearby(part: Mask, loose: Mask, ring: Mask) -> Mask:
    near = _dilated(part, 2 * _RING_PX + 1) & ~loose
    return near if near.sum() > 50 else ring


def _around(loose: Mask) -> tuple[slice, slice]:
    margin = 2 * _RING_PX
    rows, columns = np.flatnonzero(loose.any(1)), np.flatnonzero(loose.any(0))
    return np.s_[max(0, rows[0] - margin) : rows[-1] + margin, max(0, columns[0] - margin) : columns[-1] + margin]


def _dilated(mask: Mask, side: int) -> Mask:
    return cv2.dilate(mask.view(np.uint8), np.ones((side, side), np.uint8)).view(np.bool_)


def _blurred(plane: Plane, sigma: float) -> Plane:
    return cv2.GaussianBlur(plane, (0, 0), sigma)  # type: ignore[return-value]


def _mean(plane: Any, inside: Mask) -> float:
    return float(plane[inside].mean()) if inside.any() else 0.0


def _steps(plane: Plane) -> Plane:
    soft = _blurred(plane, 1)
    return np.stack([cv2.Sobel(soft, cv2.CV_32F, *way, scale=0.125) for way in ((1, 0), (0, 1))], 2)
