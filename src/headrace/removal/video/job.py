"""One clip: probed, looked at, cleaned, packed, checked. Functions on files that know neither commands nor tasks.

``detect`` leaves its marks in a file from which ``remove`` goes on, also on another machine. A file from anywhere may
be made to harm: call these in a child process, as ``confined_videos.carry_out`` does.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from headrace.removal.candidates import Mode, Outcome
from headrace.removal.errors import CandidateUnknown, HintUnusable
from headrace.removal.progress import Progress
from headrace.removal.video import checking, detecting, finding, looks, marks, solving, turning
from headrace.removal.video.erasing import Eraser
from headrace.removal.video.marks import Mark
from headrace.removal.video.model import (
    LISTED_SCORE,
    MOST_CANDIDATES,
    Candidate,
    Check,
    Kind,
    Method,
    Placed,
    Trouble,
    VideoOrder,
    VideoReport,
)
from headrace.removal.video.packaging import Package
from headrace.removal.video.probing import Facts, probe
from headrace.removal.video.removing import Remover
from headrace.removal.video.sampling import Sample, sample

# How far the work is, in percent, when a stage begins.
_PROBED, _SAMPLED, _FOUND, _SOLVED, _WRITTEN, _CHECKED = 1, 8, 18, 22, 88, 99

# The score of what persists without an outline: the user must confirm it.
_UNSHOWN = 0.6
_FURTHER = 4  # times the height of a mark, around it: its words may be overlooked where only its logo is seen
_MORE_TRIES = 2  # where the check says what to do otherwise
_WIDE = 0.35  # of the frame: a mark that covers more is as good as all over it
_HIDES = 0.85  # of alpha: what lets so little through and moves may be a thing of the picture


def process(order: VideoOrder, progress: Progress) -> VideoReport:
    """Look for marks in a clip, and take them off if a result is asked for.

    Writes straight to the files that the order names. ``progress`` receives percents, many times a second; what it
    raises ends the work. Raises ``ClipUnreadable``, ``HintUnusable``, ``CandidateUnknown``, ``TargetUnusable``,
    ``EncoderMissing`` and ``ModelDamaged``.
    """
    return detect(order, progress) if order.result is None else remove(order, progress)


def detect(order: VideoOrder, progress: Progress) -> VideoReport:
    """What may be a mark; with ``order.marks``, their masks go to that file."""
    began = time.monotonic()
    sampled = _looked(order, progress, (_PROBED, 40, 99))
    if order.marks is not None:
        marks.save(sampled.marks, order.marks)
    if order.overlay is not None:
        looks.overlay(sampled.facts, sampled.samples, [each.candidate for each in sampled.marks], order.overlay)
    progress(100)
    return _report(sampled, None, None, began)


def remove(order: VideoOrder, progress: Progress, *, found: list[Mark] | None = None) -> VideoReport:
    """Take marks off. They are ``found``, or those in the file ``order.marks``, or looked for."""
    began = time.monotonic()
    assert order.result is not None
    if found is None and order.marks is not None:
        found = marks.load(order.marks)
    sampled = _looked(order, progress, (_PROBED, _SAMPLED, _FOUND), found)
    chosen = _chosen(sampled.marks, order)
    if order.overlay is not None:
        looks.overlay(sampled.facts, sampled.samples, [each.candidate for each in sampled.marks], order.overlay)
    if not chosen:
        return _report(sampled, *_nothing(sampled.marks), began)
    done = _carried_out(order, sampled, chosen, progress)
    if isinstance(done, str):
        return replace(_report(sampled, Outcome.FAILED, done, began), trouble=_trouble(sampled, chosen))
    done, chosen = _improved(order, sampled, done, chosen, progress)
    check, package = done.check, done.package
    if check.held_back and order.accept_poor:
        check = replace(check, passed=True, reason=None)
    report = _report(sampled, Outcome.REMOVED if check.passed else Outcome.FAILED, check.reason, began)
    if not check.passed:
        Path(order.result).unlink(missing_ok=True)  # it must not be taken for a result
    if order.preview is not None and (check.passed or check.held_back):
        looks.compare(sampled.facts, sampled.samples, done.written.facts, done.written.samples, order.preview)
    progress(100)
    return replace(
        report,
        removed=tuple(each.candidate.id for each in chosen) if check.passed else (),
        method=done.method if check.passed else None,
        check=check,
        codec=package.codec,
        bit_rate=int(8 * package.bytes / max(sampled.facts.seconds, 0.04)),
        warnings=tuple(package.warnings),
        frames_a_second=round(package.written / max(done.seconds, 1e-3), 1),
        trouble=_trouble(sampled, chosen) if check.remains and not check.passed else None,
    )


def _improved(
    order: VideoOrder, sampled: "_Sampled", done: "_Done", chosen: list[Mark], progress: Progress
) -> tuple["_Done", list[Mark]]:
    """The best of some more tries, with the marks as they were tried. A user who accepts a poor result gets the same,
    which they were shown."""
    for _ in range(_MORE_TRIES):
        other = _otherwise(order, sampled, chosen, done.check, lambda: progress(_CHECKED))
        again = None if other is None else _carried_out(order, sampled, other, lambda _: progress(_CHECKED))
        if other is None or again is None or isinstance(again, str):
            break
        if done.check.held_back and not (again.check.passed or again.check.held_back):
            # Worse, and written over the one before: where that is to be handed out, it is written once more.
            former = _carried_out(order, sampled, chosen, lambda _: progress(_CHECKED)) if order.accept_poor else done
            return (done if isinstance(former, str) else former), chosen
        done, chosen = again, other
    return done, chosen


def _trouble(sampled: "_Sampled", chosen: list[Mark]) -> Trouble | None:
    """Whether it is the kind of mark that kept it from going."""
    if any(each.candidate.kind in (Kind.MOVING, Kind.PARTLY) for each in chosen):
        return Trouble.MOVES
    clip = sampled.facts.clip()
    wide = any(each.candidate.share(clip.width, clip.height) > _WIDE for each in chosen)
    return Trouble.WIDE if wide else None


def _otherwise(
    order: VideoOrder, sampled: "_Sampled", chosen: list[Mark], check: Check, heed: Callable[[], object]
) -> list[Mark] | None:
    """The marks as they are to be tried once more, by what the check says; None where that would not help."""
    if check.passed:
        return None
    if check.worst_shot > checking.GHOST:
        # In some shots it is weaker or stronger than in most: so each frame is to say how strong it is.
        fixed = [each for each in chosen if each.candidate.kind is Kind.FIXED]
        faded = [replace(each, candidate=replace(each.candidate, kind=Kind.FADING)) for each in fixed]
        return [*(each for each in chosen if each.candidate.kind is not Kind.FIXED), *faded] if fixed else None
    if check.seen_within and any(not each.filled for each in chosen):
        return [replace(each, filled=True) for each in chosen]
    if check.seen_again is not None and not order.has_hint:
        # Some of it was overlooked: the surroundings are searched as if the user had drawn them.
        return [_looked_wider(mark, order, sampled, heed) for mark in chosen]
    return None


@dataclass(frozen=True, slots=True)
class _Done:
    """A result that was written and checked."""

    package: Package
    method: Method
    check: Check
    written: checking.Result
    seconds: float  # that writing took


def _carried_out(order: VideoOrder, sampled: "_Sampled", chosen: list[Mark], progress: Progress) -> _Done | str:
    """The result, written and checked; or why there can be none."""
    assert order.result is not None
    keep = turning.keep_as_stored(order, sampled.facts)
    remover = Remover(sampled.facts, chosen, sampled.samples, heed=lambda: progress(_FOUND), keep=keep)
    if remover.hopeless is not None:
        return remover.hopeless
    progress(_SOLVED)
    package = Package(sampled.facts, order.result, codec=order.codec, quality=order.quality, threads=order.threads)

    def work(frame: object) -> list[object]:
        share = min(1.0, package.written / max(1, sampled.facts.frames))
        progress(_SOLVED + int(share * (_WRITTEN - _SOLVED)))
        return remover.take(frame)

    writing = time.monotonic()
    package.write(work, remover.rest)
    spent = time.monotonic() - writing
    check, written = checking.check(
        order, sampled.facts, sampled.samples, sampled.marks, chosen, remover, package,
        lambda share: progress(_WRITTEN + int(share * (_CHECKED - _WRITTEN))),
    )  # fmt: skip
    return _Done(package, remover.method, check, written, spent)


def _looked_wider(mark: Mark, order: VideoOrder, sampled: "_Sampled", heed: Callable[[], object]) -> Mark:
    """The mark with what belongs to it further around; as it was where nothing does."""
    views, shown = mark.views(sampled.samples, sampled.facts)
    wider = checking.wider(mark, shown, _FURTHER if mark.candidate.backgrounds >= solving.MANY_PICTURES else 1)
    found = detecting.from_hints(shown, views, [(wider, Placed((0, 0, 1, 1)))], None, order.threads, heed)[0]
    if not mark.path:
        spans = mark.candidate.spans
        there = [any(begins <= each.seconds < ends for begins, ends in spans) for each in views]
        found.which = np.where(there, found.which, -1) if any(there) else found.which
    known = np.zeros((shown.height, shown.width), np.bool_)
    known[mark.box[0] : mark.box[1], mark.box[2] : mark.box[3]] = mark.matte.alpha > solving.FAINTEST
    here = np.ascontiguousarray(known[found.box[0] : found.box[1], found.box[2] : found.box[3]])
    found.given = solving.persisting(found, views, shown.layout, here)
    barred = [] if mark.path else turning.keep_as_stored(order, sampled.facts)
    allowed = detecting.allowed(found, barred)
    matte = solving.matte_of(found, views, shown.layout, allowed, heed)
    if matte is None:
        return mark
    matte, _ = solving.levelled(views, found, matte, shown.layout, allowed, heed)
    return replace(mark, box=found.box, matte=matte)


@dataclass(frozen=True, slots=True)
class _Sampled:
    facts: Facts
    samples: list[Sample]
    marks: list[Mark]


def _looked(
    order: VideoOrder, progress: Progress, stages: tuple[int, int, int], found: list[Mark] | None = None
) -> _Sampled:
    """The clip with samples of it, and the marks, looked for where they are not known."""
    progress(0)
    facts = probe(order.source)
    progress(stages[0])

    def within(first: int, last: int) -> Callable[[float], object]:
        return lambda share: progress(first + int(share * (last - first)))

    samples = sample(facts, within(stages[0], stages[1]))
    if found is None:
        found = [marks.as_stored(each) for each in _found(order, facts, samples, within(stages[1], stages[2]))]
    return _Sampled(facts, samples, found)


def _found(order: VideoOrder, facts: Facts, samples: list[Sample], heed: Callable[[float], object]) -> list[Mark]:
    if not order.has_hint:
        return _solved(order, facts, samples, finding.find(facts, samples, threads=order.threads, heed=heed), heed)
    seen = detecting.from_hints(
        facts, samples, turning.boxes_as_stored(order, facts), turning.mask_as_stored(order, facts), order.threads,
        lambda: heed(0.0),
    )  # fmt: skip
    listed = _solved(order, facts, samples, seen, heed)
    boxes = [each for each in seen if each.given is None]
    if listed or not boxes:
        return listed
    # Nothing could be solved from the boxes alone: what is found in the whole clip may lie in one of them.
    found = finding.within(boxes, finding.find(facts, samples, threads=order.threads, heed=heed), samples)
    return _solved(order, facts, samples, found, heed)


def _solved(
    order: VideoOrder, facts: Facts, samples: list[Sample], seen: list[detecting.Found],
    heed: Callable[[float], object],
) -> list[Mark]:  # fmt: skip
    """The detections with alpha and colour; without those that cannot be solved."""
    barred = turning.keep_as_stored(order, facts)
    listed: list[Mark] = []
    for each in seen[:MOST_CANDIDATES]:
        heed(1.0)
        if each.score < LISTED_SCORE:
            continue
        views, shown = marks.rested(each.path, each.window, samples, facts)
        allowed = None if each.moves else detecting.allowed(each, barred)
        if each.moves:  # no two of the pictures beneath it are the same, so edges that stay are its own
            each.given = solving.persisting(each, views, shown.layout)
        matte = solving.matte_of(each, views, shown.layout, allowed, partial(heed, 1.0))
        if matte is None or not matte.loose.any():
            continue
        if order.has_hint and each.given is None and not solving.stands_out(
            views, each.which, Eraser(each.box, matte, shown.layout)
        ):  # fmt: skip
            # The eye takes grain around it for the mark, too, and what that is made of for what the mark is.
            each.given = solving.strongest(each)
            matte = solving.matte_of(each, views, shown.layout, allowed, partial(heed, 1.0)) or matte
        matte, fades = solving.levelled(views, each, matte, shown.layout, allowed, partial(heed, 1.0))
        kind = Kind.FADING if fades and not each.moves else _kind(each)
        eraser = Eraser(each.box, matte, shown.layout)
        if not order.has_hint and not solving.stands_out(views, each.which, eraser, moves=each.moves):
            each.score = min(each.score, _UNSHOWN)
            each.reasons.append("frames do not show its outline")
        inked = matte.alpha[matte.alpha > solving.FAINTEST]
        if each.moves and inked.size and float(inked.mean()) > _HIDES:
            each.score = min(each.score, _UNSHOWN)
            each.reasons.append("it hides what is beneath it, as things in the picture do")
        candidate = _candidate(len(listed) + 1, each, kind, inked, samples, facts)
        listed.append(Mark(candidate, each.box, matte, each.path, each.window, each.within))
    return listed


def _kind(found: detecting.Found) -> Kind:
    if found.moves:
        return Kind.MOVING
    return Kind.FIXED if found.presence.there.mean() > 0.9 else Kind.PARTLY


def _candidate(
    number: int, found: detecting.Found, kind: Kind, alpha: "np.ndarray[tuple[int], np.dtype[np.float32]]",
    samples: list[Sample], facts: Facts,
) -> Candidate:  # fmt: skip
    _, down, across = found.path[0] if found.moves else (0.0, 0, 0)
    top, bottom, left, right = found.inner
    return Candidate(
        number,
        turning.as_shown((top + down, bottom + down, left + across, right + across), facts),
        kind,
        found.score,
        _spans(found.presence.there, samples, facts) if found.within is None else (_ending(found.within, facts),),
        found.backgrounds,
        round(float(alpha.mean()) if alpha.size else 0.0, 3),
        tuple(found.reasons),
    )


def _ending(within: tuple[float, float], facts: Facts) -> tuple[float, float]:
    begins, ends = within
    return round(begins, 3), round(min(ends, facts.seconds), 3)


def _spans(there: "np.ndarray[tuple[int], np.dtype[np.bool_]]", samples: list[Sample], facts: Facts) -> tuple[
    tuple[float, float], ...
]:  # fmt: skip
    """From the first sample that has the mark to the one after the last, for each run of them."""
    times = [each.seconds for each in samples] + [facts.seconds]
    spans: list[tuple[float, float]] = []
    for number in np.flatnonzero(there):
        begins, ends = times[number], times[number + 1]
        if spans and spans[-1][1] == round(begins, 3):
            spans[-1] = (spans[-1][0], round(ends, 3))
        else:
            spans.append((round(begins, 3), round(ends, 3)))
    return tuple(spans)


def _chosen(found: list[Mark], order: VideoOrder) -> list[Mark]:
    known = {each.candidate.id for each in found}
    unknown = sorted(set(order.only) - known)
    if unknown:
        listed = f"1 to {len(found)}" if found else "none"
        raise CandidateUnknown(
            f"{order.source} has no candidate {unknown[0]}: there are {listed}. See `headrace detect`."
        )
    if order.only:
        return [each for each in found if each.candidate.id in order.only]
    if order.mode is Mode.MANUAL and not order.has_hint:
        raise HintUnusable("MANUAL needs the place of the mark: add --box, --mask or --only.")
    return [each for each in found if each.candidate.certain]


def _nothing(found: list[Mark]) -> tuple[Outcome, str]:
    if not found:
        return Outcome.NO_MARK, "No mark was found."
    return Outcome.NEEDS_REVIEW, (
        "Needs review: something may be a mark, but is not certain. Look with `headrace detect --overlay`, then "
        "name it with --only, or say where it is with --box."
    )


def _report(sampled: _Sampled, outcome: Outcome | None, reason: str | None, began: float) -> VideoReport:
    return VideoReport(
        clip=sampled.facts.clip(),
        candidates=tuple(each.candidate for each in sampled.marks),
        outcome=outcome,
        reason=reason,
        removed=(),
        method=None,
        check=None,
        codec=None,
        bit_rate=None,
        warnings=(),
        seconds=round(time.monotonic() - began, 3),
    )
