"""Taking marks off frame after frame: each is as strong as the frames around say, and what was there is noted."""

from array import array
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.removal.report import Method
from headrace.removal.video import moving_marks, solving
from headrace.removal.video.frame_removal import Eraser
from headrace.removal.video.marks_file import Mark
from headrace.removal.video.model import Kind
from headrace.removal.video.moving_removal import MovingEraser
from headrace.removal.video.planes import parts_of, views_of
from headrace.removal.video.probing import Facts
from headrace.removal.video.result_file import writable
from headrace.removal.video.sampling import Box, Sample

_WINDOW_FRAMES = 3  # frames on either side that say, together with it, how strong a mark is in a frame
# Of its usual strength: from here on it is all there; under it, gone
_MIN_PRESENT_RATIO = 0.75
_MIN_VISIBLE_RATIO = 0.2
# Of a fading mark: minimum and maximum strength, and their steps
_MIN_STRENGTH = 0.06
_MAX_STRENGTH = 1.2
_STRENGTH_STEPS_COUNT = 32
_MAX_GONE_RATIO = 0.2  # a mark that is always there is gone only under this
# An outline so strong tells by itself, but for strengths between these
_MIN_CLEAR_LEVELS = 6.0
_UNCLEAR_RANGE_RATIO = (0.35, 0.65)
_MIN_JUMP_RATIO = 0.15  # of its strength: a frame that differs by more from those around it speaks for itself
_TIME_ROUNDING_SECONDS = 1e-4  # seconds: what times are off by rounding
_MAX_CHECKED_FRAMES = 240  # frames at most in which residue is measured


_Measured = tuple[Eraser | None, float, float]  # how strong a mark is in a frame, and how much that tells


@dataclass(slots=True)
class _Off:
    """One mark that is being taken off."""

    eraser: Eraser
    kind: str
    moving: MovingEraser | None = None
    within: tuple[float, float] | None = None
    window: "deque[tuple[float, float]]" = field(default_factory=lambda: deque(maxlen=2 * _WINDOW_FRAMES + 1))
    # By frame: the strength of the mark and the weight of its outline; nothing where it is absent.
    values: "array[float]" = field(default_factory=lambda: array("f"))
    weights: "array[float]" = field(default_factory=lambda: array("f"))
    places: "array[int]" = field(default_factory=lambda: array("i"))  # of one that moves: top and left, in turn

    def aim(self, bright: "NDArray[Any]", seconds: float) -> Eraser | None:
        """The eraser, where the mark is in this frame. None where it is nowhere, or must not be touched."""
        if self.within is not None and not self.within[0] <= seconds + _TIME_ROUNDING_SECONDS < self.within[1]:
            return None
        if self.moving is None:
            return self.eraser
        place = self.moving.find(bright)
        return None if place is None else self.moving.at(*place)

    def aimed(self, number: int) -> Eraser:
        """As it was in a frame that was done."""
        return self.eraser if self.moving is None else self.moving.at(*self.places[2 * number : 2 * number + 2])

    def strength(self, own: float, weight: float) -> float:
        """By the frame itself where its outline tells enough; else by all of the window, their weighted median."""
        if (
            weight >= _MIN_CLEAR_LEVELS
            and not _UNCLEAR_RANGE_RATIO[0] < own < _UNCLEAR_RANGE_RATIO[1]
            and self.kind is not Kind.FADING
        ):
            return self._settled(own)
        values = sorted(self.window)
        total = sum(each for _, each in values)
        if total <= 0:
            return 1.0 if self.kind is Kind.FIXED else 0.0
        passed = 0.0
        for value, each in values:
            passed += each
            if passed >= total / 2:
                jumps = (
                    self.kind is Kind.FADING and weight >= _MIN_CLEAR_LEVELS and abs(own - value) > _MIN_JUMP_RATIO
                )  # with a cut, say
                return self._settled(own if jumps else value)
        return 1.0

    def _settled(self, value: float) -> float:
        if self.kind in (Kind.FIXED, Kind.MOVING):
            return 1.0 if value > _MAX_GONE_RATIO else 0.0
        if self.kind is Kind.FADING:
            return (
                0.0
                if value < _MIN_STRENGTH
                else round(min(value, _MAX_STRENGTH) * _STRENGTH_STEPS_COUNT) / _STRENGTH_STEPS_COUNT
            )
        if value >= _MIN_PRESENT_RATIO:
            return 1.0
        return 0.0 if value < _MIN_VISIBLE_RATIO else value


