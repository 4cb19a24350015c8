"""The stages of one animated picture: GIF, WebP or PNG, frame by frame.

Where the frames differ enough, they tell of the mark together, as pictures of one order do; or else the eye looks at
one of them, and the others are solved with what it saw there.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from headrace.removal.errors import PictureUnreadable
from headrace.removal.images import animation, shared_stages
from headrace.removal.images.animation import Animation
from headrace.removal.images.eye import detecting, detection_file
from headrace.removal.images.eye.solving import solve
from headrace.removal.images.formats import BROKEN
from headrace.removal.images.shared_mark import MIN_VIEWS, take_off
from headrace.removal.images.stages import (
    candidates_of,
    changed_pixels,
    check,
    checked_report,
    held_back,
    hints_of,
    least_score,
    mark_of,
    refused,
    wanted_of,
    with_label_texts,
    with_verdict,
)
from headrace.removal.images.views import matte_file
from headrace.removal.images.views.detection import spread
from headrace.removal.images.views.solving import Matte
from headrace.removal.order import FailureCode, Names, Progress, StageOrder
from headrace.removal.report import Check, Report, Verdict, of_confidence

Picture = NDArray[np.uint8]
Mask = NDArray[np.bool_]

MAX_VIEWS = 24  # frames that the mark is learnt from
MIN_PALETTE_VIEWS = 12  # of them in a GIF: rounded to 256 colours, fewer leave dots along the mark's edges
MIN_VARIED_LEVELS = (
    8.0  # levels by which pixels must differ over the frames, on average, to tell of what lies over them
)
MAX_CHECKED_FRAMES = 12  # frames of the result that are held against the original
STRIP_ROWS = 64  # at a time: over all views these take many times the room of a frame


def prepare(order: StageOrder, progress: Progress) -> Report:
    film = _read(order)
    progress(60)
    hints_of(order, film.frames[0])
    width, height = film.size
    return Report({"width": width, "height": height, "format": film.kind, "frames": len(film.frames)})


def detect(order: StageOrder, progress: Progress) -> Report:
    film = _read(order)
    hints = hints_of(order, film.frames[0])
    progress(10)
    views = _distinct(film.frames)
    fewest = MIN_PALETTE_VIEWS if film.kind == "GIF" else MIN_VIEWS
    if len(views) >= fewest and _variation(views) >= MIN_VARIED_LEVELS and not order.order.candidates:
        learnt = shared_stages.learn_from(views, order, hints, progress)
        if learnt is not None and _varied_under(views, learnt[0]) and all(_is_gone(view, learnt[0]) for view in views):
            matte_file.save(*learnt, order.path(Names.MATTE))
            return shared_stages.found(take_off(views[0], learnt[0]), learnt[1], "frames")
    # What moves is not in the middle of what each pixel shows; a mark is. If that is too blurred, a frame will do.
    for frame in (_middle(views), film.frames[len(film.frames) // 2]):
        detection = detecting.detect(frame, threads=order.order.threads, hints=hints)
        candidates = candidates_of(detection, order.order.least_score)
        chosen = wanted_of(detection, order.order)
        code = refused(chosen, order, listed=bool(candidates))
        if code is not FailureCode.NO_MARK:
            break
    facts = {"score": round(detection.score, 4), "covered": round(detection.covered, 6), "repeated": detection.repeated}
    if chosen.regions:
        detection_file.save(chosen, order.path(Names.DETECTION))
    return Report(facts, with_label_texts(frame, candidates), [] if code else [Names.DETECTION], code)


def inpaint(order: StageOrder, progress: Progress) -> Report:
    film = _read(order)
    loose = mark_of(order).loose
    rows, columns = np.flatnonzero(loose.any(1)), np.flatnonzero(loose.any(0))
    region = (int(rows[0]), int(rows[-1]) + 1, int(columns[0]), int(columns[-1]) + 1)
    here = np.s_[region[0] : region[1], region[2] : region[3]]
    cleaned: list[Picture] = []
    confidences: list[float] = []
    facts: dict[str, Any] = {"computed": 0, "invented": 0}
    clean = _by_matte(order) if order.earlier.get("shared") else _by_detection(order)
    for number, frame in enumerate(film.frames):
        progress(5 + 90 * number // len(film.frames))
        if number and (frame[here] == film.frames[number - 1][here]).all():
            cleaned.append(cleaned[-1])  # what stands still must not flicker
            continue
        done = clean(frame)
        if isinstance(done, Report):
            return done
        picture, confidence, computed, invented = done
        cleaned.append(picture[here].copy())
        confidences.append(confidence)
        facts["computed"] += computed
        facts["invented"] += invented
    facts["confidence"] = round(float(np.mean(confidences)), 4)
    facts["verdict"] = of_confidence(facts["confidence"])
    if facts["verdict"] is Verdict.POOR and not order.order.accept_poor:
        after = film.frames[0].copy()
        after[here] = cleaned[0]
        return held_back(order, FailureCode.POOR_RESULT, facts, film.frames[0], after)
    with open(order.path(Names.FRAMES), "wb") as file:  # noqa: PTH123 - by a name, NumPy would add an ending
        np.savez_compressed(file, region=np.array(region), frames=np.stack(cleaned))
    return Report(facts, keeps=[Names.FRAMES])


def package(order: StageOrder, progress: Progress) -> Report:
    film = _read(order)
    mark = mark_of(order)
    restored = _restored(order, film)
    target = order.result
    animation.write(film, restored, target)
    progress(50)
    written = animation.read(target)
    checked = _checked(film, restored, written, mark, order)
    progress(80)
    return checked_report(order, checked, film.frames[0], written.frames[0], mark.loose)


Cleaned = tuple[Picture, float, int, int]


def _by_matte(order: StageOrder) -> Callable[[Picture], Cleaned | Report]:
    matte, _ = matte_file.load(order.path(Names.MATTE))

    def clean(frame: Picture) -> Cleaned | Report:
        done = take_off(frame, matte)
        return done.picture, done.confidence, done.computed, done.invented

    return clean


def _by_detection(order: StageOrder) -> Callable[[Picture], Cleaned | Report]:
    detections = [detection_file.load(order.path(Names.DETECTION))]
    least = least_score(order.order)

    def clean(frame: Picture) -> Cleaned | Report:
        done = solve(frame, detections[-1], least_score=least, threads=order.order.threads)
        if done.refused is not None:
            code = FailureCode.NEEDS_REVIEW if done.needs_review else FailureCode.MARK_REMAINS
            return Report(refused=code, reason=done.refused)
        # What was a mark in one frame is one in the next.
        detections[:] = [replace(detections[-1], confirmed=True)]
        return done.picture, done.confidence, done.inverted, done.filled

    return clean


def _restored(order: StageOrder, film: Animation) -> list[Picture]:
    with np.load(order.path(Names.FRAMES), allow_pickle=False) as kept:
        top, bottom, left, right = (int(each) for each in kept["region"])
        cleaned = kept["frames"]
    whole = []
    for frame, part in zip(film.frames, cleaned, strict=True):
        copy = frame.copy()
        copy[top:bottom, left:right] = part
        whole.append(copy)
    return whole


def _checked(
    film: Animation, restored: list[Picture], written: Animation, mark: shared_stages.Mark, order: StageOrder
) -> Check:
    """The worst of some frames, and whether it lasts as long; equal frames may have become one."""
    shown = np.cumsum([0, *written.durations])
    starts = np.cumsum([0, *film.durations])
    found = []
    for number in spread(len(film.frames), MAX_CHECKED_FRAMES):
        at = min(int(np.searchsorted(shown, starts[number], side="right")) - 1, len(written.frames) - 1)
        # A palette of 256 colours may be too small for what several of them made together.
        kind = order.order.output_format if film.lossless and film.kind != "GIF" else "lossy"
        before, after = film.frames[number], written.frames[at]
        if film.alphas is not None:  # what cannot be seen is of no colour
            hidden = film.alphas[number] == 0
            after = after.copy()
            after[hidden] = restored[number][hidden]
        found.append(check(before, changed_pixels(before, restored[number]), after, mark, kind))
    decibels = [each.untouched_db for each in found if each.untouched_db is not None]
    lasts = sum(written.durations) == sum(film.durations) and written.loop == film.loop
    worst = replace(
        found[0],
        residue_after=max((each.residue_after for each in found), key=abs),
        outline_left=max((each.outline_left or 0.0 for each in found), key=abs),
        seen_on_flat=max((each.seen_on_flat or 0.0 for each in found), key=abs),
        untouched_db=min(decibels) if decibels else None,
        untouched=lasts and all(each.untouched for each in found),
        frames=len(film.frames),
    )
    return with_verdict(worst)


def _is_gone(view: Picture, matte: Matte) -> bool:
    done = take_off(view, matte)
    return done.present and done.gone


def _varied_under(views: list[Picture], matte: Matte) -> bool:
    """Whether the ground of the mark differs from frame to frame: where it stands still, nothing tells them apart."""
    rows, columns = np.flatnonzero(matte.loose.any(1)), np.flatnonzero(matte.loose.any(0))
    here = np.s_[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    return _variation([view[here] for view in views]) >= MIN_VARIED_LEVELS


def _variation(views: list[Picture]) -> float:
    """By how many levels a pixel differs over the views, on average."""
    strips = (
        np.std([view[top : top + STRIP_ROWS] for view in views], axis=0) for top in range(0, len(views[0]), STRIP_ROWS)
    )
    return float(sum(strip.sum() for strip in strips)) / views[0].size


def _middle(views: list[Picture]) -> Picture:
    middle = np.empty_like(views[0])
    for top in range(0, len(middle), STRIP_ROWS):
        middle[top : top + STRIP_ROWS] = np.median([view[top : top + STRIP_ROWS] for view in views], axis=0)
    return middle


def _distinct(frames: list[Picture]) -> list[Picture]:
    different = [
        frames[0],
        *(after for before, after in pairwise(frames) if (before != after).any()),
    ]
    return [different[number] for number in spread(len(different), MAX_VIEWS)]


def _read(order: StageOrder) -> Animation:
    Image.MAX_IMAGE_PIXELS = None  # what it declares was checked when it was uploaded
    try:
        return animation.read(order.order.source)
    except (Image.DecompressionBombError, *BROKEN) as exc:
        raise PictureUnreadable(f"The file is not an animation that can be read: {exc}") from exc
