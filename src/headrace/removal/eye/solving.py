"""Solving for what lies under a mark: computed where it shines through, filled in where it does not."""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from headrace.removal.eye.filling import fill
from headrace.removal.eye.model import Mask, Picture, Plane, Restoration, Sight

# Blocks of this side are solved one by one, each with a margin that is only looked at.
_BLOCK, _MARGIN = 1024, 48
# Beyond this nothing of the picture is left to compute with.
_OPAQUE = 0.93
# Strokes this near share one colour and one alpha.
_NEAR = 9
# How far alpha may be off, as factors that are tried.
_FACTORS = np.linspace(0.8, 1.2, 9)
# A result whose edges along the mark stand out more than this, beside the marked picture's, is worse than none.
_RESIDUE = 0.9


@dataclass(frozen=True, slots=True)
class _Block:
    """A part of the picture with what was seen in it."""

    picture: Plane  # in levels
    alpha: Plane
    tint: Plane  # colour times alpha, in levels
    doubt: Plane  # in levels
    tight: Mask
    loose: Mask


def solve(picture: Picture, sight: Sight, *, least_score: float = 0.5, in_place: bool = False) -> Restoration:
    """The picture without the mark that was seen in it.

    Never changes a pixel outside the sight's loose mask. Refuses, with a reason, where no mark was seen, where it is
    less certain than ``least_score``, and where the result still shows it. ``in_place`` writes into ``picture``, for
    pictures that fill half the memory.
    """
    if picture.shape != (sight.height, sight.width, 3):
        raise ValueError("the sight belongs to another picture")
    if not sight.regions:
        return Restoration(picture, 0.0, 0, 0, refused="No mark was seen.")
    if sight.score < least_score:
        return Restoration(picture, 0.0, 0, 0, refused=f"The mark is too doubtful: score {sight.score:.2f}.")
    result = picture if in_place else picture.copy()
    computed = invented = 0
    before = after = doubt = 0.0
    for top in range(0, sight.height, _BLOCK):
        for left in range(0, sight.width, _BLOCK):
            outer = (max(0, top - _MARGIN), top + _BLOCK + _MARGIN, max(0, left - _MARGIN), left + _BLOCK + _MARGIN)
            block = _cut(picture, sight, outer)
            if block is None:
                continue
            fresh, hole = _solved(block)
            was, now = _residue(block.picture, block), _residue(fresh, block)
            if now > _RESIDUE * was:
                before, after = before + was, after + was
                continue  # the block keeps its mark rather than getting a ghost
            before, after = before + was, after + now
            inner = np.s_[top - outer[0] : top - outer[0] + _BLOCK, left - outer[2] : left - outer[2] + _BLOCK]
            inside = block.loose[inner]
            levels = np.clip(np.rint(fresh[inner][inside]), 0, 255).astype(np.uint8)
            result[top : top + _BLOCK, left : left + _BLOCK][inside] = levels
            computed += int((inside & ~hole[inner]).sum())
            invented += int((inside & hole[inner]).sum())
            doubt += float(block.doubt[inner][inside].sum())
    if computed + invented == 0:
        return Restoration(picture, 0.0, 0, 0, refused="The mark could not be taken off without leaving a trace.")
    gone = 1 - after / before if before > 0 else 1.0
    certain = 1 - min(1.0, doubt / (computed + invented) / 60)
    return Restoration(result, round(float(np.clip(gone * certain * sight.score, 0, 1)), 4), computed, invented)


