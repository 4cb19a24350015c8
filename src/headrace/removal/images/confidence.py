"""How likely a result is good: gone without a trace, and nothing beside it damaged. One model for each kind of fill.

Logistic regressions on results that a person called good or bad, for photographs of repositories that no benchmark
uses: docs/why/eye-model-card.md has how they were made, and how often they are wrong.
"""

import math

from headrace.removal.images.evidence import Evidence

# A quarter of the results that were called good or bad are good, of strangers' results half: the odds are moved so that
# nine in ten bad ones are not called clean. And they count less than they were fitted: results elsewhere vary more.
_FITTED_RATIO, _OFFSET_ODDS = 0.7, 0.815
_MAX_LAYER = 0.6  # more tells no more


def of_computed(evidence: Evidence) -> float:
    """For the results of the solver and of the layers."""
    return _probability(
        -5.74,
        -1.084 * math.log(evidence.worst_seen + 0.01),
        -1.53 * evidence.edge,
        -0.525 * evidence.across,
        -0.621 * evidence.across_half,
    )


def of_drawn(evidence: Evidence, invented: float) -> float:
    """For the inpainter's result; ``invented`` is the share that the other result does not compute either."""
    return _probability(
        -0.599,
        -1.625 * evidence.across_half,
        1.15 * evidence.roughness,
        -3.162 * min(evidence.layer, _MAX_LAYER),
        -1.451 * invented,
    )


def _probability(*odds: float) -> float:
    return 1 / (1 + math.exp(-max(-50.0, min(50.0, _FITTED_RATIO * sum(odds) + _OFFSET_ODDS))))
