"""What is in a clip: its facts, frames from all over it, and what may be a mark."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from headrace.removal.order import Order, Progress
from headrace.removal.report import Candidate
from headrace.removal.thresholds import MIN_AUTO_SCORE, MIN_LISTED_CLIP_SCORE
from headrace.removal.video import candidates, marks_file, rotation, solving, static_marks
from headrace.removal.video.frame_removal import Eraser
from headrace.removal.video.marks_file import Mark
from headrace.removal.video.model import MAX_CANDIDATES, Kind
from headrace.removal.video.probing import Facts, probe
from headrace.removal.video.sampling import Sample, sample

_PROBED_PERCENT = 1  # percent of the work when the clip was probed
# Of what persists without an outline: the user must confirm it.
MAX_UNSHOWN_SCORE = 0.6
MAX_MOVING_ALPHA = 0.85  # what lets less through and moves may be a thing of the picture


@dataclass(frozen=True, slots=True)
class Survey:
    facts: Facts
    samples: list[Sample]
    marks: list[Mark]


def survey(
    order: Order, progress: Progress, *, found: list[Mark] | None = None, percents: tuple[int, int] = (40, 99)
) -> Survey:
    """The clip with samples of it, and the marks, looked for where they are not known. ``percents`` says how far the
    work is when the clip is sampled, and when marks are found."""
    progress(0)
    facts = probe(order.source)
    progress(_PROBED_PERCENT)

    def within(first: int, last: int) -> Callable[[float], object]:
        return lambda share: progress(first + int(share * (last - first)))

    samples = sample(facts, within(_PROBED_PERCENT, percents[0]))
    if found is None:
        found = [marks_file.as_stored(each) for each in _found(order, facts, samples, within(*percents))]
    return Survey(facts, samples, found)


def _found(order: Order, facts: Facts, samples: list[Sample], heed: Callable[[float], object]) -> list[Mark]:
    if not order.has_place:
        return _solved(order, facts, samples, candidates.find(facts, samples, threads=order.threads, heed=heed), heed)
    seen = static_marks.from_hints(
        facts, samples, rotation.boxes_as_stored(order, facts), rotation.mask_as_stored(order, facts), order.threads,
        lambda: heed(0.0),
    )  # fmt: skip
    listed = _solved(order, facts, samples, seen, heed)
    boxes = [each for each in seen if each.given is None]
    if listed or not boxes:
        return listed
    # Nothing could be solved from the boxes alone: what is found in the whole clip may lie in one of them.
    found = candidates.within(boxes, candidates.find(facts, samples, threads=order.threads, heed=heed), samples)
    return _solved(order, facts, samples, found, heed)


def _solved(
    order: Order, facts: Facts, samples: list[Sample], seen: list[static_marks.Found],
    heed: Callable[[float], object],
) -> list[Mark]:  # fmt: skip
    """The detections with alpha and colour; without those that cannot be solved."""
    barred = rotation.keep_as_stored(order, facts)
    listed: list[Mark] = []
    for each in seen[:MAX_CANDIDATES]:
        heed(1.0)
        if each.score < MIN_LISTED_CLIP_SCORE:
            continue
        views, shown = marks_file.rested(each.path, each.window, samples, facts)
        allowed = None if each.moves else static_marks.allowed(each, barred)
        if each.moves:  # no two of the pictures beneath it are the same, so edges that stay are its own
            each.given = solving.persisting(each, views, shown.layout)
        matte = solving.matte_of(each, views, shown.layout, allowed, partial(heed, 1.0))
        if matte is None or not matte.loose.any():
            continue
        if order.has_place and each.given is None and not solving.stands_out(
            views, each.which, Eraser(each.box, matte, shown.layout)
        ):  # fmt: skip
            # The eye takes grain around it for the mark, too, and what that is made of for what the mark is.
            each.given = solving.strongest(each)
            matte = solving.matte_of(each, views, shown.layout, allowed, partial(heed, 1.0)) or matte
        matte, fades = solving.levelled(views, each, matte, shown.layout, allowed, partial(heed, 1.0))
        kind = Kind.FADING if fades and not each.moves else _kind(each)
        eraser = Eraser(each.box, matte, shown.layout)
        if not order.has_place and not solving.stands_out(views, each.which, eraser, moves=each.moves):
            each.score = min(each.score, MAX_UNSHOWN_SCORE)
            each.reasons.append("frames do not show its outline")
        inked = matte.alpha[matte.alpha > solving.MIN_ALPHA]
        if each.moves and inked.size and float(inked.mean()) > MAX_MOVING_ALPHA:
            each.score = min(each.score, MAX_UNSHOWN_SCORE)
            each.reasons.append("it hides what is beneath it, as things in the picture do")
        candidate = _candidate(len(listed) + 1, each, kind, inked, samples, facts)
        listed.append(Mark(candidate, each.box, matte, each.path, each.window, each.within))
    return listed


def _kind(found: static_marks.Found) -> Kind:
    if found.moves:
        return Kind.MOVING
    return Kind.FIXED if found.presence.there.mean() > 0.9 else Kind.PARTLY


def _candidate(
    number: int, found: static_marks.Found, kind: Kind, alpha: "np.ndarray[tuple[int], np.dtype[np.float32]]",
    samples: list[Sample], facts: Facts,
) -> Candidate:  # fmt: skip
    _, down, across = found.path[0] if found.moves else (0.0, 0, 0)
    top, bottom, left, right = found.inner
    seen = _spans(found.presence.there, samples, facts) if found.within is None else (_ending(found.within, facts),)
    return Candidate(
        id=number,
        kind=kind,
        method="frames",
        score=found.score,
        certain=found.score >= MIN_AUTO_SCORE,
        box=rotation.as_shown((top + down, bottom + down, left + across, right + across), facts),
        reasons=tuple(found.reasons),
        seconds=seen,
        backgrounds=found.backgrounds,
        opacity=round(float(alpha.mean()) if alpha.size else 0.0, 3),
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
