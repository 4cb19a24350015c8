"""Takes marks off a clip, and tries otherwise where the check of the result says so."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from headrace.removal.order import FailureCode, Order, Progress
from headrace.removal.report import Check, Method
from headrace.removal.video import checking, rotation, solving, static_marks
from headrace.removal.video.clip_removal import Remover
from headrace.removal.video.marks_file import Mark
from headrace.removal.video.model import Kind, Placed
from headrace.removal.video.result_file import Package
from headrace.removal.video.survey import Survey

# How far the work is, in percent, when a part of it begins.
_FOUND_PERCENT, _SOLVED_PERCENT, _WRITTEN_PERCENT, _CHECKED_PERCENT = 18, 22, 88, 99

MAX_WIDER_TIMES = 4  # the height of a mark, around it: its words may be overlooked where only its logo is seen
MAX_MORE_TRIES = 2  # where the check says what to do otherwise
MIN_WIDE_RATIO = 0.35  # of the frame: a mark that covers more is as good as all over it


@dataclass(frozen=True, slots=True)
class Done:
    """A result that was written and checked."""

    package: Package
    method: Method
    check: Check
    written: checking.Result
    seconds: float  # that writing took
    chosen: list[Mark]  # as they were tried


def clean(order: Order, survey: Survey, chosen: list[Mark], progress: Progress) -> Done | str:
    """The result with its check, the best of a few tries; or why there can be none."""
    done = _tried(order, survey, chosen, progress)
    for _ in range(MAX_MORE_TRIES):
        if isinstance(done, str):
            return done
        other = _otherwise(order, survey, done, lambda: progress(_CHECKED_PERCENT))
        again = None if other is None else _tried(order, survey, other, lambda _: progress(_CHECKED_PERCENT))
        if again is None or isinstance(again, str):
            break
        if done.check.held_back and not (again.check.passed or again.check.held_back):
            # Worse, and written over the one before. A user who accepts a poor result gets the one that was shown:
            # it is written once more.
            former = (
                _tried(order, survey, done.chosen, lambda _: progress(_CHECKED_PERCENT)) if order.accept_poor else done
            )
            return done if isinstance(former, str) else former
        done = again
    return done


def trouble(survey: Survey, chosen: list[Mark]) -> FailureCode:
    """Whether it is the kind of mark that kept it from going."""
    if any(each.candidate.kind in (Kind.MOVING, Kind.PARTLY) for each in chosen):
        return FailureCode.MARK_MOVES
    clip = survey.facts.clip()
    areas = (each.candidate.box.width * each.candidate.box.height for each in chosen)
    wide = any(area / (clip.width * clip.height) > MIN_WIDE_RATIO for area in areas)
    return FailureCode.MARK_WIDE if wide else FailureCode.MARK_REMAINS


def _otherwise(order: Order, survey: Survey, done: Done, heed: Callable[[], object]) -> list[Mark] | None:
    """The marks as they are to be tried once more, by what the check says; None where that would not help."""
    check, chosen = done.check, done.chosen
    if check.passed:
        return None
    if (check.worst_shot or 0.0) > checking.MAX_SHOT_RESIDUE_RATIO:
        # In some shots it is weaker or stronger than in most: so each frame is to say how strong it is.
        fixed = [each for each in chosen if each.candidate.kind is Kind.FIXED]
        faded = [replace(each, candidate=replace(each.candidate, kind=Kind.FADING)) for each in fixed]
        return [*(each for each in chosen if each.candidate.kind is not Kind.FIXED), *faded] if fixed else None
    if check.seen_within and any(not each.filled for each in chosen):
        return [replace(each, filled=True) for each in chosen]
    if check.seen_again is not None and not order.has_place:
        # Some of it was overlooked: the surroundings are searched as if the user had drawn them.
        return [_looked_wider(mark, order, survey, heed) for mark in chosen]
    return None


def _tried(order: Order, survey: Survey, chosen: list[Mark], progress: Progress) -> Done | str:
    """The result, written and checked; or why there can be none."""
    assert order.result is not None
    keep = rotation.keep_as_stored(order, survey.facts)
    remover = Remover(survey.facts, chosen, survey.samples, heed=lambda: progress(_FOUND_PERCENT), keep=keep)
    if remover.hopeless is not None:
        return remover.hopeless
    progress(_SOLVED_PERCENT)
    package = Package(survey.facts, order.result, codec=order.codec, quality=order.quality, threads=order.threads)

    def work(frame: object) -> list[object]:
        share = min(1.0, package.written / max(1, survey.facts.frames))
        progress(_SOLVED_PERCENT + int(share * (_WRITTEN_PERCENT - _SOLVED_PERCENT)))
        return remover.take(frame)

    writing = time.monotonic()
    package.write(work, remover.rest)
    spent = time.monotonic() - writing
    check, written = checking.check(
        order, survey.facts, survey.samples, survey.marks, chosen, remover, package,
        lambda share: progress(_WRITTEN_PERCENT + int(share * (_CHECKED_PERCENT - _WRITTEN_PERCENT))),
    )  # fmt: skip
    return Done(package, remover.method, check, written, spent, chosen)


def _looked_wider(mark: Mark, order: Order, survey: Survey, heed: Callable[[], object]) -> Mark:
    """The mark with what belongs to it further around; as it was where nothing does."""
    views, shown = mark.views(survey.samples, survey.facts)
    wider = checking.wider(
        mark, shown, MAX_WIDER_TIMES if mark.candidate.backgrounds >= solving.MIN_PERSISTING_BACKGROUNDS else 1
    )
    found = static_marks.from_hints(shown, views, [(wider, Placed())], None, order.threads, heed)[0]
    if not mark.path:
        spans = mark.candidate.seconds
        there = [any(begins <= each.seconds < ends for begins, ends in spans) for each in views]
        found.which = np.where(there, found.which, -1) if any(there) else found.which
    known = np.zeros((shown.height, shown.width), np.bool_)
    known[mark.box[0] : mark.box[1], mark.box[2] : mark.box[3]] = mark.matte.alpha > solving.MIN_ALPHA
    here = np.ascontiguousarray(known[found.box[0] : found.box[1], found.box[2] : found.box[3]])
    found.given = solving.persisting(found, views, shown.layout, here)
    barred = [] if mark.path else rotation.keep_as_stored(order, survey.facts)
    allowed = static_marks.allowed(found, barred)
    matte = solving.matte_of(found, views, shown.layout, allowed, heed)
    if matte is None:
        return mark
    matte, _ = solving.levelled(views, found, matte, shown.layout, allowed, heed)
    return replace(mark, box=found.box, matte=matte)
