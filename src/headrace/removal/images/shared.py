"""The same mark over many pictures of one size: learned from all of them, taken off each."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from headrace.removal.order import Progress
from headrace.removal.report import MIN_CLEAN_CONFIDENCE, MIN_CONFIDENCE

if TYPE_CHECKING:
    from headrace.removal.images.views.looking import Look
    from headrace.removal.images.views.solving import Matte

MIN_VIEWS = 4  # pictures that tell of each other's mark
MAX_VIEWS = 31  # other pictures that a mark is learned from: more add hardly anything
MAX_HELD_BYTES = 900_000_000  # of pictures that are held at once
# Confidence, by what is left of the mark: of its outline in one picture, and of it in all results together. At the
# second of each a result is poor, at the third it is not handed out.
_OUTLINE_LIMITS_RATIO, _TOGETHER_LIMITS_RATIO = (0.0, 0.2, 0.35, 1.0), (0.0, 0.08, 0.11, 1.0)
_MIN_PLAIN_LEVELS = 50.0  # levels by which a mark that is plainly seen changes a picture
_MIN_STRENGTH_RATIO = 0.3  # of the mark's strength: with less, a picture does not have it


def learn(
    views: list[Any], *, allowed: Any = None, least_score: float, threads: int, progress: Progress
) -> "tuple[Matte | None, float]":
    """What the mark that these pictures of one size have in common is made of, None for none; and how sure it is."""
    import numpy as np

    from headrace.removal.images.eye.judging import judge
    from headrace.removal.images.views import looking, plated

    looks = []
    numbers = looking.spread(len(views))
    for done, number in enumerate(numbers):
        progress(70 * done // len(numbers))
        looks.append(looking.look(views[number], threads=threads))
    together = looking.likely(looks)
    mean = np.mean(views[:8], 0).astype(np.uint8)
    judged = judge(mean, together, together)
    guess = looking.guess(looks, allowed)
    if not judged.regions or judged.score < least_score or not guess.tight.any():
        return None, judged.score
    guess, plates = looking.with_plates(guess, mean, judged.regions, allowed)
    progress(70)
    matte = plated.solve_plated(views, guess, plates)
    # A picture without the mark varies where it lies as if there were none: it would make it seem far weaker.
    with_mark = _with_mark(views, matte)
    if MIN_VIEWS <= len(with_mark) < len(views):
        matte = plated.solve_plated([views[number] for number in with_mark], guess, plates)
    progress(80)
    looked = {number: look for number, look in zip(numbers, looks, strict=True) if number in with_mark}
    left = _left_together([views[number] for number in looked], list(looked.values()), matte, threads) if looked else 0
    return replace(matte, trust=1 - left), judged.score


def _left_together(views: list[Any], looks: "list[Look]", matte: "Matte", threads: int) -> float:
    """What is left of the mark in all results together, by the eye and by its outline.

    Each is now and then mistaken: the eye takes grain that was amplified for a mark, and of an outline there is some
    by chance. What both find is residue.
    """
    import numpy as np

    from headrace.removal.images.outline import left_of
    from headrace.removal.images.views import looking

    results = [take_off(view, matte).picture for view in views]
    seen = looking.still_seen(looks, results, matte.loose, threads=threads)
    outlines = [
        left_of(view, result, matte.alpha, matte.tint, matte.loose) for view, result in zip(views, results, strict=True)
    ]
    # A third of a faint mark is not seen where a tenth of a strong one is: by the energy of what was taken off.
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
    changed: Any  # H W: where it may differ from the original
    strength: float  # of the mark in this picture, as a share of what it is in all of them; about 0: it is not there
    left: float  # of the mark's outline
    left_together: float  # of the mark, in the results of all pictures
    invented: int  # pixels

    @property
    def present(self) -> bool:
        return self.strength >= _MIN_STRENGTH_RATIO

    @property
    def gone(self) -> bool:
        """Whether this picture's outline says so: one that lacks what the others have is better done alone."""
        return self.left <= _OUTLINE_LIMITS_RATIO[2]

    @property
    def confidence(self) -> float:
        return round(
            min(_confidence(self.left, _OUTLINE_LIMITS_RATIO), _confidence(self.left_together, _TOGETHER_LIMITS_RATIO)),
            4,
        )

    @property
    def poor(self) -> bool:
        return self.confidence < MIN_CLEAN_CONFIDENCE

    @property
    def doubt(self) -> str | None:
        """Why it is poor."""
        if not self.poor:
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
