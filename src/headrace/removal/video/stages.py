"""The stages of one clip."""

from dataclasses import asdict, replace
from typing import Any

import numpy as np
from PIL import Image

from headrace.removal.errors import HintUnusable
from headrace.removal.images.comparison import save_unpaid
from headrace.removal.order import FailureCode, Names, Order, Progress, StageOrder
from headrace.removal.previews import write_preview
from headrace.removal.report import Check, Report, Verdict, of_check, require_known
from headrace.removal.video import attempts, marks_file, previews
from headrace.removal.video.label_texts import with_label_texts
from headrace.removal.video.marks_file import Mark
from headrace.removal.video.previews import MAX_COMPARED_FRAMES
from headrace.removal.video.probing import probe
from headrace.removal.video.survey import Survey, survey


def prepare(order: StageOrder, progress: Progress) -> Report:
    """Whether it can be read, and whether what was said of the mark fits it."""
    clip = probe(order.order.source).clip()
    progress(90)
    for left, top, _, _ in (box for hint in order.order.hints for box in (*hint.boxes, *hint.keep)):
        if left >= clip.width or top >= clip.height:
            raise HintUnusable(f"A box begins at {left}, {top}, outside of {clip.width} x {clip.height} pixels.")
    return Report(asdict(clip))


def detect(order: StageOrder, progress: Progress) -> Report:
    wanted = order.order
    found = order.memory["survey"] = survey(wanted, progress)
    if not order.whole:
        marks_file.save(found.marks, order.path(Names.MARKS))
    candidates = with_label_texts(found.facts, found.samples, tuple(each.candidate for each in found.marks))
    if wanted.overlay is not None:
        previews.overlay(found.facts, found.samples, candidates, wanted.overlay)
    progress(100)
    chosen = _chosen(found.marks, wanted)
    facts = {"frames": found.facts.clip().frames, "chosen": chosen}
    if chosen:
        return Report(facts, candidates, [Names.MARKS])
    return Report(facts, candidates, refused=FailureCode.NEEDS_REVIEW if candidates else FailureCode.NO_MARK)


def inpaint(order: StageOrder, progress: Progress) -> Report:
    """Take off what was chosen, frame by frame; what was written is decoded and held against the original."""
    wanted = order.order
    found: Survey | None = order.memory.pop("survey", None)
    if found is None:
        found = survey(wanted, progress, found=marks_file.load(order.path(Names.MARKS)), percents=(8, 18))
    chosen = [each for each in found.marks if each.candidate.id in order.earlier["chosen"]]
    done = attempts.clean(wanted, found, chosen, progress)
    if isinstance(done, str):
        return Report(refused=attempts.trouble(found, chosen), reason=done)
    check, package = done.check, done.package
    accepted = bool(check.held_back) and wanted.accept_poor
    if accepted:
        check = replace(check, passed=True, reason=None)
    facts: dict[str, Any] = {
        "warnings": list(package.warnings),
        "codec": package.codec,
        "bit_rate": int(8 * package.bytes / max(found.facts.seconds, 0.04)),
        "frames_a_second": round(package.written / max(done.seconds, 1e-3), 1),
        "check": check.figures(),
    }
    sides = wanted.comparison if order.whole else order.path(Names.SIDES)
    if sides is not None and (check.passed or check.held_back):
        previews.compare(found.facts, found.samples, done.written.facts, done.written.samples, sides)
    progress(100)
    if check.passed:
        facts |= {"removed": [each.candidate.id for each in done.chosen], "method": done.method}
        return Report(
            facts | {"verdict": Verdict.POOR if accepted else of_check(check)},
            keeps=[order.result.rpartition("/")[2], Names.SIDES],
        )
    keeps: list[str] = []
    if check.held_back and not order.whole:
        _save_unpaid(order)
        keeps.append(Names.HELD_BACK)
    return Report(facts, keeps=keeps, refused=_refusal(check, found, done.chosen), reason=check.reason)


def package(order: StageOrder, progress: Progress) -> Report:
    """Pictures of the result, which was checked as it will be handed out."""
    if not order.whole:
        write_preview(order.result, str(order.order.output_format), order.path(Names.PREVIEW))
        progress(90)
        with Image.open(order.path(Names.SIDES)) as opened:
            opened.convert("RGB").save(order.path(Names.COMPARISON), "JPEG", quality=90)
    return Report()


def _save_unpaid(order: StageOrder) -> None:
    """Frames before and after, small and stamped, of an unpaid result."""
    with Image.open(order.path(Names.SIDES)) as opened:
        sides = np.asarray(opened.convert("RGB"))
    half = sides.shape[1] // 2
    rows = np.array_split(sides, MAX_COMPARED_FRAMES) if len(sides) % MAX_COMPARED_FRAMES == 0 else [sides]
    save_unpaid(order.path(Names.HELD_BACK), [(each[:, :half], each[:, half : 2 * half]) for each in rows])


def _chosen(found: list[Mark], order: Order) -> list[int]:
    require_known(len(found), order.candidates)
    if order.candidates:
        return sorted(set(order.candidates))
    everything = order.mode == "MANUAL" and order.has_place
    return [each.candidate.id for each in found if everything or each.candidate.certain]


def _refusal(check: Check, found: Survey, chosen: list[Mark]) -> FailureCode:
    return attempts.trouble(found, chosen) if check.remains else FailureCode.DAMAGED
