"""The check of the written file, decoded again: complete, in time, without the mark."""

import bisect
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from headrace.removal.images.views import detection
from headrace.removal.order import Order
from headrace.removal.report import Check
from headrace.removal.video import moving_marks, rotation, scrolling, solving, static_marks
from headrace.removal.video.blur import detail_ratio
from headrace.removal.video.clip_removal import Remover
from headrace.removal.video.marks_file import Mark, rested
from headrace.removal.video.model import Kind, Placed
from headrace.removal.video.moving_marks import Path
from headrace.removal.video.planes import views_of
from headrace.removal.video.probing import Facts, probe
from headrace.removal.video.result_file import Package
from headrace.removal.video.sampling import Box, Sample, decoded, native

Heed = Callable[[float], object]

_MAX_KEPT_FRAMES = 24  # frames that are kept for the second look and for the preview
_MAX_LOOKS = 4  # of these, that the eye looks at: it knows where
_MIN_SEEN_STRENGTH_RATIO = 0.1  # how strong what is left is, from which on the mark is not gone
_MIN_LOOKS_RATIO = 0.7  # of the looks detect what belongs to a mark
_MIN_RESIDUE_AREA_RATIO = 0.03  # of the mark: what is smaller is what compression left of an edge
_MAX_LASTING_RATIO = 0.3  # of the mark's edges: so much that stays of them is seen
_MAX_BESIDE_RATIO = 0.5  # of the mark: so much that stays beside it is a word that was overlooked
# Times as steep along the mark's edges as beside them, in user-drawn boxes, and elsewhere:
# pictures that never had a mark have up to 1.2.
_MAX_DRAWN_EMBOSS_RATIO, _MAX_EMBOSS_RATIO = 1.4, 1.8
_MIN_DENSITY_RATIO = 2  # times as much of it as around it
# Pixels: around a mark that are looked at, at least; around what stays on purpose that are not
_MIN_MARGIN_PX = 16
_RIM_PX = 6
# Likeness of what is elsewhere in one frame at least; and in the others
_MIN_CERTAIN_LIKENESS_RATIO = 0.65
_MIN_LIKENESS_RATIO = 0.4
_MIN_AGREEING_FRAMES, _MAX_DISTANCE_PX = 3, 2  # frames that have it in one place; and pixels between these
_MAX_SEARCHED_FRAMES, _MIN_GONE_RATIO = 48, 0.75  # frames that it is looked for in; and how much of it has to be gone
# a frame so small; and levels by which its pixels differ after a cut, on average
_CUT_FRAME_PX = (40, 24)
_MIN_CUT_LEVELS = 14
# Frames of a shot that tell of it; and how strong, in each, the outline is that does
_MIN_SHOT_FRAMES = 4
_MIN_OUTLINE_LEVELS = 2.0
MAX_SHOT_RESIDUE_RATIO = 0.4  # of the mark, in a single shot: so much is seen
_DECODED_RATIO = 0.6  # how far the check is when every frame was decoded


@dataclass(slots=True)
class Shot:
    """What lies between two cuts, and how much of the mark is in those of its frames that are compared."""

    begins: float  # seconds
    compared: int = 0
    before: float = 0.0
    after: float = 0.0

    @property
    def residue(self) -> float:
        return abs(self.after) / self.before if self.before > 0 else 0.0


@dataclass(slots=True)
class Result:
    """The result as its file has it."""

    facts: Facts
    samples: list[Sample] = field(default_factory=list)  # the same frames as the source's, as far as they are there
    frames: int = 0
    shots: list[Shot] = field(default_factory=list)

    @property
    def residue(self) -> float:
        before = sum(each.before for each in self.shots)
        return abs(sum(each.after for each in self.shots)) / before if before > 0 else 0.0

    @property
    def worst(self) -> Shot | None:
        """The shot that has most of the mark, of those that tell."""
        telling = [
            each
            for each in self.shots
            if each.compared >= _MIN_SHOT_FRAMES and each.before > _MIN_OUTLINE_LEVELS * each.compared
        ]
        return max(telling, key=lambda each: each.residue, default=None)

    @property
    def compared(self) -> int:
        """Frames."""
        return sum(each.compared for each in self.shots)


