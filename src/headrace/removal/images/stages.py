"""The stages of one picture."""

import errno
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from headrace.removal.ai_labels import is_ai_label
from headrace.removal.errors import HintUnusable, PictureUnreadable
from headrace.removal.images import formats, reading, shared_stages
from headrace.removal.images.comparison import blended, read_mask, save_crops, save_unpaid
from headrace.removal.images.eye import detecting, detection_file
from headrace.removal.images.eye.hinting import Hints
from headrace.removal.images.eye.model import MAX_FULL_SIZE_PIXELS, Detection, shrunk
from headrace.removal.images.eye.residue import residue
from headrace.removal.images.outline import left_of, seen_on_flat
from headrace.removal.images.restoring import restore
from headrace.removal.images.shared_stages import Mark
from headrace.removal.order import (
    MAX_CANDIDATES,
    FailureCode,
    Names,
    Order,
    Progress,
    StageOrder,
)
from headrace.removal.previews import write_preview
from headrace.removal.report import Box, Candidate, Check, Report, Verdict, of_confidence, require_known
from headrace.removal.thresholds import MAX_OUTLINE_RATIO, MAX_RESIDUE_RATIO, MAX_SEEN_RATIO, MIN_UNTOUCHED_DB

Picture = NDArray[np.uint8]
Mask = NDArray[np.bool_]

MIN_LISTED_SCORE = 0.2  # regions of less are not worth a person's look
LOSSLESS_FORMATS = ("png", "tiff")
MARGIN_PX = 16  # more than the blur of ``residue`` reaches
STRIP_ROWS = 512


def prepare(order: StageOrder, progress: Progress) -> Report:
    """Check that the picture can be processed and that the user's boxes, polygons and mask fit it."""
    picture, original = _read(order)
    progress(60)
    hints_of(order, picture)
    height, width = picture.shape[:2]
    facts = {"width": width, "height": height, "format": original.kind, "losses": original.notes}
    return Report(facts | {"transparency": original.transparency is not None})


def detect(order: StageOrder, progress: Progress) -> Report:
    picture, _ = _read(order)
    report = _detect(order, picture, progress)
    return replace(report, candidates=with_label_texts(picture, report.candidates))


