"""The stages of one clip."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from PIL import Image

from headrace.removal.candidates import Mode, Outcome
from headrace.removal.errors import CandidateUnknown, HintUnusable
from headrace.removal.pipeline.model import FailureCode, Names, Rectangle, RemovalOrder, StageOrder, StageReport
from headrace.removal.pipeline.previewing import write_preview
from headrace.removal.video import job
from headrace.removal.video.model import Candidate, Placed, Quality, VideoOrder, VideoReport
from headrace.removal.video.probing import probe

Progress = Callable[[int], object]

_SEEN = 0.1  # how strong what is left is, from which on the mark is not gone


def prepare(order: StageOrder, progress: Progress) -> StageReport:
    """Whether it can be read, and whether what was said of the mark fits it."""
    clip = probe(order.path(Names.SOURCE)).told()
    progress(90)
    for hint in order.order.hints:
        for left, top, _, _ in (*hint.boxes, *hint.keep):
            if left >= clip.width or top >= clip.height:
                raise HintUnusable(f"A box begins at {left}, {top}, outside of {clip.width} x {clip.height} pixels.")
    return StageReport(asdict(clip))


def detect(order: StageOrder, progress: Progress) -> StageReport:
    report = job.detect(_asked(order, marks=order.path(Names.MARKS)), progress)
    chosen = _chosen(report.candidates, order.order)
    facts = {"frames": report.clip.frames, "chosen": chosen}
    candidates = [_shown(each) for each in report.candidates]
    if chosen:
        return StageReport(facts, candidates, [Names.MARKS])
    return StageReport(facts, candidates, refused=FailureCode.NEEDS_REVIEW if candidates else FailureCode.NO_MARK)


def inpaint(order: StageOrder, progress: Progress) -> StageReport:
    """Take off what was chosen, frame by frame; the core holds the result against the original."""
    asked = _asked(
        order,
        marks=order.path(Names.MARKS),
        result=order.path(order.result),
        preview=order.path(Names.SIDES),
        only=tuple(order.earlier["chosen"]),
    )
    report = job.remove(asked, progress)
    facts: dict[str, Any] = {
        "removed": list(report.removed),
        "warnings": list(report.warnings),
        "method": report.method,
        "codec": report.codec,
        "frames_a_second": report.frames_a_second,
    }
    if report.check is not None:
        facts["check"] = asdict(report.check)
    if report.outcome is Outcome.REMOVED:
        return StageReport(facts, keeps=[order.result, Names.SIDES])
    return StageReport(facts | {"reason": report.reason}, refused=_refusal(report))


def package(order: StageOrder, progress: Progress) -> StageReport:
    left = _left(order, lambda percent: progress(percent * 8 // 10))
    if left is not None and not order.order.accept_poor:
        return StageReport({"left": _shown(left)}, refused=FailureCode.MARK_REMAINS)
    write_preview(order.path(order.result), order.order.output_format, order.path(Names.PREVIEW))
    progress(90)
    with Image.open(order.path(Names.SIDES)) as sides:
        sides.convert("RGB").save(order.path(Names.COMPARISON), "JPEG", quality=90)
    return StageReport()


def _left(order: StageOrder, progress: Progress) -> Candidate | None:
    """What a second look at the result still finds where a mark was, and around it.

    The core's own check holds the result against the mask that was found; a part of the mark outside of it, a letter
    that was overlooked, is seen by this alone. It is told where to look, for there was a mark: so it sees more.
    """
    chosen = set(order.earlier["chosen"])
    places = [each["box"] for each in order.earlier["candidates"] if each["id"] in chosen]
    boxes = tuple(Placed(_around(tuple(box))) for box in places)
    again = job.detect(VideoOrder(order.path(order.result), boxes=boxes, threads=order.threads), progress)
    return next((each for each in again.candidates if each.opacity >= _SEEN), None)


def _around(box: Rectangle) -> Rectangle:
    """The box with what lies right beside it; the core cuts off what is outside of the frame."""
    left, top, width, height = box
    margin = max(16, min(width, height))
    x, y = max(0, left - margin), max(0, top - margin)
    return x, y, left + width + margin - x, top + height + margin - y


def _asked(order: StageOrder, **more: Any) -> VideoOrder:
    told = order.order
    return VideoOrder(
        order.path(Names.SOURCE),
        mode=Mode(told.mode.lower()),
        boxes=tuple(Placed(box, *(hint.seconds or ())) for hint in told.hints for box in _boxes(hint)),
        keep=tuple(box for hint in told.hints for box in hint.keep),
        drawn=None if told.mask_asset_id is None else order.path(Names.MASK),
        quality=Quality(told.quality.lower()),
        threads=order.threads,
        **more,
    )


def _boxes(hint: Any) -> list[tuple[int, int, int, int]]:
    """The boxes, and those around the polygons: the core finds the mark inside."""
    around = []
    for corners in hint.polygons:
        xs, ys = [x for x, _ in corners], [y for _, y in corners]
        around.append((min(xs), min(ys), max(1, max(xs) - min(xs)), max(1, max(ys) - min(ys))))
    return [*hint.boxes, *around]


def _chosen(candidates: tuple[Candidate, ...], order: RemovalOrder) -> list[int]:
    known = {each.id for each in candidates}
    if unknown := sorted(set(order.candidates) - known):
        raise CandidateUnknown(f"There is no candidate {unknown[0]}: there are {len(known)}.")
    if order.candidates:
        return sorted(set(order.candidates))
    told = order.mode == "MANUAL"
    return [each.id for each in candidates if told or each.certain]


def _refusal(report: VideoReport) -> FailureCode:
    if report.outcome is Outcome.NO_MARK:
        return FailureCode.NO_MARK
    if report.outcome is Outcome.NEEDS_REVIEW:
        return FailureCode.NEEDS_REVIEW
    gone = report.check is not None and report.check.residue_after <= 0.2
    return FailureCode.DAMAGED if gone else FailureCode.MARK_REMAINS


def _shown(each: Candidate) -> dict[str, Any]:
    return {
        "id": each.id,
        "kind": str(each.kind),
        "method": "frames",
        "score": round(float(each.score), 4),
        "certain": each.certain,
        "pages": [],
        "box": list(each.box),
        "text": None,
        "seconds": [list(span) for span in each.spans[:100]],
        "opacity": each.opacity,
        "reasons": list(each.reasons)[:6],
    }
