"""Taking off a mark that moves: found in each frame by its outline, and removed where it is present."""

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.removal.images.views.solving import Matte
from headrace.removal.video import templates
from headrace.removal.video.frame_removal import Eraser
from headrace.removal.video.marks_file import Mark
from headrace.removal.video.moving_marks import Follower, Outline
from headrace.removal.video.probing import Facts
from headrace.removal.video.sampling import Sample

_Pads = tuple[int, int, int, int]  # rows and columns before and after the matte; negative where it leaves the frame


class MovingEraser:
    """Gives, frame by frame, an eraser that lies where the mark is."""

    def __init__(self, mark: Mark, views: list[Sample], facts: Facts, *, invent: bool) -> None:
        self._matte, self._facts, self._invent = mark.matte, facts, invent
        self._made: dict[_Pads, Eraser] = {}
        top, bottom, left, right = mark.box
        beside = ~mark.matte.loose
        ground = float(np.mean([view.planes[0][top:bottom, left:right][beside].mean() for view in views]))
        contrast = mark.matte.tint[..., 0] - mark.matte.alpha * np.float32(ground)
        # Its surroundings may reach beyond the frame's sides; what is looked for must not.
        rows, columns = np.flatnonzero(mark.matte.loose.any(1)), np.flatnonzero(mark.matte.loose.any(0))
        here = np.s_[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
        self._offset = int(rows[0]), int(columns[0])
        outline = Outline.of(templates.steps(contrast)[here], np.ascontiguousarray(mark.matte.loose[here]))
        self._follower = Follower(outline, facts)

    def find(self, bright: NDArray[Any]) -> tuple[int, int] | None:
        """The top and left of the mark's box in a frame. None as long as it was in none."""
        place = self._follower.place(bright)
        return None if place is None else (place[0] - self._offset[0], place[1] - self._offset[1])

    def at(self, top: int, left: int) -> Eraser:
        """Colours lie on even pixels, and nothing outside the frame."""
        height, width = self._matte.alpha.shape
        most = (self._facts.height // 2 * 2, self._facts.width // 2 * 2)
        first, begin = max(0, top // 2 * 2), max(0, left // 2 * 2)
        last, end = min(most[0], (top + height + 1) // 2 * 2), min(most[1], (left + width + 1) // 2 * 2)
        pads = (top - first, last - top - height, left - begin, end - left - width)
        if pads not in self._made:
            box = (0, last - first, 0, end - begin)
            self._made[pads] = Eraser(box, _padded(self._matte, pads), self._facts.layout, invent=self._invent)
        moved = copy.copy(self._made[pads])
        moved.box, moved.place = (first, last, begin, end), (top, left)
        return moved


def _padded(matte: Matte, pads: _Pads) -> Matte:
    return Matte(_pad(matte.alpha, pads), _pad(matte.tint, pads), _pad(matte.loose, pads), matte.trust)


def _pad(plane: NDArray[Any], pads: _Pads) -> NDArray[Any]:
    above, below, before, after = pads
    kept = plane[max(0, -above) : plane.shape[0] - max(0, -below), max(0, -before) : plane.shape[1] - max(0, -after)]
    around = ((max(0, above), max(0, below)), (max(0, before), max(0, after)), (0, 0))[: plane.ndim]
    return np.ascontiguousarray(np.pad(kept, around))
