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
_MOST_BYTES = 900_000_000  # of pictures that are held at once
_LEFT = 0.35  # of the mark's outline: what may be left

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
    import numpy as np

    from headrace.removal.eye.judging import judge
    from headrace.removal.views import looking, solving

    views: list[Any] = []
    for order in orders:
        try:
            views.append(read(order)[0])
        except PictureUnreadable:
            continue
        if sum(view.nbytes for view in views) > _MOST_BYTES:
            break
    if len(views) < FEWEST:
        return None, 0.0
    looks = []
    numbers = looking.spread(len(views))
    for done, number in enumerate(numbers):
        progress(25 * done // len(numbers))
        looks.append(looking.look(views[number], threads=orders[0].threads))
    together = looking.likely(looks)
    judged = judge(np.mean(views[:8], 0).astype(np.uint8), together, together)
    allowed = _allowed(orders[0], views[0].shape[:2])
    guess = looking.guess(looks, allowed)
    if not judged.regions or judged.score < orders[0].least_score or not guess.tight.any():
        return None, judged.score
    return solving.solve(views, guess), judged.score


def _allowed(order: Order, size: tuple[int, int]) -> Any:
    import numpy as np

    mask = np.full(size, not order.boxes)
    for left, top, width, height in order.boxes:
        mask[top : top + height, left : left + width] = True
    for left, top, width, height in order.keep:
        mask[top : top + height, left : left + width] = False
    return mask


def _taken_off(order: Order, matte: "Matte", score: float) -> Report | None:
    import numpy as np

    from headrace.removal.views.drafting import drafted

    began = time.monotonic()
    try:
        picture, original, kind = read(order)
    except PictureUnreadable:
        return None
    draft = drafted(picture, matte)
    inside = matte.loose & (matte.alpha > 0)
    result = picture.copy()
    result[inside] = np.clip(np.rint(draft.blend[inside]), 0, 255).astype(np.uint8)
    left = _outline(result, matte) / max(_outline(picture, matte), 1e-6)
    invented = int((draft.invented[inside] > 0.5).sum())
    removed = left <= _LEFT
    if removed and order.result is not None:
        with writing(order.result):
            formats.write(result, original, order.result, kind)
    removal = Removal(
        removed=removed,
        reason=None if removed else f"{left:.0%} of the mark would stay: try this picture alone.",
        confidence=round(max(0.0, 1 - left), 4),
        poor=removed and left > 0.2,
        computed=int(inside.sum()) - invented if removed else 0,
        invented=invented if removed else 0,
        warnings=tuple(original.notes) if removed else (),
    )
    height, width = picture.shape[:2]
    rows, columns = np.flatnonzero(inside.any(1)), np.flatnonzero(inside.any(0))
    top, bottom, first, last = int(rows[0]), int(rows[-1]) + 1, int(columns[0]), int(columns[-1]) + 1
    region = MarkedRegion(first, top, last - first, bottom - top, round(score, 4), int(inside.sum()))
    covered = round(float(inside.mean()), 6)
    seconds = round(time.monotonic() - began, 3)
    return Report(width, height, round(score, 4), (region,), covered, seconds, removal)


def _outline(picture: Any, matte: "Matte") -> float:
    """How much of the mark's outline is in the picture, as a projection on it."""
    import cv2
    import numpy as np

    def steps(plane: Any) -> Any:
        soft = cv2.GaussianBlur(plane, (0, 0), 1)
        return np.stack([cv2.Sobel(soft, cv2.CV_32F, *way, scale=0.125) for way in ((1, 0), (0, 1))], 2)

    bright = picture.mean(2, dtype=np.float32)
    outside = (~matte.loose).astype(np.float32)
    ground = cv2.blur(bright * outside, (61, 61)) / (cv2.blur(outside, (61, 61)) + np.float32(1e-3))
    outline = steps(matte.tint.mean(2) - matte.alpha * ground)
    return abs(float((np.clip(steps(bright), -24, 24) * outline).sum()))
