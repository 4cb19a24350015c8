"""Takes a mark out of the pictures of a scan: marked = (1 - alpha) page + alpha colour, solved for the page.

Over the pages the paper under the mark is known, and so is what the mark makes of it. How strong it is, the print tells
that lies under it: black is as much nearer to the mark's colour as paper is.
"""

from collections.abc import Callable
from dataclasses import dataclass

import cv2
import numpy as np
import pikepdf
from numpy.typing import NDArray
from PIL import Image

from headrace.removal.documents.pdf.pictures import Unreadable, decoded, put
from headrace.removal.documents.pdf.scans import MIN_VIEWS, ScanMark, ScannedPage, box_of, lightest, paper_of

_MAX_VIEWS = 16
_MAX_VIEW_BYTES = 300_000_000  # of views that are held at once, each with its paper
_STRIP_ROWS = 64  # at a time: a quantile needs all views of them at once
_MIN_DROP_LEVELS = 3.0  # levels: what is less is the grain of the paper
_MIN_DROP_RATIO = 0.2  # of what the mark drops: less is grain
# Levels by which what pages have in common strays; and how often it is smoothed then
_MAX_GRAIN_LEVELS = 2.0
_SMOOTHING_COUNT = 3
_GRAIN_QUANTILE_RATIO, _MIN_GRAIN_RATIO = 0.95, 2.0  # what grain seldom exceeds, and by how much a mark must
_BOX_MARGIN_RATIO = 0.02  # of the picture: room around the mark's box
_MAX_REACH_RATIO = 0.006  # of the picture: how far from what the small picture shows a mark may be
_PRINT_RATIO = 0.02  # the share of pixels that is taken for print, where there is print
_MIN_PRINT_LEVELS = 80.0  # levels below the paper: print
_MAX_ALPHA = 0.9
_MAX_COVERED_RATIO = 0.5  # of its box: more is a shade of the paper

Plane = NDArray[np.float32]
Pixels = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Matte:
    """The mark in its box of the picture."""

    left: int
    top: int
    alpha: Plane  # H W 1
    tint: Plane  # H W C: alpha times colour, in levels
    inside: NDArray[np.bool_]  # H W


def learnt(pdf: pikepdf.Pdf, mark: ScanMark, heed: Callable[[], object]) -> Matte | None:
    """What the mark is made of, by as many pages as can be held; None if too few can be read."""
    first = pdf.get_object(mark.pages[0].picture)
    width, height = int(first.Width), int(first.Height)
    box = _box(mark, width, height)
    views = _views(pdf, mark, box, heed)
    if len(views) < MIN_VIEWS or len({view.shape for view in views}) > 1:
        return None
    papers = [paper_of(view) for view in views]
    drop, paper = _common(views, papers)
    found = cv2.resize(mark.mask.view(np.uint8), (width, height))[box[1] : box[3], box[0] : box[2]]
    reach = max(3, round(_MAX_REACH_RATIO * max(width, height))) | 1
    drop, grain = _without_grain(drop, cv2.dilate(found, np.ones((2 * reach + 1,) * 2, np.uint8)) > 0)
    strongest = drop.max(2) * (cv2.dilate(found, np.ones((reach, reach), np.uint8)) > 0)
    typical = float(np.median(strongest[found > 0])) if (found > 0).any() else 0.0
    if typical < _MIN_GRAIN_RATIO * grain:
        return None  # the grain of the paper would be taken for the mark, and printed onto every page
    seen = strongest > max(_MIN_DROP_LEVELS, _MIN_DROP_RATIO * typical)
    if seen.mean() > _MAX_COVERED_RATIO:
        return None
    inside = cv2.dilate(seen.view(np.uint8), np.ones((3, 3), np.uint8)).astype(np.bool_)
    # Along its edge the mark covers a part of a pixel: as much as it drops there, beside what it drops nearby.
    whole = cv2.blur(cv2.dilate(strongest, np.ones((9, 9), np.uint8)), (9, 9))
    covers = np.clip(strongest / np.maximum(whole, _MIN_DROP_LEVELS), 0, 1)
    alpha = (_strength(views, papers, inside & (covers > 0.8), drop) * covers)[..., None].astype(np.float32)
    return Matte(box[0], box[1], alpha, (alpha * paper - drop).astype(np.float32), inside)


def _box(mark: ScanMark, width: int, height: int) -> tuple[int, int, int, int]:
    left, top, right, bottom = box_of(mark.mask)
    return (
        max(0, round((left - _BOX_MARGIN_RATIO) * width)), max(0, round((top - _BOX_MARGIN_RATIO) * height)),
        min(width, round((right + _BOX_MARGIN_RATIO) * width)),
        min(height, round((bottom + _BOX_MARGIN_RATIO) * height)),
    )  # fmt: skip


