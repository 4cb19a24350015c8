"""A picture without its mark: by the solver, by the inpainter, or by whichever looks better."""

from dataclasses import replace

import numpy as np

from headrace.removal.images import confidence, inpainting
from headrace.removal.images.evidence import measure_evidence
from headrace.removal.images.eye.hinting import Hints
from headrace.removal.images.eye.model import MIN_FRUGAL_PIXELS, MIN_SCORE, Detection, Picture, Restoration
from headrace.removal.images.eye.smooth_ground import lies_on_smooth_ground
from headrace.removal.images.eye.solving import solve
from headrace.removal.images.second_pass import with_second_pass
from headrace.removal.thresholds import MIN_CLEAN_CONFIDENCE

# Of the picture: a hole as large leaves the inpainter too little to go by.
_MAX_HOLE_RATIO = 0.15
_MIN_LEAD = 0.05  # by which the inpainter's result must be likelier to be good


def restore(
    picture: Picture,
    detection: Detection,
    *,
    high: bool = False,
    hints: Hints | None = None,
    looks_twice: bool = True,
    least_score: float = MIN_SCORE,
    in_place: bool = False,
    variant: bool = False,
    threads: int = 2,
) -> Restoration:
    """The picture without the mark, and how likely that result is good.

    The inpainter also fills in the mark where the solver's result is not clean, with ``high`` always; the better of the
    two is taken, on smooth ground the solver's. ``variant`` asks for the other one, too. Of large pictures only the
    solver's result is made, with its own estimate, into ``picture`` with ``in_place``.
    """
    large = picture[..., 0].size > MIN_FRUGAL_PIXELS  # all that follows would take too much memory
    in_place = in_place and large and not high
    solved = solve(picture, detection, least_score=least_score, in_place=in_place, threads=threads)
    if solved.refused is not None or (large and not high):
        return solved
    if high and looks_twice:
        solved = with_second_pass(picture, solved, hints, threads=threads, least_score=least_score)
    if large:
        return solved
    mark = detection.at_least(least_score)
    evidence = measure_evidence(picture, solved.picture, mark, threads=threads)
    known = confidence.facts_of(mark, solved)
    solved = replace(solved, confidence=round(solved.gone * confidence.of_solved(evidence, known), 4))
    if not (high or variant or solved.confidence < MIN_CLEAN_CONFIDENCE) or not _suits(mark):
        return solved
    sky = lies_on_smooth_ground(picture, mark.mask_loose)
    if sky and not variant:
        return solved
    drawn = inpainting.inpaint(picture, mark.mask_loose)
    if drawn is None:
        return solved
    evidence = measure_evidence(picture, drawn, mark, other=solved.picture, threads=threads)
    chance = round(solved.gone * confidence.of_drawn(evidence, known), 4)
    other = Restoration(drawn, chance, 0, int((drawn != picture).any(2).sum()), gone=solved.gone)
    better = not sky and chance > solved.confidence + _MIN_LEAD
    first, second = (other, solved) if better else (solved, other)
    return replace(first, variant=second.picture if variant else None)


def _suits(mark: Detection) -> bool:
    """Whether the inpainter can fill in this mark."""
    if mark.repeated or mark.step > 1 or mark.finer is not None or not inpainting.is_available():
        return False
    return bool(np.any(mark.loose)) and mark.covered < _MAX_HOLE_RATIO