def _cut(picture: Picture, sight: Sight, box: tuple[int, int, int, int]) -> _Block | None:
    top, bottom, left, right = box
    bottom, right = min(bottom, sight.height), min(right, sight.width)
    step = sight.step
    rows, columns = slice(top // step, -(-bottom // step)), slice(left // step, -(-right // step))
    if not sight.loose[rows, columns].any():
        return None
    shape = (bottom - top, right - left)

    def plane(values: NDArray[np.uint8], smooth: int) -> NDArray[np.uint8]:
        part = values[rows, columns]
        if step == 1:
            return part
        large = cv2.resize(part, None, fx=step, fy=step, interpolation=smooth)
        return large[top % step :, left % step :][: shape[0], : shape[1]]  # type: ignore[return-value]

    tight, loose = (plane(m.view(np.uint8), cv2.INTER_NEAREST).astype(np.bool_) for m in (sight.tight, sight.loose))
    return _Block(
        picture[top:bottom, left:right].astype(np.float32),
        plane(sight.strength, cv2.INTER_LINEAR) * np.float32(1 / 255),
        plane(sight.tint, cv2.INTER_LINEAR).astype(np.float32),
        plane(sight.doubt, cv2.INTER_LINEAR).astype(np.float32),
        tight,
        loose,
    )


def _solved(block: _Block) -> tuple[Plane, Mask]:
    """The block without its mark, and which of its pixels were invented rather than computed."""
    membrane = fill(block.picture, block.loose)
    at = np.nonzero(block.loose)
    marked, smooth = block.picture[at], membrane[at]
    alpha, tint = _refined(block, at, marked, smooth)
    through = np.maximum(1 - alpha, 1 - _OPAQUE)[:, None]
    computed = (marked - tint) / through
    # Two estimates with errors of their own: the better one counts more, and both together are better than either.
    impossible = np.maximum(np.maximum(-computed, computed - 255), 0).mean(1)
    # At the rim of what is nearly opaque the network trusts itself too much.
    strong = cv2.dilate(block.alpha, np.ones((7, 7), np.uint8))[at]
    caution = 0.8 + 4 * np.clip((strong - 0.6) / 0.25, 0, 1)
    wrong = (caution * block.doubt[at] + 2 * impossible + 0.5) ** 2
    rough = _roughness(block)[at] ** 2 + 4
    invented = wrong / (wrong + rough)
    invented = np.where(alpha > _OPAQUE, 1, invented)[:, None].astype(np.float32)
    result = block.picture.copy()
    result[at] = np.clip(computed, 0, 255) * (1 - invented) + smooth * invented
    hole = np.zeros(block.loose.shape, np.bool_)
    hole[at] = invented[:, 0] > 0.5
    return result, hole


def _refined(block: _Block, at: tuple[NDArray[np.intp], ...], marked: Plane, smooth: Plane) -> tuple[Plane, Plane]:
    """Alpha and colour, corrected for each mark by a factor and a shift so that its result meets its surroundings.

    The network's alpha is a few hundredths off for a whole mark at a time; that leaves ghosts. Near the rim the
    membrane is a fair guess at what must come out, so the factor that brings the result nearest to it is taken.
    """
    alpha, tint = block.alpha[at], block.tint[at]
    near = cv2.dilate(block.loose.view(np.uint8), np.ones((_NEAR, _NEAR), np.uint8))
    count, labels = cv2.connectedComponents(near, ltype=cv2.CV_32S)
    label = labels[at]
    solvable = (alpha > 0.04) & (alpha < 0.85)
    weight = solvable / (1.0 + block.doubt[at])
    best = np.full(count, np.inf)
    factor, shift = np.ones(count), np.zeros((count, 3))
    norm = np.bincount(label, weight, count) + 1e-6
    for tried in _FACTORS:
        a = np.minimum(alpha * tried, 0.97)
        lever = a / (1 - a)
        off = (marked - tint * tried) / (1 - a)[:, None] - smooth
        pull = np.bincount(label, weight * lever * lever, count) + 1e-3 * norm + 1e-6
        delta = np.stack([np.bincount(label, weight * lever * off[:, c], count) / pull for c in range(3)], 1)
        delta = np.clip(delta, -20, 20) * 0.7
        left = np.abs(off - lever[:, None] * delta[label]).mean(1)
        cost = np.bincount(label, weight * left, count) / norm + 6 * abs(tried - 1)
        better = cost < best
        best, factor = np.where(better, cost, best), np.where(better, tried, factor)
        shift = np.where(better[:, None], delta, shift)
    changed = np.minimum(alpha * factor[label], 0.99).astype(np.float32)
    colour = tint * factor[label][:, None] + changed[:, None] * shift[label]
    return changed, colour.astype(np.float32)


def _roughness(block: _Block) -> Plane:
    """How far the picture around each pixel strays from a smooth one: what filling in would miss."""
    grey = block.picture.mean(2)
    outside = (~block.loose).astype(np.float32)
    size = (31, 31)
    share = cv2.blur(outside, size) + 1e-3
    mean = cv2.blur(grey * outside, size) / share
    square = cv2.blur(grey * grey * outside, size) / share
    rough: Plane = np.sqrt(np.maximum(square - mean * mean, 0)).astype(np.float32)
    return rough


def _residue(picture: Plane, block: _Block) -> float:
    """How much the mark's outline stands out: the step in brightness across it, summed."""
    grey = picture.mean(2)
    edge = cv2.morphologyEx(block.tight.view(np.uint8), cv2.MORPH_GRADIENT, np.ones((3, 3), np.uint8)).view(np.bool_)
    across = np.abs(cv2.Laplacian(cv2.GaussianBlur(grey, (0, 0), 1), cv2.CV_32F))
    return float(across[edge].sum())
