"""The stages of one picture."""

from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from headrace.removal import formats
from headrace.removal.comparison import read_mask, save_crops
from headrace.removal.errors import CandidateUnknown, HintUnusable, PictureUnreadable
from headrace.removal.eye import keeping
from headrace.removal.eye.checking import residue
from headrace.removal.eye.hinting import Hints
from headrace.removal.eye.looking import look
from headrace.removal.eye.model import LEAST_SCORE, Sight
from headrace.removal.eye.solving import solve
from headrace.removal.pipeline.model import (
    MOST_CANDIDATES,
    FailureCode,
    Names,
    RemovalOrder,
    StageOrder,
    StageReport,
)
from headrace.removal.pipeline.previewing import write_preview

Picture = NDArray[np.uint8]
Progress = Callable[[int], object]

LISTED_SCORE = 0.2  # regions of less are not worth a person's look
_GONE = 0.95  # of the mark's outline: a result that keeps more of it still shows the mark
_UNTOUCHED_DB = 38.0  # outside the mark, of formats that lose something
_LOSSLESS = ("png", "tiff")


def prepare(order: StageOrder, progress: Progress) -> StageReport:
    """Whether it can be worked on, and whether what was said of the mark fits it."""
    picture, original = _read(order)
    progress(60)
    _hints(order, picture)
    height, width = picture.shape[:2]
    facts = {"width": width, "height": height, "format": original.kind, "losses": original.notes}
    return StageReport(facts | {"transparency": original.transparency is not None})


def detect(order: StageOrder, progress: Progress) -> StageReport:
    picture, _ = _read(order)
    progress(10)
    sight = look(picture, threads=order.threads, hints=_hints(order, picture))
    progress(90)
    candidates = [
        {"id": number, "kind": "region", "method": "eye", "score": round(each.score, 4), "pages": [], "text": None,
         "box": [each.left, each.top, each.width, each.height], "certain": each.score >= LEAST_SCORE}
        for number, each in enumerate(sight.regions[:MOST_CANDIDATES], 1)
        if each.score >= LISTED_SCORE or sight.confirmed
    ]  # fmt: skip
    chosen = _chosen(sight, order.order)
    facts = {"score": round(sight.score, 4), "covered": round(sight.covered, 6), "repeated": sight.repeated}
    refused = _refused(chosen, order.order, listed=bool(candidates))
    if refused is None:
        keeping.save(chosen, order.path(Names.SIGHT))
    return StageReport(facts, candidates, [] if refused else [Names.SIGHT], refused)


def inpaint(order: StageOrder, progress: Progress) -> StageReport:
    picture, _ = _read(order)
    sight = keeping.load(order.path(Names.SIGHT))
    progress(5)
    least = 0.0 if order.order.candidates else LEAST_SCORE
    restoration = solve(picture, sight, least_score=least, threads=order.threads)
    progress(95)
    facts = {
        "confidence": restoration.confidence,
        "computed": restoration.inverted,
        "invented": restoration.filled,
        "reason": restoration.refused,
    }
    if restoration.refused is not None:
        code = FailureCode.NEEDS_REVIEW if restoration.needs_review else FailureCode.MARK_REMAINS
        return StageReport(facts, refused=code)
    if restoration.poor and not order.order.accept_poor:
        return StageReport(facts, refused=FailureCode.POOR_RESULT)
    # Quickly packed: it is read once more, and gone in a day.
    cv2.imwrite(
        order.path(Names.RESTORED),
        cv2.cvtColor(restoration.picture, cv2.COLOR_RGB2BGR),
        [cv2.IMWRITE_PNG_COMPRESSION, 1],
    )
    return StageReport(facts, keeps=[Names.RESTORED])


