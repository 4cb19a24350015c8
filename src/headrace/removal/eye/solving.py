"""Solving for what lies under a mark: computed where it shines through, filled in where it does not."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import cv2
import numpy as np
from numpy.typing import NDArray

from headrace.removal.eye.coverage import covered
from headrace.removal.eye.filling import fill
from headrace.removal.eye.finishing import Draft, finish
from headrace.removal.eye.inks import Points, read
from headrace.removal.eye.model import JOIN, Mask, Picture, Plane, Restoration, Sight, loosened
from headrace.removal.eye.openings import bare, may_be_bare, windows

At = tuple[NDArray[np.intp], ...]
Box = tuple[int, int, int, int]  # top, bottom, left, right

# Blocks of this side (of the second in very large pictures) are solved one by one, each with a margin only looked at.
_BLOCK, _LEAN_BLOCK, _OVERLAP = 1024, 512, 48
# Beyond this nothing of the picture is left to compute with.
_OPAQUE = 0.93
# Inks are read off this near to the unmarked picture.
_RIM = 10
# Roughness is read off the surroundings: squares of these sides, and how much each counts.
_AROUND = ((31, 1.0), (95, 1e-2), (287, 1e-4))
_SMOOTH = 1.3
# What compression changes, in levels; how far alpha is off after all.
_GRAIN, _ALPHA_OFF = 2.5, 0.03
# What filling in misses: so much of how far the picture strays from its own blur. Near a mark's rim the narrow blur
# tells, eight pixels in the next, sixteen in the widest; and so many levels always. Fitted to calibration photographs.
_WIDTHS, _MISSED, _ALWAYS = (9, 33, 97), 0.83, 1.77
# A result whose edges along the mark stand out more than this, beside the marked picture's, is worse than none.
_RESIDUE = 1.0


@dataclass(frozen=True, slots=True)
class _Block:
    """A part of the picture with what was seen in it."""

    picture: Plane  # in levels
    alpha: Plane
    tint: Plane  # colour times alpha, in levels
    doubt: Plane  # in levels
    likely: Plane  # 0 to 255
    tight: Mask
    loose: Mask
    step: int


def solve(picture: Picture, sight: Sight, *, least_score: float = 0.5, in_place: bool = False) -> Restoration:
    """The picture without the mark that was seen in it.

    Never changes a pixel outside the sight's loose mask. Refuses, with a reason, where no mark was seen, where it is
    less certain than ``least_score``, and where the result still shows it; regions that are less certain by themselves
    stay. ``in_place`` writes into ``picture``, for pictures that fill half the memory.
    """
    if picture.shape != (sight.height, sight.width, 3):
        raise ValueError("the sight belongs to another picture")
    if not sight.regions:
        return Restoration(picture, 0.0, 0, 0, refused="No mark was seen.")
    if sight.score < least_score:
        return Restoration(picture, 0.0, 0, 0, refused=f"The mark is too doubtful: score {sight.score:.2f}.")
    result = picture if in_place else picture.copy()
    left_over = _certain(sight, least_score)
    doubtful = sight.loose.sum() - left_over.loose.sum()
    if not left_over.tight.any():
        return Restoration(picture, 0.0, 0, 0, refused="Each part of the mark is too doubtful by itself.")
    computed = invented = 0
    before = after = doubt = 0.0
    for top, bottom, left, right in _boxes(left_over):
        above, before_it = max(0, top - _OVERLAP), max(0, left - _OVERLAP)
        # What was solved before is picture here, not mark: the blocks meet without a seam.
        block = _cut(result, left_over, (above, bottom + _OVERLAP, before_it, right + _OVERLAP))
        block, draft, fresh = _solved(block)
        # Which pixels were invented rather than computed, and how wrong each may be.
        hole = draft.invented > 0.5
        wrong = draft.invented * (draft.rough + np.float32(_GRAIN)) + (1 - draft.invented) * draft.doubt
        was, now = _residue(block.picture, block), _residue(fresh, block)
        # Where the mark covers all there is no outline to judge by, nor anything to fill in from.
        if block.tight.all() or now > _RESIDUE * was:
            before, after = before + was, after + was
            continue  # the block keeps its mark rather than getting a ghost
        before, after = before + was, after + now
        inner = np.s_[top - above : bottom - above, left - before_it : right - before_it]
        inside = block.loose[inner]
        levels = np.clip(np.rint(fresh[inner][inside]), 0, 255).astype(np.uint8)
        result[top:bottom, left:right][inside] = levels
        solved = _on_planes(sight.step, top, bottom, left, right)
        left_over.loose[solved] = left_over.tight[solved] = False
        computed += int((inside & ~hole[inner]).sum())
        invented += int((inside & hole[inner]).sum())
        doubt += float(wrong[inner][inside].sum())
    if computed + invented == 0:
        return Restoration(picture, 0.0, 0, 0, refused="The mark could not be taken off without leaving a trace.")
    gone = 1 - after / before if before > 0 else 1.0
    certain = 1 - min(1.0, doubt / (computed + invented) / 60)
    # A mark that stays in part is not gone: blocks that were kept, regions that were too doubtful.
    whole = 1 - (left_over.loose.sum() + doubtful) / sight.loose.sum()
    confidence = round(float(np.clip(gone * certain * whole * sight.score, 0, 1)), 4)
    return Restoration(result, confidence, computed, invented)


def _certain(sight: Sight, least_score: float) -> Sight:
    """A copy of the sight, to be used up, without the regions that are too doubtful by themselves."""
    tight, loose = sight.tight.copy(), sight.loose.copy()
    if any(region.score < least_score for region in sight.regions):
        near = cv2.dilate(tight.view(np.uint8), np.ones((JOIN, JOIN), np.uint8))
        count, labels = cv2.connectedComponents(near, ltype=cv2.CV_32S)
        label = labels[tight]
        mean = np.bincount(label, sight.likely[tight], count) / np.maximum(np.bincount(label, minlength=count), 1)
        tight &= (mean >= 255 * least_score)[labels]
        loose &= loosened(tight)
    return replace(sight, tight=tight, loose=loose)


def _on_planes(step: int, top: int, bottom: int, left: int, right: int) -> tuple[slice, slice]:
    """A block's place on planes that are ``step`` times coarser; blocks begin where a coarse pixel does."""
    return slice(top // step, -(-bottom // step)), slice(left // step, -(-right // step))


def _boxes(sight: Sight) -> Iterator[Box]:
    """What is marked of each block."""
    step = sight.step
    side = _BLOCK if step == 1 else _LEAN_BLOCK // step
    for top in range(0, sight.loose.shape[0], side):
        for left in range(0, sight.loose.shape[1], side):
            part = sight.loose[top : top + side, left : left + side]
            rows, columns = np.flatnonzero(part.any(1)), np.flatnonzero(part.any(0))
            if len(rows):
                yield (
                    (top + int(rows[0])) * step,
                    min((top + int(rows[-1]) + 1) * step, sight.height),
                    (left + int(columns[0])) * step,
                    min((left + int(columns[-1]) + 1) * step, sight.width),
                )


def _cut(picture: Picture, sight: Sight, box: Box) -> _Block:
    top, bottom, left, right = box
    bottom, right = min(bottom, sight.height), min(right, sight.width)
    step = sight.step
    rows, columns = _on_planes(step, top, bottom, left, right)
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
        plane(sight.likely, cv2.INTER_LINEAR).astype(np.float32),
        tight,
        loose,
        step,
    )


