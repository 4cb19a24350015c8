"""The same mark over many pictures of one size: learned from all of them, taken off each."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from headrace.removal.order import Progress
from headrace.removal.thresholds import MIN_CLEAN_CONFIDENCE, MIN_CONFIDENCE

if TYPE_CHECKING:
    from headrace.removal.images.eye.plates import Box as PlateBox
    from headrace.removal.images.views.detection import Look
    from headrace.removal.images.views.solving import Guess, Matte

MIN_VIEWS = 4  # pictures needed to learn a common mark
MAX_VIEWS = 31  # other pictures that a mark is learnt from: more hardly improve it
MAX_HELD_BYTES = 900_000_000  # of pictures in memory at once
# Confidence by residue: of the outline in one picture, and of the mark in all results together. From the second limit
# on a result is poor, from the third on it is refused.
_OUTLINE_LIMITS_RATIO, _TOGETHER_LIMITS_RATIO = (0.0, 0.2, 0.35, 1.0), (0.0, 0.08, 0.11, 1.0)
_TRIED_VIEWS_COUNT = 8  # on which ways of solving are compared
_EDGE_BAND_PX = 7  # the side of the square that reaches beyond a mark's edges
_OUTLINED_SCORE = 0.9  # of a mark whose outline eight different pictures show
_MIN_PLAIN_LEVELS = 50.0  # a clearly visible mark changes its pixels by this many levels
_MIN_STRENGTH_RATIO = 0.3  # of the mark's strength: with less, a picture does not have it


def learn(
    views: list[Any], *, allowed: Any = None, least_score: float, threads: int, progress: Progress
) -> "tuple[Matte | None, float]":
    """The matte of the mark that these pictures of one size have in common, None for none; and its score."""
    import numpy as np

    from headrace.removal.images.eye.judging import judge
    from headrace.removal.images.views import detection, persistence

    looks = []
    numbers = detection.spread(len(views))
    for done, number in enumerate(numbers):
        progress(70 * done // len(numbers))
        looks.append(detection.look(views[number], threads=threads))
    together = detection.likely(looks)
    mean = np.mean(views[:8], 0).astype(np.uint8)
    judged = judge(mean, together, together)
    guess = detection.guess(looks, allowed)
    score = judged.score
    if not judged.regions or score < least_score or not guess.tight.any():
        guess = persistence.completed(views, guess.nothing, allowed)
        if not guess.tight.any():
            return None, score
        score = _OUTLINED_SCORE
    else:
        guess = persistence.completed(views, guess, allowed)
    plated = detection.with_plates(guess, mean, judged.regions, allowed)
    progress(70)
    matte = _solved(views, guess, plated)
    # A picture without the mark would make the mark seem far weaker: its pixels vary as if nothing covered them.
    with_mark = _with_mark(views, matte)
    if MIN_VIEWS <= len(with_mark) < len(views):
        matte = _solved([views[number] for number in with_mark], guess, plated)
    progress(80)
    looked = {number: look for number, look in zip(numbers, looks, strict=True) if number in with_mark}
    left = _left_together([views[number] for number in looked], list(looked.values()), matte, threads) if looked else 0
    return replace(matte, trust=1 - left), score


def _solved(views: list[Any], guess: "Guess", plated: "tuple[Guess, list[PlateBox]]") -> "Matte":
    """The matte ink by ink, with a plate below them, or with one alpha for all: whichever leaves the fewest edges."""
    from headrace.removal.images.views.dissolved import solve_dissolved
    from headrace.removal.images.views.plated import solve_plated

    mattes = [solve_plated(views, guess, []), solve_dissolved(views, guess)]
    if plated[1]:
        mattes.append(solve_plated(views, *plated))
    solved = [each for each in mattes if each is not None]
    if len(solved) == 1:
        return solved[0]
    zone = plated[0].loose | guess.loose
    return min(solved, key=lambda matte: _edges_left(views[:_TRIED_VIEWS_COUNT], matte, zone))


def _edges_left(views: list[Any], matte: "Matte", zone: Any) -> float:
    """The energy of the edges that all results have in common, in and beside the mark."""
    import cv2
    import numpy as np

    from headrace.removal.images.views.stack import persistent_steps

    near = cv2.dilate(zone.view(np.uint8), np.ones((_EDGE_BAND_PX,) * 2, np.uint8)).view(np.bool_)
    right, down = persistent_steps([take_off(view, matte).picture for view in views])
    return float((right[near] ** 2 + down[near] ** 2).sum())


def _left_together(views: list[Any], looks: "list[Look]", matte: "Matte", threads: int) -> float:
    """The residue of the mark in all results together, by the eye and by its outline.

    Each errs now and then: the eye takes amplified grain for a mark, and chance alone gives some outline. Only what
    both find is residue.
    """
    import numpy as np

    from headrace.removal.images.outline import left_of
    from headrace.removal.images.views import detection

    results = [take_off(view, matte).picture for view in views]
    seen = detection.still_seen(looks, results, matte.loose, threads=threads)
    outlines = [
        left_of(view, result, matte.alpha, matte.tint, matte.loose) for view, result in zip(views, results, strict=True)
    ]
    # A third of a faint mark is invisible, a tenth of a strong one is not: so the residue is weighted by energy.
    energy = np.median(
        [
            float(((view[matte.loose].astype(np.float32) - result[matte.loose]) ** 2).mean())
            for view, result in zip(views, results, strict=True)
        ]
    )
    strong = min(1.0, float(energy) / _MIN_PLAIN_LEVELS**2)
    return min(1.0, strong * float(np.sqrt(seen * abs(np.median(outlines)))))


def _with_mark(views: list[Any], matte: "Matte") -> list[int]:
    shares = [_outline(view, matte) for view in views]
    usual = sorted(shares)[len(shares) // 2]
    return [number for number, share in enumerate(shares) if share >= _MIN_STRENGTH_RATIO * usual]


@dataclass(frozen=True, slots=True)
class TakenOff:
    """One of the pictures without the mark that they have in common."""

    picture: Any
    changed: Any  # H W; pixels that may differ from the original
    strength: float  # of the mark in this picture, relative to the learnt strength; about 0 if absent
    left: float  # share of the mark's outline that remains
    left_together: float  # share of the mark that remains in all results together
    invented: int  # pixels

    @property
    def present(self) -> bool:
        return self.strength >= _MIN_STRENGTH_RATIO

    @property
    def gone(self) -> bool:
        """Whether little of the outline remains in this picture. Otherwise the picture is better cleaned alone."""
        return self.left <= _OUTLINE_LIMITS_RATIO[2]

    @property
    def confidence(self) -> float:
        return round(
            min(_confidence(self.left, _OUTLINE_LIMITS_RATIO), _confidence(self.left_together, _TOGETHER_LIMITS_RATIO)),
            4,
        )

    @property
    def needs_look(self) -> bool:
        return self.confidence < MIN_CLEAN_CONFIDENCE

    @property
    def doubt(self) -> str | None:
        """What a person should look for."""
        if not self.needs_look:
            return None
        if _confidence(self.left_together, _TOGETHER_LIMITS_RATIO) <= _confidence(self.left, _OUTLINE_LIMITS_RATIO):
            return f"{self.left_together:.0%} of the mark can still be seen in the results of all pictures together"
        return f"{self.left:.0%} of the mark's outline stays"

    @property
    def refused(self) -> str | None:
        """Why it is not handed out."""
        return self.doubt if self.confidence < MIN_CONFIDENCE else None

    @property
    def computed(self) -> int:
        return int(self.changed.sum()) - self.invented

    @property
    def box(self) -> tuple[int, int, int, int]:
        """Around all that may change: left, top, width, height."""
        import numpy as np

        rows, columns = np.flatnonzero(self.changed.any(1)), np.flatnonzero(self.changed.any(0))
        top, left = int(rows[0]), int(columns[0])
        return left, top, int(columns[-1]) + 1 - left, int(rows[-1]) + 1 - top


def _confidence(share: float, limits: tuple[float, ...]) -> float:
    import numpy as np

    return float(np.interp(share, limits, (1.0, MIN_CLEAN_CONFIDENCE, MIN_CONFIDENCE, 0.0)))


def take_off(picture: Any, matte: "Matte") -> TakenOff:
    import numpy as np

    from headrace.removal.images.views.drafting import drafted

    draft = drafted(picture, matte)
    inside = matte.loose & (matte.alpha > 0)
    result = picture.copy()
    result[inside] = np.clip(np.rint(draft.blend[inside]), 0, 255).astype(np.uint8)
    before = _outline(picture, matte)
    left = abs(_outline(result, matte)) / max(abs(before), 1e-6)
    return TakenOff(result, inside, before, left, 1 - matte.trust, int((draft.invented[inside] > 0.5).sum()))


def _outline(picture: Any, matte: "Matte") -> float:
    from headrace.removal.images.outline import outline

    return outline(picture, matte.alpha, matte.tint, matte.loose)