def clean(pdf: pikepdf.Pdf, page: ScannedPage, matte: Matte) -> bool:
    """Take the mark out of one page's picture; False if that cannot be written back."""
    image = pdf.get_object(page.picture)
    try:
        opened = decoded(image)
        pixels = np.array(opened)
        flat = pixels.reshape(*pixels.shape[:2], -1)
        height, width = matte.inside.shape
        part = flat[matte.top : matte.top + height, matte.left : matte.left + width]
        solved = (part.astype(np.float32) - matte.tint) / np.maximum(1 - matte.alpha, 1 - _MAX_ALPHA)
        part[matte.inside] = np.clip(np.rint(solved[matte.inside]), 0, 255).astype(np.uint8)
        put(image, Image.fromarray(pixels))
    except (Unreadable, ValueError):
        return False
    return True


def _views(
    pdf: pikepdf.Pdf, mark: ScanMark, box: tuple[int, int, int, int], heed: Callable[[], object]
) -> list[Pixels]:
    size = 3 * (box[2] - box[0]) * (box[3] - box[1])
    most = max(MIN_VIEWS, min(_MAX_VIEWS, _MAX_VIEW_BYTES // max(size, 1)))
    views = []
    for at in sorted({*np.linspace(0, len(mark.pages) - 1, most).round().astype(int)}):
        heed()
        try:
            view = np.asarray(decoded(pdf.get_object(mark.pages[at].picture)).crop(box))
        except Unreadable:
            continue
        views.append(view.reshape(*view.shape[:2], -1))
    return views


def _common(views: list[Pixels], papers: list[Pixels]) -> tuple[Plane, Plane]:
    """How much darker than the paper the mark makes each pixel, and the paper's level there, over all views."""
    drop, paper = np.empty(views[0].shape, np.float32), np.empty(views[0].shape, np.float32)
    for top in range(0, len(drop), _STRIP_ROWS):
        rows = slice(top, top + _STRIP_ROWS)
        pairs = zip(views, papers, strict=True)
        drop[rows] = lightest([np.subtract(page[rows], view[rows], dtype=np.int16) for view, page in pairs])
        paper[rows] = np.mean([page[rows] for page in papers], axis=0)
    return drop, paper


def _without_grain(drop: Plane, near: NDArray[np.bool_]) -> tuple[Plane, float]:
    """What the mark drops, and how much is left of the paper's grain in that: of few views, grain leaves a pattern of
    its own in what they have in common. What there is of it, what lies beside the mark tells."""
    beside = drop[~near]
    if len(beside) == 0:
        return np.maximum(drop, 0), 0.0
    usual = np.median(beside, axis=0)
    grain = float(np.median(np.abs(beside - usual)))
    if grain < _MAX_GRAIN_LEVELS:
        return np.maximum(drop, 0), 0.0
    smooth: Plane = drop - usual.astype(np.float32)
    for _ in range(_SMOOTHING_COUNT):
        smooth = np.asarray(cv2.medianBlur(smooth, 5), np.float32).reshape(drop.shape)
    return np.maximum(smooth, 0), float(np.quantile(np.abs(smooth[~near]), _GRAIN_QUANTILE_RATIO))


def _strength(views: list[Pixels], papers: list[Pixels], core: NDArray[np.bool_], drop: Plane) -> float:
    """How much of the page the mark hides where it covers wholly: print under it is paler than print beside it."""
    beside = ~cv2.dilate(core.view(np.uint8), np.ones((15, 15), np.uint8)).astype(np.bool_)
    if not core.any() or not beside.any():
        return 0.0
    pairs = list(zip(views, papers, strict=True))
    under = _darkest([np.subtract(page[core], view[core], dtype=np.float32) - drop[core] for view, page in pairs])
    plain = _darkest([np.subtract(page[beside], view[beside], dtype=np.float32) for view, page in pairs])
    if under < _MIN_PRINT_LEVELS / 2 or plain < _MIN_PRINT_LEVELS:
        # No print tells: as if the mark were black, which darkens what lies under it as it darkens the paper.
        level = float(np.median([np.median(page[core]) for page in papers]))
        return float(np.clip(np.median(drop[core]) / max(level, 1.0), 0.0, _MAX_ALPHA))
    return float(np.clip(1 - under / plain, 0.0, _MAX_ALPHA))


def _darkest(depths: list[Plane]) -> float:
    """How far print is below the paper."""
    return float(np.quantile(np.concatenate([depth.mean(1) for depth in depths]), 1 - _PRINT_RATIO))