def _solved(block: _Block) -> tuple[_Block, Draft, Plane]:
    """The block without what shows through openings in its mark, its draft, and the picture without the mark.

    What an opening shows tells best of what is under the ink beside it: the draft is made anew.
    """
    draft = _drafted(block)
    if block.step > 1:  # the hand knows marks that were seen at full size, and what is coarse has no edges to judge by
        return block, draft, draft.blend
    fresh: Plane | None = None
    asked = may_be_bare(draft, block.tight)
    if asked.any():
        fresh, likely = finish(draft)
        opened = _without(block, bare(asked, likely))
        if opened is not block:
            block, draft, fresh = opened, _drafted(opened), None
    # On smooth ground filling in is better than what compression left of the picture beside the ink.
    opened = _without(block, windows(draft, block.tight & (draft.rough >= _SMOOTH)))
    if opened is not block:
        block, draft, fresh = opened, _drafted(opened), None
    return block, draft, finish(draft)[0] if fresh is None else fresh


def _without(block: _Block, opening: Mask) -> _Block:
    """The block whose mark has an opening, but for one that leaves nothing of it."""
    tight = block.tight & ~opening
    if not opening.any() or not tight.any():
        return block
    return replace(block, tight=tight, loose=block.loose & loosened(tight))


def _drafted(block: _Block) -> Draft:
    """What lies under the mark, computed and filled in, and the two weighed by what is known of their errors."""
    strays = _strays(block)
    rough = strays[0]
    # From the mark's own rim: the picture shows through the margin around it. But on smooth ground files smear the mark
    # visibly into the margin, and there is nothing to lose.
    membrane = fill(block.picture, block.tight | (block.loose & (rough < _SMOOTH)))
    share, whole = covered(block.picture, block.alpha, block.loose, step=block.step)
    change = cv2.morphologyEx(share, cv2.MORPH_GRADIENT, np.ones((5, 5), np.uint8))
    deep = cv2.distanceTransform(block.loose.view(np.uint8), cv2.DIST_L2, 3)
    at = np.nonzero(block.loose)
    marked, smooth, part = block.picture[at], membrane[at], share[at]
    depth: Plane = np.minimum(deep[at], _BLOCK).astype(np.float32)
    missed = _missed(strays, at, depth)
    alpha, colour, strong = _inked(block, at, marked, smooth, part, missed, whole[at], depth)
    opacity = alpha * part
    through = np.maximum(1 - opacity, 1 - _OPAQUE)
    computed = (marked - opacity[:, None] * colour) / through[:, None]
    # Two estimates with errors of their own: the better one counts more, and both together are better than either.
    impossible = np.maximum(np.maximum(-computed, computed - 255), 0).mean(1)
    computed = np.clip(computed, 0, 255)
    lever = np.sqrt(((colour - computed) ** 2).mean(1))
    unsure = np.hypot(_ALPHA_OFF, alpha * (0.01 + 0.1 * change[at]))
    wrong = np.hypot(_GRAIN, unsure * lever) / through + 2 * impossible
    # Of what is nearly opaque little shines through, and its alpha is told less surely.
    wrong = (wrong + strong * block.doubt[at]) * (1 + 4 * strong)
    invented = wrong**2 / (wrong**2 + (2 * missed) ** 2)
    invented = np.where(opacity > _OPAQUE, 1, invented)

    def spread(values: NDArray[np.floating], around: Plane | float) -> Plane:
        plane = np.full(block.loose.shape, around, np.float32) if isinstance(around, float) else around.copy()
        plane[at] = values
        return plane

    blend = computed * (1 - invented)[:, None] + smooth * invented[:, None]
    return Draft(
        marked=block.picture,
        filled=membrane,
        computed=spread(computed, block.picture),
        blend=spread(blend, block.picture),
        colour=spread(colour, block.picture),
        opacity=spread(opacity, 0.0),
        invented=spread(invented, 0.0),
        rough=rough,
        missed=spread(missed, 0.0),
        doubt=spread(block.doubt[at], 0.0),
        likely=spread(block.likely[at], 0.0),
        loose=block.loose,
    )


