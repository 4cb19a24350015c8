"""The stages of pictures that were ordered together because they have the same mark. Each picture is its own task.

The first task to reach detection learns the mark from the pictures and stores it with its step; the others load it.
A picture is cleaned alone if too few others have its size, if they have no mark in common, or if it lacks the mark.
"""

from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from headrace.removal.images import formats
from headrace.removal.images.eye.hinting import Hints
from headrace.removal.images.eye.judging import MIN_SHOWN_SCORE
from headrace.removal.images.eye.model import MIN_SCORE
from headrace.removal.images.shared_mark import MIN_VIEWS, TakenOff, learn, take_off
from headrace.removal.images.views import matte_file
from headrace.removal.images.views.solving import Matte
from headrace.removal.order import Names, Progress, StageOrder
from headrace.removal.report import Box, Candidate, Report

Picture = NDArray[np.uint8]
Mask = NDArray[np.bool_]
Plane = NDArray[np.float32]


class Mark(NamedTuple):
    """What was taken off a picture, for the check of the result."""

    tight: Mask  # its pixels
    loose: Mask  # where anything may have changed
    alpha: Plane
    tint: Plane  # colour times alpha, in levels
    step: int = 1  # the planes are of a copy this many times smaller


_MIN_DEFINING_VIEWS = 8  # pictures tell a mark by themselves, even one that the network is not sure of
_MIN_ALPHA = 0.05  # alpha from which on a pixel is the mark's


def detect(order: StageOrder, picture: Picture, hints: Hints | None, progress: Progress) -> Report | None:
    """The common mark, if this picture has it; None if the picture must be cleaned alone."""
    learnt = order.path(Names.MATTE)
    if not Path(learnt).exists():
        learned = _learn(order, picture, hints, progress)
        if learned is None:
            return None
        matte_file.save(*learned, learnt)
    matte, score = matte_file.load(learnt)
    if matte.loose.shape != picture.shape[:2]:
        return None
    done = take_off(picture, matte)
    progress(90)
    if not (done.present and done.gone):
        return None
    return found(done, score, "pictures")


def found(done: TakenOff, score: float, method: str) -> Report:
    """The report of this stage, which stores the learnt mark as a file of its step."""
    candidate = Candidate(id=1, kind="region", method=method, score=round(score, 4), certain=True, box=Box(*done.box))
    facts = {"score": round(score, 4), "covered": round(float(done.changed.mean()), 6), "shared": True}
    return Report(facts, (candidate,), [Names.MATTE])


def inpaint(order: StageOrder, picture: Picture) -> TakenOff:
    return take_off(picture, matte_file.load(order.path(Names.MATTE))[0])


def mark(order: StageOrder) -> Mark:
    """The mark as it was taken off."""
    matte, _ = matte_file.load(order.path(Names.MATTE))
    return Mark(matte.alpha > _MIN_ALPHA, matte.loose, matte.alpha, matte.tint)


def _learn(order: StageOrder, picture: Picture, hints: Hints | None, progress: Progress) -> tuple[Matte, float] | None:
    views = [picture]
    for name in order.views:
        try:
            view, _ = formats.read(order.path(name))
        except formats.BROKEN:  # reported when its own turn comes
            continue
        if view.shape == picture.shape:
            views.append(view)
    if len(views) < MIN_VIEWS:
        return None
    least = MIN_SHOWN_SCORE if len(views) >= _MIN_DEFINING_VIEWS else MIN_SCORE
    return learn_from(views, order, hints, progress, least_score=least)


def learn_from(
    views: list[Picture],
    order: StageOrder,
    hints: Hints | None,
    progress: Progress,
    *,
    least_score: float = MIN_SCORE,
) -> tuple[Matte, float] | None:
    """The mark that all of these have in common, and how sure it is one."""
    has_hints = hints is not None and bool(hints.boxes or hints.polygons)
    matte, score = learn(
        # By content, which is the same for all tasks of the batch: each of them learns the same mark.
        sorted(views, key=lambda view: view[::16, ::16].tobytes()),
        allowed=_allowed(hints, views[0].shape[:2]),
        least_score=0.0 if has_hints else least_score,
        threads=order.order.threads,
        progress=lambda percent: progress(10 + 70 * percent // 100),
    )
    return None if matte is None else (matte, score)


def _allowed(hints: Hints | None, size: tuple[int, int]) -> Any:
    if hints is None:
        return None
    inside = np.full(size, not (hints.boxes or hints.polygons), np.uint8)
    for left, top, width, height in hints.boxes:
        inside[top : top + height, left : left + width] = 1
    for corners in hints.polygons:
        cv2.fillPoly(inside, [np.array(corners, np.int32)], 1)
    for left, top, width, height in hints.keep:
        inside[top : top + height, left : left + width] = 0
    return inside.astype(np.bool_)
