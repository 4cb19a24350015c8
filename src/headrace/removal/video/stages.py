"""The stages of one clip."""

from dataclasses import asdict
from typing import Any

import numpy as np
from PIL import Image

from headrace.removal.candidates import Mode, Outcome
from headrace.removal.errors import CandidateUnknown, HintUnusable
from headrace.removal.images.comparison import save_unpaid
from headrace.removal.order import FailureCode, Names, RemovalOrder, StageOrder, StageReport
from headrace.removal.previewing import write_preview
from headrace.removal.progress import Progress
from headrace.removal.verdict import Verdict
from headrace.removal.video import job
from headrace.removal.video.looks import COMPARED_FRAMES
from headrace.removal.video.model import Candidate, Placed, Quality, Trouble, VideoOrder, VideoReport
from headrace.removal.video.probing import probe

_TROUBLES = {Trouble.MOVES: FailureCode.MARK_MOVES, Trouble.WIDE: FailureCode.MARK_WIDE}


def prepare(order: StageOrder, progress: Progress) -> StageReport:
    """Whether it can be read, and whether what was said of the mark fits it."""
    clip = probe(order.path(Names.SOURCE)).clip()
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
    """Take off what was chosen, frame by frame; the core decodes what it wrote and holds it against the original."""
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
        accepted = report.check is not None and report.check.held_back
        facts["verdict"] = Verdict.POOR if accepted else Verdict.CLEAN
        return StageReport(facts, keeps=[order.result, Names.SIDES])
    keeps: list[str] = []
    if report.check is not None and report.check.held_back:
        _save_unpaid(order)
        keeps.append(Names.HELD_BACK)
    return StageReport(facts | {"reason": report.reason}, keeps=keeps, refused=_refusal(report))


def package(order: StageOrder, progress: Progress) -> StageReport:
    """Pictures of the result, which the core has checked as it will be handed out."""
    write_preview(order.path(order.result), order.order.output_format, order.path(Names.PREVIEW))
    progress(90)
    _as_jpeg(order.path(Names.SIDES), order.path(Names.COMPARISON))
    return StageReport()


def _as_jpeg(source: str, target: str) -> None:
    with Image.open(source) as opened:
        opened.convert("RGB").save(target, "JPEG", quality=90)


def _save_unpaid(order: StageOrder) -> None:
    """Frames before and after, small and stamped, of an unpaid result."""
    with Image.open(order.path(Names.SIDES)) as opened:
        sides = np.asarray(opened.convert("RGB"))
    half = sides.shape[1] // 2
    rows = np.array_split(sides, COMPARED_FRAMES) if len(sides) % COMPARED_FRAMES == 0 else [sides]
    save_unpaid(order.path(Names.HELD_BACK), [(each[:, :half], each[:, half : 2 * half]) for each in rows])


def _asked(order: StageOrder, **more: Any) -> VideoOrder:
    wanted = order.order
    return VideoOrder(
        order.path(Names.SOURCE),
        mode=Mode(wanted.mode.lower()),
        boxes=tuple(Placed(box, *(hint.seconds or ())) for hint in wanted.hints for box in _boxes(hint)),
        keep=tuple(box for hint in wanted.hints for box in hint.keep),
        drawn=None if wanted.mask_asset_id is None else order.path(Names.MASK),
        quality=Quality(wanted.quality.lower()),
        threads=order.threads,
        accept_poor=wanted.accept_poor,
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
    wanted = order.mode == "MANUAL"
    return [each.id for each in candidates if wanted or each.certain]


def _refusal(report: VideoReport) -> FailureCode:
    if report.outcome is Outcome.NO_MARK:
        return FailureCode.NO_MARK
    if report.outcome is Outcome.NEEDS_REVIEW:
        return FailureCode.NEEDS_REVIEW
    if report.check is not None and not report.check.remains:
        return FailureCode.DAMAGED
    return _TROUBLES[report.trouble] if report.trouble is not None else FailureCode.MARK_REMAINS


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
