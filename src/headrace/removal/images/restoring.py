"""A picture without its mark: by the solver, by the inpainter, or by whichever looks better."""

from dataclasses import replace

import numpy as np

from headrace.removal.images import confidence, inpainting
from headrace.removal.images.evidence import measure_evidence
from headrace.removal.images.eye.hinting import Hints
from headrace.removal.images.eye.model import MIN_FRUGAL_PIXELS, MIN_SCORE, Detection, Picture, Restoration
from headrace.removal.images.eye.smooth_ground import lies_on_smooth_ground
from headrace.removal.images.eye.solving import refusal, solve
from headrace.removal.images.eye.trimming import trimmed
from headrace.removal.images.layered import Layered, without_layers
from headrace.removal.images.second_pass import with_second_pass
from headrace.removal.thresholds import MIN_CLEAN_CONFIDENCE

# Of the picture: a hole as large leaves the inpainter too little to go by.
_MAX_HOLE_RATIO = 0.15
_MIN_LEAD = 0.2  # by which the inpainter's result must be likelier to be good: what it invents is worse than a trace
_LAYERS_LEAD = 0.15  # by which that of the layers may be less likely: what fits along all outlines is right


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
    refused = refusal(picture, detection, least_score)
    if refused is not None:
        return refused
    if not large:
        detection = trimmed(detection)
    solved = solve(picture, detection, least_score=least_score, in_place=in_place, threads=threads)
    mark = detection if large else detection.at_least(least_score)
    layered = None if large else without_layers(picture, mark)
    if layered is None and (solved.refused is not None or (large and not high)):
        return solved
    if high and looks_twice:
        solved = with_second_pass(picture, solved, hints, threads=threads, least_score=least_score)
    if large:
        return solved
    best = _better_of(picture, mark, solved, layered, threads=threads)
    if not (high or variant or best.confidence < MIN_CLEAN_CONFIDENCE) or not _suits(mark):
        return best
    sky = lies_on_smooth_ground(picture, mark.mask_loose)
    if sky and not variant:
        return best
    drawn = inpainting.inpaint(picture, mark.mask_loose)
    if drawn is None:
        return best
    evidence = measure_evidence(picture, drawn, mark, threads=threads)
    invented = best.filled / max(1, best.filled + best.inverted)
    chance = round(best.gone * confidence.of_drawn(evidence, invented), 4)
    other = Restoration(drawn, chance, 0, int((drawn != picture).any(2).sum()), gone=best.gone)
    better = not sky and chance > best.confidence + _MIN_LEAD
    first, second = (other, best) if better else (best, other)
    return replace(first, variant=second.picture if variant else None)


def _better_of(
    picture: Picture, mark: Detection, solved: Restoration, layered: Layered | None, *, threads: int
) -> Restoration:
    """The solver's result or that of the layers, with how likely it is good."""
    results = [] if solved.refused is not None else [solved]
    if layered is not None:
        gone = solved.gone if solved.refused is None else 1.0
        results.append(Restoration(layered.picture, 0.0, layered.computed, layered.invented, gone=gone))
    weighed = []
    for each in results:
        chance = confidence.of_computed(measure_evidence(picture, each.picture, mark, threads=threads))
        weighed.append(replace(each, confidence=round(each.gone * chance, 4)))
    if len(weighed) == 2 and weighed[1].confidence > weighed[0].confidence - _LAYERS_LEAD:
        return weighed[1]
    return weighed[0]


def _suits(mark: Detection) -> bool:
    """Whether the inpainter can fill in this mark."""
    if mark.repeated or mark.step > 1 or mark.finer is not None or not inpainting.is_available():
        return False
    return bool(np.any(mark.loose)) and mark.covered < _MAX_HOLE_RATIO
