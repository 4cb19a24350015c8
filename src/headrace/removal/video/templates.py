"""The outline of a mark, and the frames that have it, by how well their edges follow it."""

from collections.abc import Callable
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

Plane = NDArray[np.float32]
Steps = NDArray[np.float32]  # H W 2: how brightness changes to the right and down

_MAX_EDGE_LEVELS = 24.0  # levels: stronger edges count no more
_OUTLINE_MARGIN_PX = 3  # pixels around a mark that its outline reaches to
_MIN_CHANCE_RATIO = 4.0  # a likeness must be this many times its usual size by chance
_MIN_LIKENESS_RATIO = 0.12  # and so large by itself
_SHIFTS_PX = ((0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, -1), (1, -1), (-1, 1))
_MAX_COPY_DISTANCE_PX = 23  # pixels at most: the next copy of a repeated mark lies further off
_MAX_ROUNDS = 3
_MAX_NOISE_LEVELS = 0.7  # levels a pixel: steps of what is flatter are noise
_MIN_SAME_BACKGROUND_RATIO = 0.5  # backgrounds that are as like each other as this are one


def steps(bright: NDArray[np.uint8]) -> Steps:
    soft = cv2.GaussianBlur(bright.astype(np.float32), (0, 0), 1)
    right, down = cv2.Sobel(soft, cv2.CV_32F, 1, 0, scale=0.125), cv2.Sobel(soft, cv2.CV_32F, 0, 1, scale=0.125)
    return np.clip(np.stack([right, down], 2), -_MAX_EDGE_LEVELS, _MAX_EDGE_LEVELS).astype(np.float32)


@dataclass(frozen=True, slots=True)
class Presence:
    """In which of the views a mark is."""

    there: NDArray[np.bool_]
    likeness: NDArray[np.float64]  # of each view's edges to the outline, 1 is the same
    sureness: NDArray[np.float64]  # as multiples of what chance gives


def present(
    all_steps: list[Steps], mask: NDArray[np.bool_], seed: NDArray[np.bool_], heed: Callable[[], object] = lambda: None
) -> Presence:
    """Where a mark that is in the views ``seed`` is, too: its outline is learnt from all that have it."""
    zone = cv2.dilate(mask.view(np.uint8), np.ones((2 * _OUTLINE_MARGIN_PX + 1,) * 2, np.uint8)).view(np.bool_)
    places = _places(zone)
    there = seed.copy()
    likeness = sureness = np.zeros(len(all_steps))
    for _ in range(_MAX_ROUNDS):
        total = np.zeros_like(all_steps[0])
        for which in np.flatnonzero(there):  # one by one: a sum over a list copies all of it first
            total += all_steps[which]
        likeness, sureness = np.zeros(len(all_steps)), np.zeros(len(all_steps))
        for number, each in enumerate(all_steps):
            heed()
            # A view must not recognise itself.
            outline = total - each if there[number] and there.sum() > 1 else total
            likeness[number], chance = _likeness(each, outline, places)
            sureness[number] = likeness[number] / max(chance, 0.02)
        found = (sureness > _MIN_CHANCE_RATIO) & (likeness > _MIN_LIKENESS_RATIO)
        if not found.any() or (found == there).all():
            break
        there = found
    return Presence(there, likeness, sureness)


def _places(zone: NDArray[np.bool_]) -> list[NDArray[np.intp]]:
    """The pixels of the zone, by their numbers; and those where they are when the zone is put beside its place."""
    height, width = zone.shape
    reach = min(max(6, min(height, width) // 5), _MAX_COPY_DISTANCE_PX)
    rows, columns = np.nonzero(zone)
    shifts = ((0, 0), *_SHIFTS_PX)
    return [(rows - reach * down) % height * width + (columns - reach * right) % width for down, right in shifts]


def _likeness(view: Steps, outline: Steps, places: list[NDArray[np.intp]]) -> tuple[float, float]:
    """The similarity of the view to the outline, and by chance: the outline shifted to wrong places."""
    flat = view.reshape(-1, 2)
    pattern = outline.reshape(-1, 2)[places[0]].ravel()
    size = float(np.sqrt(pattern @ pattern))
    if size == 0:
        return 0.0, 1.0

    def at(where: NDArray[np.intp]) -> float:
        moved = flat[where].ravel()
        return float(moved @ pattern) / (size * max(float(np.sqrt(moved @ moved)), 1e-3))

    chance = [at(where) for where in places[1:]]
    return at(places[0]), float(np.sqrt(np.mean(np.square(chance))))


def backgrounds(all_steps: list[Steps], mask: NDArray[np.bool_], there: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Which of the pictures around the mark each view has: views of one scene that stands still have the same.

    -1 where the mark is not. Plain grounds differ by their noise alone: all of them are one.
    """
    near = np.flatnonzero(cv2.dilate(mask.view(np.uint8), np.ones((2 * _OUTLINE_MARGIN_PX + 3,) * 2, np.uint8)) == 0)
    found: list[NDArray[np.float32]] = []
    which = np.full(len(all_steps), -1, np.intp)
    plain = -1
    for number in np.flatnonzero(there):
        around = all_steps[number].reshape(-1, 2)[near].ravel()
        size = float(np.sqrt(around @ around))
        if size < _MAX_NOISE_LEVELS * np.sqrt(max(1, len(near))):
            if plain < 0:
                plain = len(found)
                found.append(np.zeros_like(around))
            which[number] = plain
            continue
        around = around / size
        alike = [float(around @ other) for other in found]
        if alike and max(alike) > _MIN_SAME_BACKGROUND_RATIO:
            which[number] = int(np.argmax(alike))
        else:
            which[number] = len(found)
            found.append(around)
    return which
