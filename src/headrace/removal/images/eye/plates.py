"""Bands and plates: a mark that fills most of an upright rectangle goes up to the sides that the picture shows.

The eye sees such a plate with ragged edges. What it overlooks stays as a dark or light remnant, and stains what is
filled in beside it.
"""

from collections.abc import Iterable
from typing import NamedTuple

import cv2
import numpy as np

from headrace.removal.images.eye.model import Levels, Mask, Picture, Plane, Region

_MIN_HEIGHT_PX, _MIN_WIDTH_PX = 10, 24  # pixels: smaller ones are letters
_MIN_CORE_RATIO = 0.4  # rows and columns belong to the plate that hold so much of what the fullest ones do
_MIN_FILLED_RATIO = 0.55  # of the core, and of the plate: emptier ones are letters without a plate
# Sides are looked for so far outside and inside the core, as shares of its shorter side
_OUTSIDE_REACH_RATIO = 0.4
_INSIDE_REACH_RATIO = 0.35
# Levels by which the picture steps at a side, and the share of it along which it does
_MIN_STEP_LEVELS = 1.5
_MIN_STEADY_RATIO = 0.7
_MAX_STEP_LEVELS = 12.0  # levels: a letter's edge counts no more
_MIN_STEP_RATIO = 0.4  # of its usual step: where a long side has less it ends
_BORDER_PX = 3  # pixels from the picture's border
_MIN_BAND_RATIO = 0.6  # of the picture's width
_MAX_OUTSIDE_RATIO = 0.15  # so much of the mark may lie outside the rectangle


class Box(NamedTuple):
    top: int
    bottom: int
    left: int
    right: int

    @property
    def part(self) -> tuple[slice, slice]:
        return slice(self.top, self.bottom), slice(self.left, self.right)

    @property
    def short(self) -> int:
        return min(self.bottom - self.top, self.right - self.left)


def complete(
    picture: Picture, seen: Levels, tight: Mask, regions: Iterable[Region], certainty: Levels | None = None
) -> list[Box]:
    """Enters what is overlooked of plates into ``tight``, made of what is seen of them into the planes ``seen``.

    Gives the plates.
    """
    found = []
    for region in regions:
        if region.height < _MIN_HEIGHT_PX or region.width < _MIN_WIDTH_PX:
            continue
        plate = _plate(picture, tight, region)
        if plate is None:
            continue
        found.append(plate)
        there = tight[plate.part]
        overlooked = ~there
        planes = seen[:, *plate.part]
        planes[:, overlooked] = np.median(planes[:, there], 1).astype(np.uint8)[:, None]
        there |= overlooked
        if certainty is not None:
            certainty[plate.part][overlooked] = round(255 * region.score)
    return found


def _plate(picture: Picture, tight: Mask, region: Region) -> Box | None:
    around = Box(region.top, region.top + region.height, region.left, region.left + region.width)
    core = _core(tight, around)
    if core is None or tight[core.part].mean() < _MIN_FILLED_RATIO:
        return None
    plate = _sides(picture, core)
    if plate is None or plate.short < _MIN_HEIGHT_PX or tight[plate.part].mean() < _MIN_FILLED_RATIO:
        return None
    inside, whole = int(tight[plate.part].sum()), int(tight[around.part].sum())
    return plate if inside >= (1 - _MAX_OUTSIDE_RATIO) * whole else None


def _core(tight: Mask, around: Box) -> Box | None:
    """The rows and columns of a region that are well filled."""
    part = tight[around.part]
    rows, columns = (np.flatnonzero(full >= _MIN_CORE_RATIO * full.max()) for full in (part.sum(1), part.sum(0)))
    top, bottom = around.top + int(rows[0]), around.top + int(rows[-1]) + 1
    left, right = around.left + int(columns[0]), around.left + int(columns[-1]) + 1
    core = Box(top, bottom, left, right)
    return core if core.short >= _MIN_HEIGHT_PX else None


