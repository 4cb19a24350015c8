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
_JOINED_PX = 31  # parts of a mark this near are looked at together
_MIN_PART_RATIO, _MAX_PARTS = 0.04, 12  # of the mark's pixels: smaller parts are not looked at by themselves
_MAX_PIXELS = 1_500_000  # of a mark's surroundings; larger ones are looked at on a smaller copy, as a person does
# An outline is a band of the mask's own slope; steps across it are taken together along it.
_OUTLINE_SIGMA_PX, _MIN_SLOPE_RATIO, _ALONG_SIGMA_PX, _MIN_OUTLINE_PIXELS = 2.0, 0.3, 5.0, 20
_LAYER_SIGMA_PX, _LAYER_MARGIN_PX, _MAX_LAYER_LEVELS, _MIN_LAYER_POWER = 4.0, 3, 25.0, 50.0
# What was taken off is held against the result in its place and in these places beside it, where it was not.
_OFFSETS_PX = [(dy, dx) for dy in (-14, -7, 0, 7, 14) for dx in (-14, -7, 0, 7, 14) if abs(dy) + abs(dx) >= 14]


class Evidence(NamedTuple):
    """Figures of one result; more is worse, unless said otherwise. Of parts the worst counts."""

    worst_seen: float  # what a second look takes for a mark: its mean alpha times its probability
    edge: float  # how much steeper the mark's border is than the surroundings (logarithm)
    across: float  # steps across the outline that go the same way along it (logarithm of levels)
    across_half: float  # the same at half the size
    layer: float  # how far the result goes with what was taken off, or against it: 1 is all the way
    roughness: float  # of the surroundings (logarithm)


def measure_evidence(before: Picture, after: Picture, mark: Detection, *, threads: int = 2) -> Evidence:
    """The evidence on ``after``, the picture ``before`` without ``mark``."""
    tight, loose = mark.mask_tight, mark.mask_loose
    here = _around(loose)
    if loose[here].size <= _MAX_PIXELS:
        seen = [plane[here] for plane in _second_detection(after, loose, threads)]
        return _weighed((before[here], after[here]), (tight[here], loose[here]), seen)
    # As bytes: a picture may fill a good part of the memory.
    scale = (_MAX_PIXELS / loose[here].size) ** 0.5
    pictures = (_scaled(before[here], scale), _scaled(after[here], scale))
    masks = [_scaled(_bytes(each[here]), scale) >= 64 for each in (tight, loose)]
    if not masks[0].any():
        masks[0] = masks[1] = _scaled(_bytes(loose[here]), scale) > 0
    masks[1] |= masks[0]
    return _weighed(pictures, (masks[0], masks[1]), _second_detection(pictures[1], masks[1], threads))


def _scaled(plane: Any, scale: float) -> Any:
    return cv2.resize(plane, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)


def _weighed(pictures: tuple[Picture, Picture], masks: tuple[Mask, Mask], seen: list[Levels]) -> Evidence:
    before, after = (grey_of(each.astype(np.float32)) for each in pictures)
    tight, loose = masks
    likely, strength = (plane.astype(np.float32) / 255 for plane in seen)
    ring = _dilated(tight, _RING_PX) & ~_dilated(tight, _GAP_PX) & ~loose
    if not ring.any():
        ring = ~loose if not loose.all() else loose
    rough = _mean(np.abs(_blurred(after, 1.0) - _blurred(after, 2.0)), ring)
    slope = np.hypot(*_steps(after))
    border = _dilated(tight, 3) & ~cv2.erode(tight.view(np.uint8), np.ones((3, 3), np.uint8)).view(np.bool_)
    half, half_tight = _scaled(after, 0.5), _scaled(_bytes(tight), 0.5) >= 128
    return Evidence(
        worst_seen=max(_mean(strength * likely, part) for part in _parts(tight, loose)),
        edge=float(np.log((_mean(slope, border) + 0.5) / (_mean(slope, ring) + 0.5))),
        across=_across(after, tight),
        across_half=_across(half, half_tight),
        layer=_layer(before, after, loose),
        roughness=float(np.log(rough + 0.3)),
    )


def _across(grey: Plane, tight: Mask) -> float:
    """Steps across the outline, taken together along it: those of the picture go either way, those of a ghost one."""
    inside = _blurred(tight.astype(np.float32), _OUTLINE_SIGMA_PX)
    right, down = (cv2.Sobel(inside, cv2.CV_32F, *way) for way in ((1, 0), (0, 1)))
    slope = np.hypot(right, down)
    along = slope > _MIN_SLOPE_RATIO * max(float(slope.max()), 1e-6)
    if along.sum() < _MIN_OUTLINE_PIXELS:
        return float(np.log(0.1))
    steps = _steps(grey)
    step = np.where(along, (steps[0] * right + steps[1] * down) / np.maximum(slope, 1e-6), 0).astype(np.float32)
    share = _blurred(along.astype(np.float32), _ALONG_SIGMA_PX) + np.float32(1e-3)
    return float(np.log(np.abs(_blurred(step, _ALONG_SIGMA_PX) / share)[along].mean() + 0.1))


def _layer(before: Plane, after: Plane, loose: Mask) -> float:
    """How far the result goes with what was taken off, beside how far it does in places where nothing was.

    Of a ghost some is left, or its negative; under an opaque mark all of an invented structure is against it.
    """

    def detail(plane: Plane) -> Plane:
        return _blurred(plane, _LAYER_SIGMA_PX) - _blurred(plane, 2.5 * _LAYER_SIGMA_PX)

    near = _dilated(loose, 2 * _LAYER_MARGIN_PX + 1)
    taken = detail((before - after) * loose) * near
    power = float((taken**2).sum())
    if power < _MIN_LAYER_POWER:
        return 0.0
    found = np.clip(detail(after), -_MAX_LAYER_LEVELS, _MAX_LAYER_LEVELS)
    beside = [float((np.roll(found, offset, (0, 1)) * taken).sum()) for offset in _OFFSETS_PX]
    return abs(float((found * taken).sum()) - float(np.mean(beside))) / power


def _second_detection(after: Picture, loose: Mask, threads: int) -> list[Levels]:
    """Probability and alpha of a mark by a second look; zero where that would take too long."""
    boxes = boxes_around(loose)
    if sum((box[0].stop - box[0].start) * (box[1].stop - box[1].start) for box in boxes) > MAX_PIXELS:
        return [np.zeros(loose.shape, np.uint8)] * 2
    planes, _ = Detector(threads, frugal=False).fine(after, boxes)
    return [planes[0], planes[1]]


def _parts(tight: Mask, loose: Mask) -> list[Mask]:
    """The larger parts of the mark, by what lies near together; all of it where there are too many."""
    count, labels = cv2.connectedComponents(_dilated(tight, _JOINED_PX).view(np.uint8), connectivity=8)
    pixels = np.bincount(labels[loose], minlength=count)
    pixels[0] = 0
    chosen = [n for n in np.argsort(-pixels)[:_MAX_PARTS] if pixels[n] >= _MIN_PART_RATIO * pixels.sum()]
    return [loose & (labels == n) for n in chosen] or [loose]


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


def _steps(plane: Plane) -> list[Plane]:
    """To the right and down."""
    soft = _blurred(plane, 1)
    return [cv2.Sobel(soft, cv2.CV_32F, *way, scale=0.125) for way in ((1, 0), (0, 1))]  # type: ignore[misc]


def _bytes(mask: Mask) -> Levels:
    return mask.view(np.uint8) * np.uint8(255)