def check(
    order: Order, source: Facts, samples: list[Sample], marks: list[Mark], chosen: list[Mark], remover: Remover,
    package: Package, heed: Heed,
) -> tuple[Check, Result]:  # fmt: skip
    """Whether the file may be handed out; ``heed`` receives the progress, 0 to 1, and may raise to end it."""
    assert order.result is not None
    result = Result(probe(order.result))
    reason = _out_of_shape(source, result.facts, package.stamps)
    remains = held_back = False
    again: tuple[Box, bool] | None = None
    if reason is None:
        _decode(result, source, samples, remover, package.stamps, lambda share: heed(_DECODED_RATIO * share))
        if result.frames != package.written:
            reason = f"Only {result.frames} of {package.written} frames of the result can be decoded."
    if reason is None and result.residue > solving.MAX_RESIDUE_RATIO:
        reason, remains = f"{result.residue:.0%} of the mark is still in the result.", True
    worst = result.worst
    if reason is None and worst is not None and worst.residue > MAX_SHOT_RESIDUE_RATIO:
        reason = f"{worst.residue:.0%} of the mark is still there from {worst.begins:.1f} s on."
        remains = held_back = True
    if reason is None and result.compared == 0 and not order.has_place:
        reason, remains = "The mark stands out in no frame, so nothing shows that it went.", True
    if reason is None:
        again = _detect_again(order, source, samples, result, marks, chosen, lambda: heed(_DECODED_RATIO))
        if again is not None:
            reason, remains, held_back = "A second look at the result still finds a mark there.", True, True
    if reason is None:
        reason = _elsewhere_left(order, source, samples, result, chosen, lambda: heed(_DECODED_RATIO))
        remains = held_back = reason is not None
    changed = sum(each.changed for each in remover.erasers)
    return Check(
        reason is None,
        reason,
        residue_before=1.0,
        residue_after=round(result.residue, 4),
        changed_area=round(changed / (source.width * source.height), 6),
        frames=result.compared,
        remains=remains,
        seen_again=None if again is None else rotation.as_shown(again[0], source),
        seen_within=again is not None and again[1],
        held_back=held_back,
        worst_shot=0.0 if worst is None else round(worst.residue, 4),
        detail=detail_ratio(result.samples, result.facts.layout, remover.resting),
    ), result


def _out_of_shape(source: Facts, result: Facts, stamps: list[int]) -> str | None:
    """What is wrong with the size, the number of frames and their times."""
    if (result.width, result.height) != (source.width, source.height):
        return f"The result has {result.width} x {result.height} pixels instead of {source.width} x {source.height}."
    if result.frames != len(stamps):
        return f"The result has {result.frames} frames instead of {len(stamps)}."
    # A kind of file that counts in coarser units rounds; where it begins is the container's to say.
    unit = max(source.time_base, result.time_base)
    for number, (was, now) in enumerate(zip(stamps, result.stamps, strict=True)):
        wanted = (was - stamps[0]) * source.time_base
        if abs((now - result.stamps[0]) * result.time_base - wanted) > unit:
            return f"Frame {number + 1} of the result is shown at another time than in the original."
    return None