def package(order: StageOrder, progress: Progress) -> StageReport:
    picture, original = _read(order)
    sight = keeping.load(order.path(Names.SIGHT))
    restored = _plain(order.path(Names.RESTORED))
    target = order.path(order.result)
    formats.write(restored, original, target, formats.kind_of_result(target, original))
    progress(40)
    written, _ = formats.read(target)
    facts = _checked(picture, restored, written, sight, order.order.output_format)
    progress(70)
    if facts["residue_after"] > _GONE and not order.order.accept_poor:
        return StageReport(facts, refused=FailureCode.MARK_REMAINS)
    if not facts["untouched"]:
        return StageReport(facts, refused=FailureCode.DAMAGED)
    write_preview(target, order.order.output_format, order.path(Names.PREVIEW))
    save_crops(order.path(Names.COMPARISON), picture, written, sight.mask_loose)
    return StageReport(facts | {"warnings": original.notes})


def _checked(picture: Picture, restored: Picture, written: Picture, sight: Sight, kind: str) -> dict[str, Any]:
    """The file as it will be handed out, held against the original: is the mark gone, is the rest untouched?"""
    if written.shape != picture.shape:
        return {"residue_before": 1.0, "residue_after": 1.0, "untouched": False}
    tight = sight.mask_tight
    before, after = (residue(each.astype(np.float32), tight) for each in (picture, written))
    changed = (restored != picture).any(2)
    outside = ~changed
    error = float(np.mean((written[outside].astype(np.float32) - picture[outside]) ** 2)) if outside.any() else 0.0
    decibels = None if error == 0 else round(10 * float(np.log10(255**2 / error)), 2)
    untouched = decibels is None or (kind not in _LOSSLESS and decibels >= _UNTOUCHED_DB)
    return {
        "residue_before": 1.0,
        "residue_after": round(after / before, 4) if before > 0 else 0.0,
        "changed_area": round(float(changed.mean()), 6),
        "untouched_db": decibels,  # None: every pixel is as it was
        "untouched": untouched,
    }


def _read(order: StageOrder) -> tuple[Picture, formats.Original]:
    source = order.path(Names.SOURCE)
    if order.order.format == "heic":
        import pi_heif

        pi_heif.register_heif_opener()
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


def _hints(order: StageOrder, picture: Picture) -> Hints | None:
    told = order.order
    boxes = tuple(box for hint in told.hints for box in hint.boxes)
    polygons = tuple(tuple(corners) for hint in told.hints for corners in hint.polygons)
    keep = tuple(box for hint in told.hints for box in hint.keep)
    height, width = picture.shape[:2]
    for left, top, _, _ in (*boxes, *keep):
        if left >= width or top >= height:
            raise HintUnusable(f"A box begins at {left}, {top}, outside the picture of {width} x {height} pixels.")
    if any(x > width or y > height for corners in polygons for x, y in corners):
        raise HintUnusable(f"A polygon has a corner outside the picture of {width} x {height} pixels.")
    mask = None
    if told.mask_asset_id is not None:
        try:
            mask = read_mask(order.path(Names.MASK))
        except (OSError, ValueError, SyntaxError) as exc:
            raise HintUnusable(f"The mask is not a picture that can be read: {exc}") from exc
        if mask.shape != (height, width):
            raise HintUnusable(
                f"The mask has {mask.shape[1]} x {mask.shape[0]} pixels, the picture {width} x {height}."
            )
    if not (boxes or polygons or keep or mask is not None):
        return None
    return Hints(boxes=boxes, keep=keep, mask=mask, polygons=polygons)


def _chosen(sight: Sight, order: RemovalOrder) -> Sight:
    if not order.candidates:
        return sight
    if max(order.candidates) > min(len(sight.regions), MOST_CANDIDATES):
        raise CandidateUnknown(f"There is no candidate {max(order.candidates)}: there are {len(sight.regions)}.")
    return sight.only(order.candidates)


def _refused(sight: Sight, order: RemovalOrder, *, listed: bool) -> FailureCode | None:
    """What AUTO does not do without asking."""
    if not sight.regions or not listed:
        return FailureCode.NO_MARK
    if order.candidates:
        return None
    if sight.score < LEAST_SCORE or all(each.score < LEAST_SCORE for each in sight.regions):
        return FailureCode.NEEDS_REVIEW
    return FailureCode.NEEDS_REVIEW if sight.widespread and not sight.confirmed else None
