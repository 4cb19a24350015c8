"""Taking one mark off one frame, in the decoder's planes; and its strength in that frame."""

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from headrace.removal.images.eye.membrane import fill
from headrace.removal.images.views.solving import Matte
from headrace.removal.report import Method
from headrace.removal.video.planes import Layout, cropped, shrunk_to
from headrace.removal.video.sampling import Box

Plane = NDArray[np.float32]

_GROUND_PX = 41  # pixels: what is beneath a mark is as bright as what lies so near
_MAX_COMPUTED_ALPHA = 0.9  # of alpha that is computed with
_OUTLINE_ZONE_PX = 3  # pixels around the mark in which its outline is measured
# Levels, and times the mark's own: steeper edges of the picture count no more
_MAX_STEP_LEVELS = 24.0
_MAX_STEP_RATIO = 1.5
_SHADES_COUNT = 48  # strengths that are kept ready: a mark that fades has the same ones again and again
_MIN_OUTLINE_LEVELS = 0.6  # levels a pixel: an outline that is fainter tells nothing


class Eraser:
    """What is to be done in every frame, made ready once."""

    def __init__(self, box: Box, matte: Matte, layout: Layout, *, invent: bool = False) -> None:
        self.box, self.layout, self.invent = box, layout, invent
        self.place = (box[0], box[2])  # of the matte, which may reach beyond the box
        self._alpha, self._tint, self._loose = matte.alpha, matte.tint, matte.loose
        solid = matte.opaque & matte.loose
        if invent:
            solid = matte.loose & (matte.alpha > 0.05)
        self._inked = int(matte.loose.sum())
        self._hole = cv2.dilate(solid.view(np.uint8), np.ones((5, 5), np.uint8)).view(np.bool_) if solid.any() else None
        if self._hole is not None:
            self._hole &= matte.loose
        self._ready = {1.0: self._prepared(1.0)}
        self._outside = (~matte.loose).astype(np.float32)
        self._seen = cv2.blur(self._outside, (_GROUND_PX, _GROUND_PX)) + np.float32(1e-4)
        self._zone = cv2.dilate(matte.loose.view(np.uint8), np.ones((2 * _OUTLINE_ZONE_PX + 1,) * 2, np.uint8)).astype(
            np.float32
        )
        self._bright_tint = np.ascontiguousarray(matte.tint[..., 0])

    @property
    def method(self) -> Method:
        if self._hole is None:
            return Method.COMPUTED
        return Method.INVENTED if not (self._loose & ~self._hole).any() else Method.BOTH

    @property
    def filled(self) -> NDArray[np.bool_] | None:
        """The pixels of the box that are filled in from around it; None for none."""
        return self._hole

    @property
    def changed(self) -> int:
        """Pixels."""
        return self._inked

    def _prepared(self, strength: float) -> list[tuple[Plane, Plane]]:
        """For each plane: what it is multiplied with, and what is taken off before."""
        alpha = np.minimum(self._alpha * strength, _MAX_COMPUTED_ALPHA)
        scale = np.float32(1 << self.layout.shift)
        prepared = []
        for channel in range(3):
            tint = self._tint[..., channel] * np.float32(strength) * scale
            here = alpha if channel == 0 else shrunk_to(alpha, self.layout)
            less = tint if channel == 0 else shrunk_to(tint, self.layout)
            gain: Plane = np.reciprocal(1 - here).astype(np.float32)
            prepared.append((gain, less.astype(np.float32)))
        return prepared

    def erase(self, planes: list[NDArray[Any]], strength: float = 1.0) -> None:
        """In place. Outside the mark no sample changes."""
        if strength <= 0:
            return
        before = cropped(planes, self.layout, self.box) if self._hole is not None else None
        ready = self._ready.get(strength) or self._prepared(strength)
        if len(self._ready) < _SHADES_COUNT:
            self._ready[strength] = ready
        most = (256 << self.layout.shift) - 1
        for channel, (gain, less) in enumerate(ready):
            part = self._part(planes[channel], channel)
            solved = np.clip(np.rint((part - less) * gain), 0, most)
            part[...] = np.where(gain > 1, solved, part)
        if before is not None and self._hole is not None:
            self._fill(planes, self._hole)

    def _fill(self, planes: list[NDArray[Any]], hole: NDArray[np.bool_]) -> None:
        whole = cropped(planes, self.layout, self.box).astype(np.float32)
        filled = fill(whole, hole)
        for channel in range(3):
            part = self._part(planes[channel], channel)
            where = hole.astype(np.float32)
            fresh = filled[..., channel]
            if channel:
                where, fresh = shrunk_to(where, self.layout), shrunk_to(np.ascontiguousarray(fresh), self.layout)
            scaled = np.rint(fresh * (1 << self.layout.shift)).astype(part.dtype)
            part[...] = np.where(where > 0, scaled, part)

    def _part(self, plane: NDArray[Any], channel: int) -> NDArray[Any]:
        top, bottom, left, right = self.box
        if channel:
            down, across = self.layout.down, self.layout.across
            top, bottom, left, right = top >> down, -(-bottom >> down), left >> across, -(-right >> across)
        return plane[top:bottom, left:right]

    def measure(self, bright: NDArray[Any]) -> tuple[float, float]:
        """How strong the mark is in a frame, as a share of what it usually is; and how much its outline tells there.

        ``bright`` is the frame's first plane. Over a ground of its own colour a mark is not seen, and tells nothing.
        """
        part = self._part(bright, 0)
        part = (part >> self.layout.shift if self.layout.shift else part).astype(np.float32)
        ground = cv2.divide(cv2.blur(cv2.multiply(part, self._outside), (_GROUND_PX, _GROUND_PX)), self._seen)
        outline = _steps(self._bright_tint - cv2.multiply(self._alpha, ground))
        there = _steps(part)
        power = alike = 0.0
        for one, other in zip(outline, there, strict=True):
            one *= self._zone
            most = np.maximum(np.abs(one) * np.float32(_MAX_STEP_RATIO), np.float32(_MAX_STEP_LEVELS))
            power += float(np.vdot(one, one))
            alike += float(np.vdot(one, np.clip(other, -most, most)))
        if power < _MIN_OUTLINE_LEVELS**2 * max(1, self._inked):
            return 0.0, 0.0
        return alike / power, power / self._inked


def _steps(plane: Plane) -> tuple[Plane, Plane]:
    """To the right and down."""
    soft = cv2.GaussianBlur(plane, (0, 0), 0.8)
    return tuple(cv2.Sobel(soft, cv2.CV_32F, *way, scale=0.125) for way in ((1, 0), (0, 1)))  # type: ignore[return-value]
