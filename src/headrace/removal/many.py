"""The same mark over many pictures of one size: learnt from all of them, taken off each. A pure job, as ``pictures``.

A file from anywhere may be made to harm: call ``process`` in a child process, as ``confined_many.carry_out`` does.
"""

import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.removal import formats
from headrace.removal.errors import PictureUnreadable
from headrace.removal.pictures import read, writing
from headrace.removal.report import MarkedRegion, Order, Removal, Report

if TYPE_CHECKING:
    from headrace.removal.views.solving import Matte

FEWEST = 4  # pictures that tell of each other's mark
MOST_BYTES = 900_000_000  # of pictures that are held at once
_LEFT, _POORLY = 0.35, 0.2  # of the mark's outline: what may be left, and from when on that is poor
_PRESENT = 0.3  # of the mark's strength: with less, a picture does not have it

Progress = Callable[[int], object]


@dataclass(frozen=True, slots=True)
class ManyOrder:
    orders: tuple[Order, ...]  # one for each picture, each with a result


@dataclass(frozen=True, slots=True)
class ManyReport:
    reports: tuple[Report | None, ...]  # in the order of the pictures; None: nothing was learnt of this one


def process(many: ManyOrder, progress: Progress) -> ManyReport:
    """Take the mark that pictures of one size have in common off each of them.

    Pictures that cannot be read, and those whose size too few others have, get no report: they are left to be done
    alone. ``progress`` is told percents; what it raises ends the work.
    """
    sizes: dict[tuple[int, int], list[int]] = defaultdict(list)
    for number, order in enumerate(many.orders):
        size = _size(order)
        if size is not None:
            sizes[size].append(number)
    reports: list[Report | None] = [None] * len(many.orders)
    groups = [numbers for numbers in sizes.values() if len(numbers) >= FEWEST]
    total = sum(len(numbers) for numbers in groups)
    done = 0
    for numbers in groups:
        matte, score = _learnt([many.orders[number] for number in numbers], progress)
        for number in numbers:
            progress(30 + 70 * done // max(1, total))
            done += 1
            if matte is not None:
                reports[number] = _taken_off(many.orders[number], matte, score)
    progress(100)
    return ManyReport(tuple(reports))


def _size(order: Order) -> tuple[int, int] | None:
    from PIL import Image

    try:
        with Image.open(order.source) as opened:
            if getattr(opened, "n_frames", 1) > 1 and opened.format != "MPO":
                return None
            turned = opened.getexif().get(274, 1) >= 5
            return opened.size[::-1] if turned else opened.size
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return None


def _learnt(orders: list[Order], progress: Progress) -> "tuple[Matte | None, float]":
    """What the mark is made of, by as many of the pictures as can be held; and how sure it is one."""
    views: list[Any] = []
    for order in orders:
        try:
            views.append(read(order)[0])
        except PictureUnreadable:
            continue
        if sum(view.nbytes for view in views) > MOST_BYTES:
            break
    if len(views) < FEWEST:
        return None, 0.0
    first = orders[0]
    return learn(
        views,
        allowed=_allowed(first, views[0].shape[:2]),
        least_score=first.least_score,
        threads=first.threads,
        progress=lambda percent: progress(30 * percent // 100),
    )


def learn(
    views: list[Any], *, allowed: Any = None, least_score: float, threads: int, progress: Progress
) -> "tuple[Matte | None, float]":
    """What the mark that these pictures of one size have in common is made of, None for none; and how sure it is."""
    import numpy as np

    from headrace.removal.eye.judging import judge
    from headrace.removal.views import looking, solving

    looks = []
    numbers = looking.spread(len(views))
    for done, number in enumerate(numbers):
        progress(80 * done // len(numbers))
        looks.append(looking.look(views[number], threads=threads))
    together = looking.likely(looks)
    judged = judge(np.mean(views[:8], 0).astype(np.uint8), together, together)
    guess = looking.guess(looks, allowed)
    if not judged.regions or judged.score < least_score or not guess.tight.any():
        return None, judged.score
    progress(80)
    matte = solving.solve(views, guess)
    # A picture without the mark varies where it lies as if there were none: it would make it seem far weaker.
    with_mark = _with_mark(views, matte)
    if FEWEST <= len(with_mark) < len(views):
        matte = solving.solve(with_mark, guess)
    return matte, judged.score


def _with_mark(views: list[Any], matte: "Matte") -> list[Any]:
    shares = [_outline(view, matte) for view in views]
    usual = sorted(shares)[len(shares) // 2]
    return [view for view, share in zip(views, shares, strict=True) if share >= _PRESENT * usual]


def _allowed(order: Order, size: tuple[int, int]) -> Any:
    import numpy as np

    mask = np.full(size, not order.boxes)
    for left, top, width, height in order.boxes:
        mask[top : top + height, left : left + width] = True
    for left, top, width, height in order.keep:
        mask[top : top + height, left : left + width] = False
    return mask


@dataclass(frozen=True, slots=True)
class TakenOff:
    """One of the pictures without the mark that they have in common."""

    picture: Any
    changed: Any  # H W: where it may differ from the original
    strength: float  # of the mark in this picture, as a share of what it is in all of them; about 0: it is not there
    left: float  # of the mark's outline
    invented: int  # pixels

    @property
    def present(self) -> bool:
        return self.strength >= _PRESENT

    @property
    def gone(self) -> bool:
        return self.left <= _LEFT

    @property
    def confidence(self) -> float:
        return round(max(0.0, 1 - self.left), 4)

    @property
    def poor(self) -> bool:
        return self.left > _POORLY

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


def take_off(picture: Any, matte: "Matte") -> TakenOff:
    import numpy as np

    from headrace.removal.views.drafting import drafted

    draft = drafted(picture, matte)
    inside = matte.loose & (matte.alpha > 0)
    result = picture.copy()
    result[inside] = np.clip(np.rint(draft.blend[inside]), 0, 255).astype(np.uint8)
    before = _outline(picture, matte)
    left = abs(_outline(result, matte)) / max(abs(before), 1e-6)
    return TakenOff(result, inside, before, left, int((draft.invented[inside] > 0.5).sum()))


def _taken_off(order: Order, matte: "Matte", score: float) -> Report | None:
    began = time.monotonic()
    try:
        picture, original, kind = read(order)
    except PictureUnreadable:
        return None
    done = take_off(picture, matte)
    if done.gone and order.result is not None:
        with writing(order.result):
            formats.write(done.picture, original, order.result, kind)
    removal = Removal(
        removed=done.gone,
        reason=None if done.gone else f"{done.left:.0%} of the mark would stay: try this picture alone.",
        confidence=done.confidence,
        poor=done.gone and done.poor,
        computed=done.computed if done.gone else 0,
        invented=done.invented if done.gone else 0,
        warnings=tuple(original.notes) if done.gone else (),
    )
    height, width = picture.shape[:2]
    region = MarkedRegion(*done.box, round(score, 4), int(done.changed.sum()))
    covered = round(float(done.changed.mean()), 6)
    seconds = round(time.monotonic() - began, 3)
    return Report(width, height, round(score, 4), (region,), covered, seconds, removal)


def _outline(picture: Any, matte: "Matte") -> float:
    from headrace.removal.outline import outline

    return outline(picture, matte.alpha, matte.tint, matte.loose)