def _sides(picture: Picture, core: Box) -> Box | None:
    """The rectangle around the core whose sides the picture shows.

    Along both long sides it is lighter inside, or along both darker: else these are edges of the scene. It ends where
    these sides end, be that the picture's border.
    """
    height = len(picture)
    reach = max(6, int(_OUTSIDE_REACH_RATIO * core.short))
    top, bottom = max(0, core.top - reach), min(height, core.bottom + reach)
    grey = cv2.cvtColor(picture[top:bottom], cv2.COLOR_RGB2GRAY).astype(np.float32)
    for strip in (grey, -grey):  # lighter inside, or darker
        rows = _long_sides(strip[:, core.left : core.right], core.top - top, core.bottom - top)
        columns = None if rows is None else _ends(strip, rows, core)
        if rows is not None and columns is not None:
            return Box(top + rows[0], top + rows[1], *columns)
    return None


def _long_sides(strip: Plane, start: int, end: int) -> tuple[int, int] | None:
    """Between which rows a strip is lighter: where it steps up about at ``start``, and down about at ``end``."""
    step = np.clip(strip[2:] - strip[:-2], -_MAX_STEP_LEVELS, _MAX_STEP_LEVELS)
    inside = max(3, int(_INSIDE_REACH_RATIO * (end - start)))
    first, last = step[: start + inside], step[max(0, end - inside - 2) :]
    rise = np.where((first > 0).mean(1) >= _MIN_STEADY_RATIO, first.mean(1), 0)
    fall = np.where((last < 0).mean(1) >= _MIN_STEADY_RATIO, -last.mean(1), 0)
    if min(rise.max(initial=0), fall.max(initial=0)) < _MIN_STEP_LEVELS:
        return None
    begins, ends = int(rise.argmax()) + 1, len(step) - len(last) + int(fall.argmax()) + 1
    return (begins, ends) if ends - begins >= _MIN_HEIGHT_PX else None


def _ends(strip: Plane, rows: tuple[int, int], core: Box) -> tuple[int, int] | None:
    """From which column to which the two long sides run."""
    upper = strip[rows[0] + 1] - strip[max(0, rows[0] - 2)]
    lower = strip[rows[1] - 2] - strip[min(len(strip) - 1, rows[1] + 1)]
    step = np.clip(upper, -_MAX_STEP_LEVELS, _MAX_STEP_LEVELS) + np.clip(lower, -_MAX_STEP_LEVELS, _MAX_STEP_LEVELS)
    wide = max(5, (rows[1] - rows[0]) // 2)
    smooth = cv2.blur(step[None], (wide, 1), borderType=cv2.BORDER_REPLICATE)[0]
    usual = float(np.median(smooth[core.left : core.right]))
    if usual < 2 * _MIN_STEP_LEVELS:
        return None
    apart = np.flatnonzero(smooth < _MIN_STEP_RATIO * usual)
    middle = (core.left + core.right) // 2
    before, after = apart[apart < middle], apart[apart > middle]
    # Where letters or the scene hide a side for a while the mask still says that the plate goes on.
    left = min(core.left, int(before[-1]) + 1 if len(before) else 0)
    right = max(core.right, int(after[0]) if len(after) else strip.shape[1])
    inner = strip[rows[0] : rows[1]]
    first, last = _short_side(inner, left, wide), _short_side(inner[:, ::-1], inner.shape[1] - right, wide)
    if right - left >= _MIN_BAND_RATIO * inner.shape[1]:  # a band goes from border to border
        first, last = first or 0, last or 0
    return None if first is None or last is None else (first, inner.shape[1] - last)


def _short_side(inner: Plane, about: int, wide: int) -> int | None:
    """The column at which a plate begins, given about where; one that begins at the picture's border has no side."""
    if about <= _BORDER_PX:
        return 0
    start = max(0, about - wide)
    part = inner[:, start : about + wide]
    step = np.clip(part[:, 2:] - part[:, :-2], -_MAX_STEP_LEVELS, _MAX_STEP_LEVELS)
    rise = np.where((step > 0).mean(0) >= _MIN_STEADY_RATIO, step.mean(0), 0)
    return start + int(rise.argmax()) + 1 if rise.max(initial=0) >= _MIN_STEP_LEVELS else None
