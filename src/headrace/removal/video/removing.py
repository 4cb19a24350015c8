"""Taking marks off frame after frame: each is as strong as the frames around say, and what was there is noted."""

from array import array
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from headrace.removal.video import solving
from headrace.removal.video.erasing import Eraser
from headrace.removal.video.marks import Mark
from headrace.removal.video.model import Kind, Method
from headrace.removal.video.packaging import writable
from headrace.removal.video.planes import views_of
from headrace.removal.video.probing import Facts
from headrace.removal.video.sampling import Sample

_AHEAD = 3  # frames on either side that say, together with it, how strong a mark is in a frame
_ON, _OFF = 0.75, 0.2  # of its usual strength: from here on it is all there; under it, gone
_STAYS = 0.3  # a mark that is always there is gone only under this
_CLEAR, _OPEN = 6.0, (0.35, 0.65)  # an outline so strong tells by itself, but for strengths between these
_CHECKED = 240  # frames that the residue is read off, at the most


@dataclass(slots=True)
class _Off:
    """One mark that is being taken off."""

    eraser: Eraser
    kind: Kind
    window: "deque[tuple[float, float]]" = field(default_factory=lambda: deque(maxlen=2 * _AHEAD + 1))
    # Of each frame: how strong the mark was, and how much its outline told; nothing where it was not there.
    values: "array[float]" = field(default_factory=lambda: array("f"))
    weights: "array[float]" = field(default_factory=lambda: array("f"))

    def strength(self, own: float, weight: float) -> float:
        """By the frame itself where its outline tells enough; else by all of the window, their weighted median."""
        if weight >= _CLEAR and not _OPEN[0] < own < _OPEN[1]:
            return self._settled(own)
        values = sorted(self.window)
        total = sum(weight for _, weight in values)
        if total <= 0:
            return 1.0 if self.kind is Kind.FIXED else 0.0
        passed = 0.0
        for value, weight in values:
            passed += weight
            if passed >= total / 2:
                return self._settled(value)
        return 1.0

    def _settled(self, value: float) -> float:
        if self.kind is Kind.FIXED:
            return 1.0 if value > _STAYS else 0.0
        if value >= _ON:
            return 1.0
        return 0.0 if value < _OFF else value


class Remover:
    """Takes marks off the frames of one clip, in order."""

    def __init__(self, facts: Facts, marks: list[Mark], samples: list[Sample], *, heed: Callable[[], object]) -> None:
        self._facts = facts
        self._waiting: deque[tuple[Any, list[tuple[float, float]]]] = deque()
        self._seen = 0
        self._off: list[_Off] = []
        self.hopeless: str | None = None
        for mark in marks:
            which = _which(mark, samples)
            eraser, residue = solving.way_of(samples, which, facts.layout, mark.box, mark.matte, heed=heed)
            if residue > solving.GONE:
                self.hopeless = (
                    f"Mark {mark.candidate.id} could not be taken off: {min(residue, 1):.0%} of it would stay."
                )
            self._off.append(_Off(eraser, mark.candidate.kind))

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
        self._waiting.append((ready, [each.eraser.measure(bright) for each in self._off]))
        self._seen += 1
        for each, measured in zip(self._off, self._waiting[-1][1], strict=True):
            each.window.append(measured)
        return [self._next()] if len(self._waiting) > _AHEAD else []

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
        for each, (value, weight) in zip(self._off, measured, strict=True):
            strength = each.strength(value, weight)
            each.eraser.erase(planes, strength)
            each.values.append(value)
            each.weights.append(weight if strength > 0 else 0.0)
        return frame

    @property
    def erasers(self) -> list[Eraser]:
        return [each.eraser for each in self._off]

    def to_check(self) -> dict[int, list[tuple[Eraser, float, float]]]:
        """Frames that show in the result whether the marks went, by number: each mark with how strong it was there,
        and how much its outline tells."""
        found: dict[int, list[tuple[Eraser, float, float]]] = {}
        for each in self._off:
            there = np.flatnonzero(each.weights)
            for number in there[:: max(1, len(there) // _CHECKED)]:
                found.setdefault(int(number), []).append((each.eraser, each.values[number], each.weights[number]))
        return found


def _which(mark: Mark, samples: list[Sample]) -> "np.ndarray[tuple[int], np.dtype[np.intp]]":
    """In which samples the mark is, by its spans; each counts as a background of its own."""
    which = np.full(len(samples), -1, np.intp)
    for number, each in enumerate(samples):
        if any(begins <= each.seconds + 1e-3 and each.seconds < ends for begins, ends in mark.candidate.spans):
            which[number] = number
    return which
