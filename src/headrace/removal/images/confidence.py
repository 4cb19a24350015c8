"""How likely a result is good: gone without a trace, and nothing beside it damaged. One model for each kind of fill.

Logistic regressions on results that a person called good or bad, for photographs of repositories that no benchmark
uses: docs/why/eye-model-card.md has how they were made, and how often they are wrong.
"""

import math
from typing import NamedTuple

from headrace.removal.images.evidence import Evidence
from headrace.removal.images.eye.model import Detection, Restoration


class Facts(NamedTuple):
    """What is known of a mark before any result is looked at."""

    score: float  # no less than 0.8: a mark that the user named may have less
    likely: float  # the mean probability of its pixels
    doubt: float  # the mean error that the network expects, in shares of 30 levels
    area: float  # the share of the picture, as a logarithm
    pixels: float  # their number, as a logarithm
    invented: float  # the share that the solver filled in
    repeated: bool


def facts_of(mark: Detection, solved: Restoration) -> Facts:
    tight = mark.tight if mark.tight.any() or mark.finer is None else mark.finer.tight
    planes = mark if mark.tight.any() or mark.finer is None else mark.finer
    loose = max(1, round(mark.covered * mark.height * mark.width))
    return Facts(
        score=min(1.0, max(0.8, mark.score)),
        likely=float(planes.likely[tight].mean()) / 255 if tight.any() else 1.0,
        doubt=float(planes.doubt[tight].mean()) / 30 if tight.any() else 0.0,
        area=math.log(max(mark.covered, 1e-6)),
        pixels=math.log(loose),
        invented=solved.filled / max(1, solved.filled + solved.inverted),
        repeated=mark.repeated,
    )


def of_solved(evidence: Evidence, facts: Facts) -> float:
    """For the solver's result."""
    return _probability(
        -1.207,
        -0.341 * math.log(evidence.seen + 0.01),
        -0.317 * math.log(evidence.worst_seen + 0.01),
        -1.294 * evidence.edge,
        1.152 * facts.repeated,
        0.352 * evidence.fine,
        -1.148 * math.log(evidence.worst_shift + 0.2),
        -1.039 * max(0.0, -evidence.middle),
        -0.269 * evidence.roughness,
        0.041 * facts.area,
        -1.084 * abs(evidence.outline),
        0.117 * math.log(evidence.worst_template + 1),
        -0.257 * facts.doubt,
        -0.059 * facts.invented,
    )


def of_drawn(evidence: Evidence, facts: Facts) -> float:
    """For the inpainter's result. Where both results agree, both are likely good."""
    return _probability(
        -7.611,
        -2.555 * evidence.worst_disagreement,
        -0.594 * evidence.roughness,
        -2.576 * max(0.0, -evidence.coarse),
        -9.03 * abs(evidence.outline),
        7.239 * facts.score,
        -0.466 * math.log(evidence.seen + 0.01),
        6.817 * max(0.0, 7.5 - facts.pixels),
        0.374 * facts.invented,
        3.283 * facts.likely,
        -0.08 * math.log(evidence.worst_shift + 0.2),
    )


def _probability(*odds: float) -> float:
    return 1 / (1 + math.exp(-max(-50.0, min(50.0, sum(odds)))))