def _inked(
    block: _Block, at: At, marked: Plane, smooth: Plane, part: Plane, missed: Plane, whole: Plane, deep: Plane
) -> tuple[Plane, Plane, Plane]:
    """Of each pixel: alpha of a whole stroke there, colour, and how near to opaque that is, 0 to 1."""
    colour = np.clip(block.tint[at] / np.maximum(block.alpha[at], 0.02)[:, None], 0, 255)
    points = Points(marked, smooth, missed, part, whole, colour)
    inks, which = read(points, (part > 0.5) & (deep <= _RIM) & block.tight[at])
    alphas, strongest = np.array([ink.alpha for ink in inks]), np.array([ink.strongest for ink in inks])
    colours = np.array([ink.colour for ink in inks], np.float32)
    strong = np.clip((strongest - 0.55) / 0.2, 0, 1)
    return alphas.astype(np.float32)[which], colours[which], strong.astype(np.float32)[which]


def _strays(block: _Block) -> list[Plane]:
    """How far the picture around each pixel strays from its own blur, for each width of that."""
    grey = block.picture.mean(2)
    outside = (~block.loose).astype(np.float32)
    # Deep in a mark nothing of the picture is near: what is further away speaks for it.
    seen = sum((counts * cv2.blur(outside, (side, side)) for side, counts in _AROUND), np.full_like(grey, 1e-7))
    each: list[Plane] = []
    for width in _WIDTHS:
        blurred = cv2.blur(grey * outside, (width, width)) / (cv2.blur(outside, (width, width)) + np.float32(1e-3))
        strays = outside * (grey - blurred) ** 2
        # And where nothing is within reach at all, the whole of the block.
        usual = np.float32(1e-7 * strays.sum() / max(float(outside.sum()), 1.0))
        total = sum((counts * cv2.blur(strays, (side, side)) for side, counts in _AROUND), np.full_like(grey, usual))
        each.append(np.sqrt(total / seen + 1))
    return each


def _missed(strays: list[Plane], at: At, depth: Plane) -> Plane:
    """How far off filling in is to be expected, so deep in the mark."""
    near, further, far = (plane[at] for plane in strays)
    doublings = np.log2(np.maximum(depth, 1)) - 2
    found = near + (further - near) * np.clip(doublings, 0, 1) + (far - further) * np.clip(doublings - 1, 0, 1)
    missed: Plane = (np.float32(_MISSED) * found + np.float32(_ALWAYS)).astype(np.float32)
    return missed


def _residue(picture: Plane, block: _Block) -> float:
    """How much the mark's outline stands out: the step in brightness across it, summed."""
    grey = picture.mean(2)
    edge = cv2.morphologyEx(block.tight.view(np.uint8), cv2.MORPH_GRADIENT, np.ones((3, 3), np.uint8)).view(np.bool_)
    across = np.abs(cv2.Laplacian(cv2.GaussianBlur(grey, (0, 0), 1), cv2.CV_32F))
    return float(across[edge].sum())
