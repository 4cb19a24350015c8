"""A picture worked on twice, the second time mirrored: what both passes agree on is better than either.

The eye, the solver and the filling all err, and differently where left is right. The mean of both is nearer to what
lies under the mark: docs/why/removal-images.md has the figures.
"""

from dataclasses import replace

import numpy as np

from headrace.removal.images.eye import detecting
from headrace.removal.images.eye.hinting import Hints
from headrace.removal.images.eye.model import MIN_SCORE, Picture, Restoration
from headrace.removal.images.eye.solving import solve

_MIN_AGREEMENT_RATIO = 0.9  # of what either has changed, that both have


def with_second_pass(
    picture: Picture, first: Restoration, hints: Hints | None, *, threads: int, least_score: float = MIN_SCORE
) -> Restoration:
    """The restoration, better where a second pass came to one, too. Nothing changes that the first has not changed."""
    if first.refused is not None:
        return first
    mirrored: Picture = np.ascontiguousarray(picture[:, ::-1])
    detection = detecting.detect(mirrored, threads=threads, hints=_mirrored(hints, picture.shape[1]))
    second = solve(mirrored, detection, least_score=least_score, threads=threads)
    if second.refused is not None:
        return first
    other = second.picture[:, ::-1]
    changed, likewise = (first.picture != picture).any(2), (other != picture).any(2)
    both = changed & likewise
    if both.sum() < _MIN_AGREEMENT_RATIO * (changed | likewise).sum():
        return first  # one of them has overlooked a part: a shadow, a plate
    mean = (first.picture[both].astype(np.uint16) + other[both] + 1) // 2
    result = first.picture.copy()
    result[both] = mean.astype(np.uint8)
    return replace(first, picture=result)


def _mirrored(hints: Hints | None, across: int) -> Hints | None:
    if hints is None:
        return None

    def turned(boxes: tuple[tuple[int, int, int, int], ...]) -> tuple[tuple[int, int, int, int], ...]:
        # A box may reach beyond the picture; what does is of no meaning.
        ends = [(left, top, min(left + width, across), height) for left, top, width, height in boxes]
        return tuple((across - right, top, right - left, height) for left, top, right, height in ends)

    return Hints(
        boxes=turned(hints.boxes),
        keep=turned(hints.keep),
        mask=None if hints.mask is None else np.ascontiguousarray(hints.mask[:, ::-1]),
        polygons=tuple(tuple((across - x, y) for x, y in corners) for corners in hints.polygons),
    )