class Remover:
    """Takes marks off the frames of one clip, in order."""

    def __init__(
        self, facts: Facts, marks: list[Mark], samples: list[Sample], *, heed: Callable[[], object],
        keep: list[Box] | None = None,
    ) -> None:  # fmt: skip
        self._facts = facts
        self._keep = (keep or []) if any(mark.path for mark in marks) else []  # others have it in their masks
        self._waiting: deque[tuple[Any, list[_Measured]]] = deque()
        self._seen = 0
        self._off: list[_Off] = []
        self.hopeless: str | None = None
        for mark in marks:
            views, shown = mark.views(samples, facts)
            which = _along(mark, facts) if mark.path else _which(mark, samples)
            fades = mark.candidate.kind is Kind.FADING
            eraser, residue = solving.way_of(
                views, which, shown.layout, mark.box, mark.matte,
                backgrounds=mark.candidate.backgrounds, fades=fades, filled=mark.filled, heed=heed,
            )  # fmt: skip
            if residue > solving.MAX_RESIDUE_RATIO:
                self.hopeless = (
                    f"Mark {mark.candidate.id} could not be taken off: {min(residue, 1):.0%} of it would stay."
                )
            moving = MovingEraser(mark, views, facts, invent=eraser.invent) if mark.path else None
            self._off.append(_Off(eraser, mark.candidate.kind, moving, mark.within))

    @property
    def method(self) -> Method:
        methods = {each.eraser.method for each in self._off}
        return methods.pop() if len(methods) == 1 else Method.BOTH

    def take(self, frame: Any) -> list[Any]:
        """A frame comes in, and those go out that are known well enough."""
        if frame.pts is None:
            frame.pts = self._facts.stamps[min(self._seen, self._facts.frames - 1)]
        ready = writable(frame, self._facts)
        bright = views_of(ready, self._facts.layout)[0]
        seconds = float((ready.pts - self._facts.stamps[0]) * self._facts.time_base)
        measured: list[_Measured] = []
        for each in self._off:
            eraser = each.aim(bright, seconds)
            value, weight = (0.0, 0.0) if eraser is None else eraser.measure(bright)
            measured.append((eraser, value, weight))
            each.window.append((value, weight))
        self._waiting.append((ready, measured))
        self._seen += 1
        return [self._next()] if len(self._waiting) > _WINDOW_FRAMES else []

    def rest(self) -> list[Any]:
        """The last frames."""
        left = []
        while self._waiting:
            left.append(self._next())
            for each in self._off:
                if len(each.window) > 1:
                    each.window.popleft()
        return left

    def _next(self) -> Any:
        frame, measured = self._waiting.popleft()
        planes = views_of(frame, self._facts.layout)
        kept = [plane.copy() for plane in planes] if self._keep else planes
        for each, (eraser, value, weight) in zip(self._off, measured, strict=True):
            strength = each.strength(value, weight) if eraser is not None else 0.0
            if eraser is not None:
                eraser.erase(planes, strength)
            each.values.append(value)
            each.weights.append(weight if strength > 0 else 0.0)
            if each.moving is not None:
                each.places.extend(eraser.place if eraser is not None else (0, 0))
        for box in self._keep:
            for one, other in zip(
                parts_of(planes, self._facts.layout, box), parts_of(kept, self._facts.layout, box), strict=True
            ):
                one[...] = other
        return frame

    @property
    def erasers(self) -> list[Eraser]:
        return [each.eraser for each in self._off]

    @property
    def resting(self) -> list[Eraser]:
        """Those of marks that stay in one place."""
        return [each.eraser for each in self._off if each.moving is None]

    def to_check(self) -> dict[int, list[tuple[Eraser, float, float]]]:
        """Frames that show in the result whether the marks went, by number: each mark with how strong it was there,
        and how much its outline tells."""
        found: dict[int, list[tuple[Eraser, float, float]]] = {}
        for each in self._off:
            there = np.flatnonzero(each.weights)
            for number in there[:: max(1, len(there) // _MAX_CHECKED_FRAMES)]:
                eraser = each.aimed(int(number))
                found.setdefault(int(number), []).append((eraser, each.values[number], each.weights[number]))
        return found


def _along(mark: Mark, facts: Facts) -> "np.ndarray[tuple[int], np.dtype[np.intp]]":
    """Which views of its path show what is left of a mark: where some of it is cut off, the frame's side does, too."""
    uncut = moving_marks.uncut(mark.path, mark.inner, facts)
    every = np.arange(len(mark.path))
    return every if uncut.sum() < solving.MIN_PERSISTING_BACKGROUNDS else np.where(uncut, every, -1)


def _which(mark: Mark, samples: list[Sample]) -> "np.ndarray[tuple[int], np.dtype[np.intp]]":
    """In which samples the mark is, by its spans; each counts as a background of its own."""
    which = np.full(len(samples), -1, np.intp)
    for number, each in enumerate(samples):
        if any(begins <= each.seconds + 1e-3 and each.seconds < ends for begins, ends in mark.candidate.seconds):
            which[number] = number
    return which
