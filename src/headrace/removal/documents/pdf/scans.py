"""Marks in the pictures of a scanned document, found by what its pages have in common.

Letters differ from page to page, paper is light, and a mark stays. So what darkens a pixel on nearly all pages is the
mark and hardly anything else. Only pages whose pictures have the same size are compared. A letterhead or the lines of
a form, which are printed on each page, are judged as in other documents.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import cv2
import numpy as np
import pikepdf
from numpy.typing import NDArray

from headrace.removal.documents.pdf.geometry import Matrix, Quad, principal_axis, quad_of
from headrace.removal.documents.pdf.pages import PageFrame
from headrace.removal.documents.pdf.pictures import Unreadable, decoded
from headrace.removal.documents.scoring import Judgement, Traits, judge
from headrace.removal.thresholds import MIN_LISTED_DOCUMENT_SCORE

MIN_VIEWS = 4  # pages needed to find a common mark
_MAX_LIGHTER_RATIO = 0.2  # of the pages: at most this share may be lighter at a pixel, as a cover without the mark is
_MAX_LOOKED_AT_PAGES = 24
_PAGE_SIDE_PX = 900  # longer side of the small picture in which marks are searched
_MIN_DROP_LEVELS, _MAX_DROP_LEVELS = 6.0, 100.0  # below the paper: a mark starts at the first, print at the second
_MIN_HAZE_RATIO, _DARKEST_QUANTILE_RATIO = 0.3, 0.995  # of the drop of the darkest common pixels; their quantile
_MAX_PRINT_SHADE_LEVELS = 8  # dense print darkens smoothed paper by at most this
_SMOOTHING_PX = 3.0
_MIN_PRINT_LEVELS = 25  # print is darker than the brightest pixel nearby by at least this
_MIN_PAPER_RATIO = 0.1  # of the pixels around are free of print: enough to smooth the paper without it
_MAX_STROKE_RATIO = 0.07  # of the longer side: strokes of a mark are thinner
_LID_SHADOW_RATIO = 0.02  # of each side: shadows of the scanner's lid
_MAX_GAP_RATIO = 0.025  # of the longer side: parts at most this far apart are one group
_MIN_AREA_RATIO = 0.0004  # of the picture
_MIN_TILED_GROUPS = 6  # from this many groups on, all are copies of one tiled mark
_MIN_ASPECT_RATIO = 2.5  # length to width: long enough to have an orientation
_MAX_OUTLINE_POINTS = 2000
_MIN_LARGE_RATIO = 0.3  # of the page's diagonal
_MIN_LETTERING_RATIO = 2.5  # outline length to the perimeter of the box: letters have long outlines
_MIN_OUTLINE_RATIO = 0.25  # of the common outline: a page with less does not have the mark, one with boxes has half

Level = NDArray[np.float32]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class ScannedPage:
    number: int
    frame: PageFrame
    picture: tuple[int, int]  # the object
    quad: Quad  # its corners on the page


@dataclass(frozen=True, slots=True)
class ScanMark:
    pages: tuple[ScannedPage, ...]
    verdict: Judgement
    mask: Mask  # its pixels, in a small picture of a page
    copies: int  # on a page

    def quad(self, page: ScannedPage) -> Quad:
        """Where the mark is on a page."""
        (x0, y0), (x1, y1), _, (x3, y3) = page.quad
        matrix: Matrix = (x1 - x0, y1 - y0, x3 - x0, y3 - y0, x0, y0)
        left, top, right, bottom = box_of(self.mask)
        return quad_of(left, 1 - bottom, right, 1 - top, matrix)


def marks_of(pdf: pikepdf.Pdf, pages: list[ScannedPage], total: int, heed: Callable[[], object]) -> Iterator[ScanMark]:
    """What may be a mark in the pictures of these pages. ``heed`` is called before each picture."""
    by_size: dict[tuple[int, int], list[ScannedPage]] = defaultdict(list)
    for page in pages:
        image = pdf.get_object(page.picture)
        try:
            by_size[int(image.Width), int(image.Height)].append(page)
        except (TypeError, ValueError, AttributeError, KeyError):
            continue
    for group in by_size.values():
        if len(group) >= MIN_VIEWS:
            yield from _marks_of_group(pdf, group, total, heed)


def _marks_of_group(
    pdf: pikepdf.Pdf, pages: list[ScannedPage], total: int, heed: Callable[[], object]
) -> Iterator[ScanMark]:
    # Pages that show the same picture count once.
    different = list({page.picture: page for page in pages}.values())
    at = sorted({*np.linspace(0, len(different) - 1, _MAX_LOOKED_AT_PAGES).round().astype(int)})
    looked_at = [different[number] for number in at]
    drops = [drop for page in looked_at if (drop := _drop(pdf, page, heed)) is not None]
    if len(drops) < MIN_VIEWS or len({drop.shape for drop in drops}) > 1:
        return
    common = lightest(drops).astype(np.float32)
    # Dense print leaves a haze, which is fainter than the mark.
    above = common > max(_MIN_DROP_LEVELS, _MIN_HAZE_RATIO * float(np.quantile(common, _DARKEST_QUANTILE_RATIO)))
    groups = _groups(above)
    found = [(above, groups)] if len(groups) >= _MIN_TILED_GROUPS else [(group, [group]) for group in groups]
    for mask, parts in found:
        traits = _traits(common, parts, pages[0], total)
        if judge(replace(traits, pages=len(pages))).score < MIN_LISTED_DOCUMENT_SCORE:
            continue
        having = tuple(page for page in pages if _has(_drop(pdf, page, heed), common, mask))
        verdict = judge(replace(traits, pages=len(having)))
        if len(having) >= max(MIN_VIEWS, len(pages) // 2) and verdict.score >= MIN_LISTED_DOCUMENT_SCORE:
            yield ScanMark(having, verdict, mask, len(parts))


def paper_of(picture: Any) -> Any:
    """The brightness of the paper (8 bits) at each pixel, without its strokes; for grey and colour pictures."""
    height, width = picture.shape[:2]
    share = min(1.0, _PAGE_SIDE_PX / max(height, width))
    size = (max(1, round(width * share)), max(1, round(height * share)))
    small = cv2.resize(picture, size, interpolation=cv2.INTER_AREA)
    side = max(3, round(_MAX_STROKE_RATIO * max(size))) | 1
    around = np.ones((side, side), np.uint8)
    brightest = cv2.morphologyEx(small, cv2.MORPH_CLOSE, around)
    # On grainy paper the brightest pixel is brighter than the paper. So the second round takes a smoothed picture
    # without the print. Where grain is as strong as print, a plain smoothed picture bounds the result.
    light = (cv2.subtract(brightest, small) < _MIN_PRINT_LEVELS).astype(np.float32)
    weight = cv2.GaussianBlur(light, (0, 0), _SMOOTHING_PX)
    smooth = cv2.GaussianBlur(small * light, (0, 0), _SMOOTHING_PX) / np.maximum(weight, 1e-3)
    plain = np.where(weight > _MIN_PAPER_RATIO, np.rint(smooth), small).astype(np.uint8)
    closed = cv2.morphologyEx(plain, cv2.MORPH_CLOSE, around)
    least = cv2.morphologyEx(cv2.GaussianBlur(small, (0, 0), _SMOOTHING_PX), cv2.MORPH_CLOSE, around)
    closed = np.minimum(closed, cv2.add(least, np.full_like(least, _MAX_PRINT_SHADE_LEVELS)))
    return cv2.resize(closed, (width, height)).reshape(picture.shape)


def lightest(drops: list[NDArray[np.int16]]) -> NDArray[np.int16]:
    """How much darker than paper each pixel is on all but a few of the pages."""
    at = int(_MAX_LIGHTER_RATIO * (len(drops) - 1))
    least: NDArray[np.int16] = np.partition(np.stack(drops), at, axis=0)[at]
    return least


def _drop(pdf: pikepdf.Pdf, page: ScannedPage, heed: Callable[[], object]) -> Any:
    """How much darker each pixel of a small picture of the page is than the paper around it."""
    heed()
    try:
        view = np.asarray(decoded(pdf.get_object(page.picture), longest=_PAGE_SIDE_PX).convert("L"))
    except Unreadable:
        return None
    return np.subtract(paper_of(view), view, dtype=np.int16)


def _groups(above: Mask) -> list[Mask]:
    """Connected parts, joined over small gaps, the largest first."""
    height, width = above.shape
    plain = above.copy()
    aside, edge = max(1, round(_LID_SHADOW_RATIO * width)), max(1, round(_LID_SHADOW_RATIO * height))
    plain[:edge], plain[-edge:], plain[:, :aside], plain[:, -aside:] = False, False, False, False
    plain = cv2.morphologyEx(plain.view(np.uint8), cv2.MORPH_OPEN, np.ones((2, 2), np.uint8)).astype(np.bool_)
    side = max(3, round(_MAX_GAP_RATIO * max(height, width))) | 1
    near = cv2.dilate(plain.view(np.uint8), np.ones((side, side), np.uint8))
    count, labels = cv2.connectedComponents(near, connectivity=8)
    masks: list[Mask] = [plain & (labels == number) for number in range(1, min(count, 400))]
    large = [mask for mask in masks if mask.sum() >= _MIN_AREA_RATIO * above.size]
    return sorted(large, key=lambda mask: -int(mask.sum()))


def _traits(drop: Level, groups: list[Mask], page: ScannedPage, total: int) -> Traits:
    """The traits of a mark in a scan, in the terms in which drawings are judged."""
    inside = np.any(groups, axis=0)
    quad = ScanMark((page,), judge(Traits()), inside, len(groups)).quad(page)
    box = (min(x for x, _ in quad), min(y for _, y in quad), max(x for x, _ in quad), max(y for _, y in quad))
    angles = [angle for group in groups if (angle := _angle(group)) is not None]
    return Traits(
        angle=float(np.median(angles)) if angles else 0.0,
        pale=float(np.quantile(drop[inside], 0.9)) < _MAX_DROP_LEVELS,
        span=float(page.frame.span(box)),
        centred=bool(page.frame.is_centred(box)),
        in_margin=bool(page.frame.is_in_margin(box)),
        # A small group may be print: receipts of one shop share a letterhead.
        plain_shape=_is_plain(inside) or (len(groups) < _MIN_TILED_GROUPS and page.frame.span(box) < _MIN_LARGE_RATIO),
        of_pages=total,
        copies_a_page=len(groups),
    )


def _is_plain(inside: Mask) -> bool:
    """A shade, a line, a filled box: without the many edges that letters have."""
    outline = cv2.morphologyEx(inside.view(np.uint8), cv2.MORPH_GRADIENT, np.ones((3, 3), np.uint8))
    rows, columns = np.flatnonzero(inside.any(1)), np.flatnonzero(inside.any(0))
    around = 2 * (rows[-1] - rows[0] + columns[-1] - columns[0] + 2)
    return bool(outline.sum() < _MIN_LETTERING_RATIO * around)


def _angle(group: Mask) -> float | None:
    """Its orientation, if it is clearly longer than wide."""
    ys, xs = np.nonzero(group)
    step = max(1, len(xs) // _MAX_OUTLINE_POINTS)
    points = [(float(x), float(-y)) for x, y in zip(xs[::step], ys[::step], strict=True)]
    degrees, longer = principal_axis(points)
    return degrees if longer >= _MIN_ASPECT_RATIO else None


def _has(drop: Any, common: Level, mask: Mask) -> bool:
    """Whether a page shows the common outline, and not just something dark in the same place."""
    if drop is None or drop.shape != common.shape:
        return False
    near = cv2.dilate(mask.view(np.uint8), np.ones((5, 5), np.uint8)).astype(np.bool_)
    projected = strength = 0.0
    for way in ((1, 0), (0, 1)):
        own, shared = (cv2.Sobel(plane, cv2.CV_32F, *way)[near] for plane in (drop.astype(np.float32), common))
        # Print has stronger edges than a mark: clip them.
        own = np.clip(own, -2 * np.abs(shared), 2 * np.abs(shared))
        projected += float((own * shared).sum())
        strength += float((shared * shared).sum())
    return projected >= _MIN_OUTLINE_RATIO * max(strength, 1.0)


def box_of(mask: Mask) -> tuple[float, float, float, float]:
    """Left, top, right and bottom, as shares of the picture."""
    height, width = mask.shape
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    return (
        float(columns[0] / width), float(rows[0] / height), float((columns[-1] + 1) / width),
        float((rows[-1] + 1) / height),
    )  # fmt: skip
