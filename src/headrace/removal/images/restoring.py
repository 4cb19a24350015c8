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
from headrace.removal.images.layered import without_layers
from headrace.removal.images.second_pass import with_second_pass
from headrace.removal.thresholds import MIN_CLEAN_CONFIDENCE

# Of the picture: a hole as large leaves the inpainter too little to go by.
_MAX_HOLE_RATIO = 0.15
_MIN_LEAD = 0.2  # by which the inpainter's result must be likelier to be good: what it invents is worse than a trace
_MAX_LAYERS_LAG = 0.15  # by which that of the layers may be less likely: what fits along all outlines is right


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
    if large and not high:
        return solved
    if high and looks_twice:
        solved = with_second_pass(picture, solved, hints, threads=threads, least_score=least_score)
    if large:
        return solved
    mark = detection.at_least(least_score)
    best = _better_of(picture, mark, solved, threads=threads)
    if best.refused is not None:
        return best
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


def _better_of(picture: Picture, mark: Detection, solved: Restoration, *, threads: int) -> Restoration:
    """The solver's result, or that of the layers where it is not clean, with how likely it is good."""

    def weighed(result: Restoration) -> Restoration:
        chance = confidence.of_computed(measure_evidence(picture, result.picture, mark, threads=threads))
        return replace(result, confidence=round(result.gone * chance, 4))

    if solved.refused is None:
        solved = weighed(solved)
        if solved.confidence >= MIN_CLEAN_CONFIDENCE:
            return solved
    layered = without_layers(picture, mark)
    if layered is None:
        return solved
    gone = solved.gone if solved.refused is None else 1.0
    other = weighed(Restoration(layered.picture, 0.0, layered.computed, layered.invented, gone=gone))
    better = solved.refused is not None or other.confidence > solved.confidence - _MAX_LAYERS_LAG
    return other if better else solved


def _suits(mark: Detection) -> bool:
    """Whether the inpainter can fill in this mark."""
    if mark.repeated or mark.step > 1 or mark.finer is not None or not inpainting.is_available():
        return False
    return bool(np.any(mark.loose)) and mark.covered < _MAX_HOLE_RATIO