def _decode(
    result: Result, source: Facts, samples: list[Sample], remover: Remover, stamps: list[int], heed: Heed
) -> None:
    """All frames of the file, once; the outline's residue is read off some, some are kept."""
    step = max(1, len(samples) // _MAX_KEPT_FRAMES)
    kept = {bisect.bisect_left(stamps, each.stamp) for each in samples[::step]}
    layout, base = result.facts.layout, result.facts.time_base
    checked = remover.to_check()
    begins = result.facts.stamps[0]
    last: NDArray[np.float32] | None = None
    for number, frame in enumerate(decoded(result.facts)):
        heed(min(1.0, number / max(1, len(stamps))))
        result.frames += 1
        planes = views_of(native(frame, layout), layout)
        stamp = begins if frame.pts is None else frame.pts
        seconds = float((stamp - begins) * base)
        small = cv2.resize(planes[0], _CUT_FRAME_PX, interpolation=cv2.INTER_AREA).astype(np.float32)
        cut = last is None or float(np.abs(small - last).mean()) > _MIN_CUT_LEVELS << layout.shift
        if cut and (not result.shots or result.shots[-1].compared >= _MIN_SHOT_FRAMES):
            result.shots.append(Shot(seconds))
        last = small
        if number in checked:
            # Levels of the source's depth, which the erasers were made for.
            bright: Any = (planes[0] >> layout.shift).astype(np.uint16) << source.layout.shift
            shot = result.shots[-1]
            for eraser, strength, weight in checked[number]:
                shot.before += weight * strength
                shot.after += weight * eraser.measure(bright)[0]
            shot.compared += 1
        if number in kept:
            result.samples.append(Sample(stamp, seconds, [plane.copy() for plane in planes]))


def _detect_again(
    order: Order, source: Facts, originals: list[Sample], result: Result, marks: list[Mark], chosen: list[Mark],
    heed: Callable[[], object],
) -> tuple[Box, bool] | None:  # fmt: skip
    """Where the network, knowing of the mark, still detects one: a missed letter is in no outline.

    And whether that is where the mark was, and not beside it.
    """
    facts = result.facts
    goes = {each.candidate.id for each in chosen}
    others = [each.inner for each in marks if each.candidate.id not in goes]
    barred = [_wider(box, _RIM_PX, facts) for box in rotation.keep_as_stored(order, facts) + others]
    for mark in chosen:
        path = _path_in(mark, result.samples, facts)
        begins, ends = mark.within or (0.0, math.inf)
        if (mark.path and not path) or not any(begins <= each.seconds < ends for each in result.samples):
            continue
        samples, shown = rested(path, mark.window, result.samples, facts)
        inner = wider(mark, shown)  # the eye needs the surroundings to tell a faint mark from the picture
        placed = Placed(begins, ends)
        hints = [(inner, placed)]
        found = static_marks.from_hints(shown, samples, hints, None, order.threads, heed, most=_MAX_LOOKS)[0]
        near = _near(mark, found, shown)
        allowed = static_marks.allowed(found, [] if path else barred)
        if order.has_place:
            allowed &= near  # the user drew its limits
        elif path or mark.candidate.backgrounds >= solving.MIN_PERSISTING_BACKGROUNDS:
            # Missed parts of the mark beside it are in all pictures; other words and things are in some.
            allowed &= near | (np.mean([look.odds > 0 for look in found.looks], 0) > _MIN_LOOKS_RATIO)
        matte = solving.matte_of(found, samples, shown.layout, allowed, heed)
        inked = np.zeros(0) if matte is None else matte.alpha[matte.alpha > solving.MIN_ALPHA]
        size = int((mark.matte.alpha > solving.MIN_ALPHA).sum())
        seen = inked.size > _MIN_RESIDUE_AREA_RATIO * size and float(inked.mean()) >= _MIN_SEEN_STRENGTH_RATIO
        # What stays beside it, while the pictures beneath change, is a part that was overlooked.
        stays = solving.stays_with(near, found, samples, shown.layout) & ~near
        beside = 0 if order.has_place else int((stays & static_marks.allowed(found, [] if path else barred)).sum())
        if order.has_place and not _denser(found, near):
            seen = False
        lasts = _lasting(mark, path, originals, source, result)
        ghost = not path and _embossed(mark, result) > (
            _MAX_DRAWN_EMBOSS_RATIO if order.has_place else _MAX_EMBOSS_RATIO
        )
        if seen or ghost or beside > _MAX_BESIDE_RATIO * size or lasts > _MAX_LASTING_RATIO:
            _, down, across = path[0] if path else (0.0, 0, 0)
            box = (inner[0] + down, inner[1] + down, inner[2] + across, inner[3] + across)
            there = int((matte.alpha > solving.MIN_ALPHA)[near].sum()) if matte is not None else 0
            return box, ghost or lasts > _MAX_LASTING_RATIO or (seen and 2 * there > inked.size)
    return None


def _near(mark: Mark, found: static_marks.Found, facts: Facts) -> NDArray[np.bool_]:
    """Where, in the box of what is looked at, the mark was."""
    top, bottom, left, right = found.box
    whole = np.zeros((facts.height, facts.width), np.uint8)
    whole[mark.box[0] : mark.box[1], mark.box[2] : mark.box[3]] = mark.matte.loose
    return cv2.dilate(whole, np.ones((2 * _RIM_PX + 1,) * 2, np.uint8)).view(np.bool_)[top:bottom, left:right]


def _denser(found: static_marks.Found, near: NDArray[np.bool_]) -> bool:
    """Whether the eye sees more where the mark was than around it: it takes coarse grain for marks everywhere."""
    seen = detection.guess(found.looks).tight
    return bool(near.all()) or float(seen[near].mean()) > _MIN_DENSITY_RATIO * float(seen[~near].mean())


def _embossed(mark: Mark, result: Result) -> float:
    spans = [mark.within] if mark.within is not None else mark.candidate.seconds
    there = [each for each in result.samples if any(begins <= each.seconds < ends for begins, ends in spans)]
    return solving.embossed(there, result.facts.layout, mark.box, mark.matte) if there else 1.0


def _lasting(mark: Mark, path: Path, originals: list[Sample], source: Facts, result: Result) -> float:
    """How much of the edges that the mark had are in the result, too; 0 where too few pictures tell."""
    if path:
        before, shown = rested(path, mark.window, originals, source)
        after, cleaned = rested(path, mark.window, result.samples, result.facts)
    else:
        spans = [mark.within] if mark.within is not None else mark.candidate.seconds
        after = [each for each in result.samples if any(begins <= each.seconds < ends for begins, ends in spans)]
        before = [min(originals, key=lambda other: abs(other.seconds - each.seconds)) for each in after]
        shown, cleaned = source, result.facts
    if min(len(after), mark.candidate.backgrounds) < solving.MIN_PERSISTING_BACKGROUNDS:
        return 0.0
    return solving.lasting(before, after, (shown.layout, cleaned.layout), mark.box, mark.matte.loose)


def _elsewhere_left(
    order: Order, source: Facts, samples: list[Sample], result: Result, chosen: list[Mark], heed: Callable[[], object]
) -> str | None:
    """Why a mark is not gone that is whole where it was taken off: it is in other places, or is longer."""
    jumps = [each for each in chosen if each.candidate.kind in (Kind.PARTLY, Kind.FADING)]
    if not order.has_place and any(_elsewhere(each, chosen, samples, source, heed) for each in jumps):
        return "The mark is in other places, too, and was not taken off there."
    if any(
        scrolling.is_left(each, source, samples, result.facts, result.samples, order.threads, heed) for each in chosen
    ):
        return "Parts of the text that scrolls through the clip are still there."
    return None


def _elsewhere(mark: Mark, chosen: list[Mark], samples: list[Sample], facts: Facts, heed: Callable[[], object]) -> bool:
    """Whether what comes and goes in one place was, time and again, in another one where it was not taken off whole."""
    top, bottom, left, right = mark.inner
    spans = mark.candidate.seconds
    there = [each for each in samples if any(begins <= each.seconds < ends for begins, ends in spans)]
    total = np.zeros((bottom - top, right - left, 2), np.float32)
    for each in there:
        heed()
        total += moving_marks.steps_of(each.planes[0], facts.layout)[top:bottom, left:right]
    here = np.s_[top - mark.box[0] : bottom - mark.box[0], left - mark.box[2] : right - mark.box[2]]
    outline = moving_marks.Outline.of(total, np.ascontiguousarray(mark.matte.loose[here]))
    down, across = (bottom - top) // 2, (right - left) // 2  # a mark may reach beyond the frame's sides
    places: list[tuple[float, int, int]] = []
    for each in samples[:: max(1, len(samples) // _MAX_SEARCHED_FRAMES)]:
        heed()
        steps = moving_marks.steps_of(each.planes[0], facts.layout)
        likeness, first, begin = moving_marks.locate(outline, steps, moving_marks.coarseness(facts))
        places.append((likeness, first + down, begin + across))
    gone = np.zeros((facts.height + 2 * down, facts.width + 2 * across), np.bool_)
    gone[:down], gone[-down:], gone[:, :across], gone[:, -across:] = True, True, True, True
    for other in chosen:
        one, last, begin, end = (at + more for at, more in zip(other.box, (down, down, across, across), strict=True))
        gone[one:last, begin:end] |= other.matte.loose
    inked = mark.matte.alpha[here] > solving.MIN_ALPHA
    for likeness, first, begin in places:
        same = [each for each in places if max(abs(first - each[1]), abs(begin - each[2])) <= _MAX_DISTANCE_PX]
        if (
            likeness > _MIN_CERTAIN_LIKENESS_RATIO
            and sum(each[0] > _MIN_LIKENESS_RATIO for each in same) >= _MIN_AGREEING_FRAMES
        ):
            over = gone[first : first + bottom - top, begin : begin + right - left]
            if over[inked].mean() < _MIN_GONE_RATIO:
                return True
    return False


def _path_in(mark: Mark, samples: list[Sample], facts: Facts) -> Path:
    """The moments of a mark's path that the samples show; where it is not cut off, if these are many."""
    apart = 0.6 / float(facts.rate)
    path = tuple(each for each in mark.path if any(abs(each[0] - sample.seconds) < apart for sample in samples))
    uncut = moving_marks.uncut(path, mark.inner, facts)
    if uncut.sum() < solving.MIN_PERSISTING_BACKGROUNDS:
        return path
    return tuple(each for each, whole in zip(path, uncut, strict=True) if whole)


def wider(mark: Mark, facts: Facts, times: int = 1) -> Box:
    """The mark with a margin of its height, or a multiple of that."""
    top, bottom, left, right = mark.inner
    return _wider((top, bottom, left, right), times * max(_MIN_MARGIN_PX, min(bottom - top, right - left)), facts)


def _wider(box: Box, margin: int, facts: Facts) -> Box:
    top, bottom, left, right = box
    return (
        max(0, top - margin),
        min(facts.height, bottom + margin),
        max(0, left - margin),
        min(facts.width, right + margin),
    )