def with_label_texts(picture: Picture, candidates: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
    """The candidates, with the text of those that are labels of AI pictures."""
    if not reading.is_available():
        return candidates
    read = (_label_text(picture, each) for each in candidates)
    return tuple(each if text is None else replace(each, text=text) for each, text in zip_longest(candidates, read))


def _label_text(picture: Picture, candidate: Candidate) -> str | None:
    return next((text for text in reading.read_line(picture, candidate.box) if is_ai_label(text)), None)


def _detect(order: StageOrder, picture: Picture, progress: Progress) -> Report:
    hints = hints_of(order, picture)
    progress(10)
    if order.same_mark:
        shared = shared_stages.detect(order, picture, hints, progress)
        if shared is not None:
            return shared
    detection = detecting.detect(picture, threads=order.order.threads, hints=hints)
    progress(90)
    candidates = candidates_of(detection, order.order.least_score)
    chosen = wanted_of(detection, order.order)
    facts = {"score": round(detection.score, 4), "covered": round(detection.covered, 6), "repeated": detection.repeated}
    code = refused(chosen, order, listed=bool(candidates))
    if chosen.regions:
        detection_file.save(chosen, order.path(Names.DETECTION))
    keeps: list[str] = [] if code else [Names.DETECTION]
    if Path(order.path(Names.MATTE)).exists():  # this picture lacks the mark; others may have it
        keeps.append(Names.MATTE)
    return Report(facts, candidates, keeps, code)


def candidates_of(detection: Detection, least_score: float) -> tuple[Candidate, ...]:
    return tuple(
        Candidate(
            id=number,
            kind="region",
            method="eye",
            score=round(each.score, 4),
            certain=each.score >= least_score,
            box=Box(each.left, each.top, each.width, each.height),
        )
        for number, each in enumerate(detection.regions[:MAX_CANDIDATES], 1)
        if each.score >= MIN_LISTED_SCORE or detection.confirmed
    )


def least_score(order: Order) -> float:
    """Regions of less stay, but for those that the order names."""
    return 0.0 if order.candidates else order.least_score


def inpaint(order: StageOrder, progress: Progress) -> Report:
    picture, _ = _read(order)
    progress(5)
    if _is_shared(order):
        done = shared_stages.inpaint(order, picture)
        progress(95)
        facts: dict[str, Any] = {"confidence": done.confidence, "computed": done.computed, "invented": done.invented}
        return _restored(order, picture, done.picture, facts | {"doubt": done.doubt}, done.refused)
    detection = detection_file.load(order.path(Names.DETECTION))
    wanted = order.order
    # An order that accepts poor results is held back nowhere: one copy less of a picture that may fill half the memory.
    in_place = wanted.accept_poor and wanted.strength == 1
    restoration = restore(
        picture,
        detection,
        high=wanted.quality == "HIGH",
        # A second look may see other candidates than the order names.
        hints=None if wanted.candidates else hints_of(order, picture),
        looks_twice=not wanted.candidates,
        least_score=least_score(wanted),
        in_place=in_place,
        variant=wanted.variant is not None,
        threads=wanted.threads,
    )
    if wanted.strength != 1 and restoration.refused is None:
        restoration = replace(restoration, picture=blended(picture, restoration.picture, wanted.strength))
    if restoration.variant is not None:
        order.memory["variant"] = restoration.variant
    progress(95)
    facts = {
        "confidence": restoration.confidence,
        "computed": restoration.inverted,
        "invented": restoration.filled,
    }
    if restoration.refused is not None:
        code = FailureCode.NEEDS_REVIEW if restoration.needs_review else FailureCode.MARK_REMAINS
        return Report(facts, refused=code, reason=restoration.refused)
    return _restored(order, picture, restoration.picture, facts)


def _is_shared(order: StageOrder) -> bool:
    return bool(order.earlier.get("shared"))


def _restored(
    order: StageOrder, picture: Picture, restored: Picture, facts: dict[str, Any], doubt: str | None = None
) -> Report:
    facts["verdict"] = of_confidence(facts["confidence"])
    if facts["verdict"] is Verdict.POOR and not order.order.accept_poor:
        return held_back(order, FailureCode.POOR_RESULT, facts, picture, restored, doubt)
    # Quickly packed: it is read once more, and gone in a day.
    quickly = [cv2.IMWRITE_PNG_COMPRESSION, 1]
    if not cv2.imwrite(order.path(Names.RESTORED), cv2.cvtColor(restored, cv2.COLOR_RGB2BGR), quickly):
        raise OSError(errno.ENOSPC, "No space left for the picture")  # OpenCV does not say why
    return Report(facts, keeps=[Names.RESTORED])


def held_back(
    order: StageOrder,
    code: FailureCode,
    facts: dict[str, Any],
    before: Picture,
    after: Picture,
    reason: str | None = None,
) -> Report:
    """A result that is not handed out: its owner sees a small picture of it before accepting and paying for it."""
    save_unpaid(order.path(Names.HELD_BACK), [(before, after)])
    return Report(facts, keeps=[Names.HELD_BACK], refused=code, reason=reason)


def package(order: StageOrder, progress: Progress) -> Report:
    picture, original = _read(order)
    mark = mark_of(order)
    restored = _plain(order.path(Names.RESTORED))
    changed = changed_pixels(picture, restored)
    target = order.result
    formats.write(restored, original, target, formats.kind_of_result(target, original))
    del restored  # pictures may fill half the memory
    progress(40)
    written, _ = formats.read(target)
    checked = check(picture, changed, written, mark, order.order.output_format)
    if not checked.untouched and formats.write_lossless(_plain(order.path(Names.RESTORED)), original, target):
        # Packed with losses, a detailed picture differs everywhere.
        written, _ = formats.read(target)
        checked = check(picture, changed, written, mark, order.order.output_format)
    progress(70)
    report = checked_report(order, checked, picture, written, changed)
    return replace(report, facts=report.facts | {"warnings": original.notes})


def checked_report(order: StageOrder, checked: Check, before: Picture, after: Picture, changed: Mask) -> Report:
    """The end of an order whose result was written: held back, or handed out with pictures of it."""
    facts = {"check": checked.figures()}
    remains = not checked.passed
    if remains and not order.order.accept_poor:
        if checked.untouched:
            return held_back(order, FailureCode.MARK_REMAINS, facts, before, after)
        return Report(facts, refused=FailureCode.MARK_REMAINS)
    if not checked.untouched:
        return Report(facts, refused=FailureCode.DAMAGED)
    if not order.whole:
        write_preview(order.result, str(order.order.output_format), order.path(Names.PREVIEW))
        save_crops(order.path(Names.COMPARISON), before, after, changed)
    return Report(facts | {"verdict": Verdict.POOR} if remains else facts)


def mark_of(order: StageOrder) -> Mark:
    if _is_shared(order):
        return shared_stages.mark(order)
    detection = detection_file.load(order.path(Names.DETECTION)).at_least(least_score(order.order))
    if detection.step > 1 and detection.height * detection.width > MAX_FULL_SIZE_PIXELS:
        # At full size these planes take six times the room of the picture.
        seen = detection.as_seen
        return Mark(seen.tight, seen.loose, seen.alpha, seen.tint.astype(np.float32), detection.step)
    alpha = detection.alpha
    return Mark(detection.mask_tight, detection.mask_loose, alpha, detection.colour * alpha[..., None])


def changed_pixels(picture: Picture, restored: Picture) -> Mask:
    changed = np.empty(picture.shape[:2], np.bool_)
    for top in range(0, len(picture), STRIP_ROWS):
        strip = np.s_[top : top + STRIP_ROWS]
        changed[strip] = (restored[strip] != picture[strip]).any(2)
    return changed


def check(picture: Picture, changed: Mask, written: Picture, mark: Mark, kind: str | None) -> Check:
    """The written file, compared with the original: whether the mark is gone, and the rest untouched."""
    if written.shape != picture.shape:
        return Check(False, None, 1.0, 1.0, outline_left=1.0, seen_on_flat=1.0, untouched=False)
    error = _mean_square(picture, written, ~changed)
    if mark.step > 1:
        picture, written = shrunk(picture, mark.step), shrunk(written, mark.step)
    before, after = _residues(mark.tight, picture, written)
    left = left_of(picture, written, mark.alpha, mark.tint, mark.loose)
    decibels = None if error == 0 else round(10 * float(np.log10(255**2 / error)), 2)
    untouched = decibels is None or (kind not in LOSSLESS_FORMATS and decibels >= MIN_UNTOUCHED_DB)
    return with_verdict(
        Check(
            passed=True,
            reason=None,
            residue_before=1.0,
            residue_after=round(after / before, 4) if before > 0 else 0.0,
            outline_left=round(left, 4),
            seen_on_flat=round(seen_on_flat(written, mark.tight, mark.loose), 4),
            changed_area=round(float(changed.mean()), 6),
            untouched_db=decibels,
            untouched=untouched,
        )
    )


def with_verdict(checked: Check) -> Check:
    """The check passed unless some of the mark remains."""
    remains = (
        checked.residue_after > MAX_RESIDUE_RATIO
        or abs(checked.outline_left or 0.0) > MAX_OUTLINE_RATIO
        or (checked.seen_on_flat or 0.0) > MAX_SEEN_RATIO
    )
    return replace(checked, passed=not remains)


def _residues(tight: Mask, *pictures: Picture) -> list[float]:
    """The outline of the mark in each picture, by the part around it: as floats the whole takes four times the room."""
    rows, columns = np.flatnonzero(tight.any(1)), np.flatnonzero(tight.any(0))
    if not len(rows):
        return [0.0 for _ in pictures]
    here = np.s_[
        max(0, int(rows[0]) - MARGIN_PX) : int(rows[-1]) + MARGIN_PX,
        max(0, int(columns[0]) - MARGIN_PX) : int(columns[-1]) + MARGIN_PX,
    ]
    return [residue(picture[here].astype(np.float32), np.ascontiguousarray(tight[here])) for picture in pictures]


def _mean_square(picture: Picture, written: Picture, inside: Mask) -> float:
    """Of the differences, strip by strip: a picture may fill half the memory."""
    total, count = 0.0, 0
    for top in range(0, len(picture), STRIP_ROWS):
        strip = np.s_[top : top + STRIP_ROWS]
        errors = written[strip][inside[strip]].astype(np.float32) - picture[strip][inside[strip]]
        total += float((errors.astype(np.float64) ** 2).sum())
        count += errors.size
    return total / count if count else 0.0


def _read(order: StageOrder) -> tuple[Picture, formats.Original]:
    source = order.order.source
    if order.order.format == "heic":
        from headrace.assets.heif import plugin

        plugin.register()
    Image.MAX_IMAGE_PIXELS = None  # what it declares was checked when it was uploaded
    try:
        return formats.read(source)
    except formats.NotCleanable as exc:
        raise PictureUnreadable(str(exc)) from exc
    except (Image.DecompressionBombError, *formats.BROKEN) as exc:
        raise PictureUnreadable(f"The file is not a picture that can be read: {exc}") from exc


def _plain(path: str) -> Picture:
    picture = cv2.imread(path, cv2.IMREAD_COLOR)
    if picture is None:
        raise OSError(f"{path} cannot be read")
    return cv2.cvtColor(picture, cv2.COLOR_BGR2RGB).astype(np.uint8, copy=False)


def hints_of(order: StageOrder, picture: Picture) -> Hints | None:
    wanted = order.order
    boxes = tuple(box for hint in wanted.hints for box in hint.boxes)
    polygons = tuple(tuple(corners) for hint in wanted.hints for corners in hint.polygons)
    keep = wanted.keep
    height, width = picture.shape[:2]
    for left, top, _, _ in (*boxes, *keep):
        if left >= width or top >= height:
            raise HintUnusable(f"A box begins at {left}, {top}, outside the picture of {width} x {height} pixels.")
    if any(x > width or y > height for corners in polygons for x, y in corners):
        raise HintUnusable(f"A polygon has a corner outside the picture of {width} x {height} pixels.")
    mask = None
    if wanted.mask is not None:
        try:
            mask = read_mask(wanted.mask)
        except formats.BROKEN as exc:
            raise HintUnusable(f"The mask is not a picture that can be read: {exc}") from exc
        if mask.shape != (height, width):
            raise HintUnusable(
                f"The mask has {mask.shape[1]} x {mask.shape[0]} pixels, the picture {width} x {height}."
            )
    if not (boxes or polygons or keep or mask is not None):
        return None
    return Hints(boxes=boxes, keep=keep, mask=mask, polygons=polygons)


def wanted_of(detection: Detection, order: Order) -> Detection:
    if not order.candidates:
        return detection
    require_known(min(len(detection.regions), MAX_CANDIDATES), order.candidates)
    return detection.only(order.candidates)


def refused(detection: Detection, order: StageOrder, *, listed: bool) -> FailureCode | None:
    """What AUTO does not do without asking."""
    if not detection.regions or not listed:
        return FailureCode.NO_MARK
    if order.order.candidates:
        return None
    least = order.order.least_score
    if detection.score < least or all(each.score < least for each in detection.regions):
        return FailureCode.NEEDS_REVIEW
    return FailureCode.NEEDS_REVIEW if detection.widespread and not detection.confirmed else None
