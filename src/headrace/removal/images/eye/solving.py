"""Solving for what lies under a mark: block by block, at the size at which the mark was seen."""

from dataclasses import dataclass, field, replace
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from headrace.removal.images.eye.blocks import Block, around, boxes, cut, inner
from headrace.removal.images.eye.drafting import MAX_SMOOTH_LEVELS, drafted
from headrace.removal.images.eye.enlarging import enlarge
from headrace.removal.images.eye.model import (
    MAX_FULL_SIZE_PIXELS,
    MIN_SCORE,
    Detection,
    Mask,
    Picture,
    Plane,
    Restoration,
    grey_of,
    loosened,
    shrunk,
)
from headrace.removal.images.eye.openings import bare, may_be_bare, windows
from headrace.removal.images.eye.refining import Draft, refine
from headrace.removal.images.eye.residue import check, residue
from headrace.removal.images.eye.smooth_ground import with_gaps_closed, with_grain

# Blocks of this side are solved one by one; of the second in pictures that fill half the memory.
_BLOCK_PX, _LEAN_BLOCK_PX = 1024, 384
# A result whose edges along the mark stand out more than this, beside the marked picture's, is worse than none.
_MAX_RESIDUE_RATIO = 1.0
_MAX_CONFIRMED_RESIDUE_RATIO = 0.5  # of the edges inside the mask may be left where a confirmed mask is too large
_REVIEW_MESSAGE = (
    "Needs review: what looks like a mark covers much of the picture and may belong to it. Say which region is the "
    "mark (--only, as `headrace detect` numbers them) or where it is (--box)."
)
_DOUBTFUL_MESSAGE = (
    "Needs review: what may be a mark is too doubtful, score {:.2f}. If it is one, say where it is (--box) or take off "
    "what is less certain (--least-score)."
)
_MIN_CONFIDENCE_SCORE = 0.2  # results of less confidence are bad: handed out only if confirmed
_POOR_MESSAGE = (
    "Needs review: taking this off would most likely give a poor result (confidence {:.2f}). If it is a mark, say so "
    "(--only or --box), or draw it (--mask)."
)
# How likely a result is good, that is, keeps under a fifth of the mark and has 22 dB or more inside it: by how much of
# its outline is gone, the score, the share of pixels that were invented, and the means of probability and alpha.
# A logistic regression on 135 results for calibration pictures (docs/why/eye-model-card.md).
_GOOD_COEFFICIENTS, _GOOD_OFFSET_ODDS = np.array([2.071, 5.91, 0.671, 4.616, -3.954]), -8.892


@dataclass(slots=True)
class _Account:
    """What became of a mark."""

    solved: Mask
    computed: int = 0  # pixels
    invented: int = 0
    before: float = 0.0  # how much its outline stood out
    after: float = 0.0
    undo: list[tuple[tuple[slice, slice], Mask, NDArray[np.uint8]]] = field(default_factory=list)  # what was there

    def put(self, picture: Picture, there: tuple[slice, slice], inside: Mask, fresh: Plane) -> None:
        """Writes the pixels ``inside`` the part ``there`` of the picture."""
        part = picture[there]
        self.undo.append((there, inside, part[inside]))
        part[inside] = np.clip(np.rint(fresh[inside]), 0, 255).astype(np.uint8)

    def take_back(self, picture: Picture) -> None:
        for there, inside, old in reversed(self.undo):
            picture[there][inside] = old


def solve(
    picture: Picture,
    detection: Detection,
    *,
    least_score: float = MIN_SCORE,
    in_place: bool = False,
    threads: int = 2,
) -> Restoration:
    """The picture without the mark that was seen in it.

    Changes no pixel that the detection does not allow, and outside its loose mask only small gaps of the mark on smooth
    ground and what a second look shows to belong to the mark.
    Refuses, with a reason, where no mark was seen, where it is less certain than ``least_score``, and where the result
    still shows it; regions that are less certain by themselves stay. Unless the user confirmed the mark, it
    also asks instead (``needs_review``) where a mark would cover much of the picture, or the result would be poor.
    ``in_place`` writes into ``picture``, for pictures that fill half the memory.
    """
    if picture.shape != (detection.height, detection.width, 3):
        raise ValueError("the detection belongs to another picture")
    if detection.finer is not None:
        how = {"least_score": least_score, "in_place": in_place, "threads": threads}
        return _solved_with_finer(picture, detection, detection.finer, how)
    refused = refusal(picture, detection, least_score)
    if refused is not None:
        return refused
    left_over = detection.at_least(least_score)
    wanted, doubtful = float(left_over.loose.sum()), _expected(detection, left_over)
    if not left_over.tight.any():
        return Restoration(picture, 0.0, 0, 0, refused="Each part of the mark is too doubtful by itself.")
    result = picture if in_place else picture.copy()
    copy = result if detection.step == 1 else shrunk(picture, detection.step)
    taken = left_over.as_seen.besides(detection.loose & ~left_over.loose)
    account = _take_off(copy, left_over.as_seen, frugal=detection.height * detection.width > MAX_FULL_SIZE_PIXELS)
    if account.computed + account.invented == 0:
        return Restoration(picture, 0.0, 0, 0, refused="The mark could not be taken off without leaving a trace.")
    # What copies say together leaves nothing beside them: there a second look finds things of the picture.
    if detection.step == 1 and not detection.repeated:
        _look_again(copy, taken, account, threads=threads)
    # A mark that stays in part is not gone: blocks that were kept, regions that were too doubtful.
    whole = 1 - (float(left_over.loose.sum()) + doubtful) / (wanted + doubtful)
    confidence = whole * _chance_of_good(account, taken)
    if confidence < _MIN_CONFIDENCE_SCORE and not detection.confirmed:
        account.take_back(copy)
        return Restoration(picture, 0.0, 0, 0, refused=_POOR_MESSAGE.format(confidence), needs_review=True)
    if detection.step > 1:
        enlarge(result, copy, replace(detection, tight=detection.tight & account.solved, loose=account.solved))
    pixels = detection.height * detection.width / detection.loose.size  # that one of the copy's stands for
    computed, invented = (round(pixels * each) for each in (account.computed, account.invented))
    return Restoration(result, round(confidence, 4), computed, invented, gone=whole)


def refusal(picture: Picture, detection: Detection, least_score: float) -> Restoration | None:
    """What can be refused, or must be asked about, before anything is computed."""
    if not detection.regions:
        return Restoration(picture, 0.0, 0, 0, refused="No mark was seen.")
    if detection.score < least_score:
        return Restoration(picture, 0.0, 0, 0, refused=_DOUBTFUL_MESSAGE.format(detection.score), needs_review=True)
    if detection.widespread and not detection.confirmed:
        return Restoration(picture, 0.0, 0, 0, refused=_REVIEW_MESSAGE, needs_review=True)
    return None


def _expected(detection: Detection, kept: Detection) -> float:
    """How many pixels of the mark are to be expected in the regions that were not kept."""
    others = detection.loose & ~kept.loose
    if detection.certainty is None or not others.any():
        return float(others.sum())
    certainty = detection.certainty[others & detection.tight]
    return float(others.sum()) * float(certainty.mean()) / 255 if len(certainty) else 0.0


def _look_again(picture: Picture, taken: Detection, account: _Account, *, threads: int) -> None:
    """Takes off what had been overlooked beside the mark, and puts it back where that makes it worse."""
    first = check(picture, taken, threads=threads)
    if first is None or first.rest is None:
        return
    more = _take_off(picture, first.rest)
    second = check(picture, taken, threads=threads) if more.computed + more.invented else None
    if second is None or second.left >= first.left:
        more.take_back(picture)
        return
    account.undo += more.undo
    account.solved |= more.solved
    account.computed += more.computed
    account.invented += more.invented


def _chance_of_good(account: _Account, taken: Detection) -> float:
    gone = 1 - account.after / account.before if account.before > 0 else 1.0
    invented = account.invented / (account.computed + account.invented)
    means = (float(plane[taken.tight].mean()) / 255 for plane in (taken.likely, taken.strength))
    odds = _GOOD_COEFFICIENTS @ np.array([gone, taken.score, invented, *means]) + _GOOD_OFFSET_ODDS
    return float(1 / (1 + np.exp(-odds)))


def _solved_with_finer(picture: Picture, detection: Detection, finer: Detection, how: dict[str, Any]) -> Restoration:
    """Small marks first, each detection at the size it was seen at: what is small is least in the way."""
    first = solve(picture, finer, **how)
    rest = solve(first.picture, replace(detection, finer=None), **how)
    if rest.refused:
        return replace(first, confidence=0.0, gone=0.0) if first.refused is None else rest
    # What is still there, of either, is not gone.
    area = (detection.loose.mean(), finer.covered)
    confidence = (area[0] * rest.confidence + area[1] * first.confidence) / sum(area)
    gone = (area[0] * rest.gone + area[1] * (first.gone if first.refused is None else 0.0)) / sum(area)
    return Restoration(
        rest.picture,
        round(float(confidence), 4),
        first.inverted + rest.inverted,
        first.filled + rest.filled,
        gone=float(gone),
    )


def _take_off(picture: Picture, left_over: Detection, *, frugal: bool = False) -> _Account:
    """Takes off the mark that is left over, block by block, and uses up its masks."""
    account = _Account(solved=np.zeros_like(left_over.loose))
    for box in boxes(left_over, _LEAN_BLOCK_PX if frugal else _BLOCK_PX):
        outer = around(box, left_over)
        # What was solved before is picture here, not mark: the blocks meet without a seam.
        block, draft, fresh = _solved(cut(picture, left_over, outer), frugal=frugal)
        was, now = residue(block.picture, block.tight), residue(fresh, block.tight)
        account.before += was
        # Where the mark covers all there is no outline to judge by, nor anything to fill in from.
        if block.tight.all() or (
            now > _MAX_RESIDUE_RATIO * was and not (left_over.confirmed and _is_calmer(fresh, block))
        ):
            account.after += was
            continue  # the block keeps its mark rather than getting a ghost
        account.after += now
        here, there = inner(box, outer), np.s_[box[0] : box[1], box[2] : box[3]]
        inside = block.loose[here]
        if left_over.allowed is not None:  # gaps that were closed may reach beyond it
            inside = inside & left_over.allowed[there]
        account.put(picture, there, inside, fresh[here])
        left_over.loose[there] = left_over.tight[there] = False
        account.solved[there] |= inside
        invented = draft.invented[here][inside] > 0.5
        account.invented += int(invented.sum())
        account.computed += int((~invented).sum())
    return account


def _is_calmer(fresh: Plane, block: Block) -> bool:
    """Whether edges inside the mask are gone: of a mask that reaches beyond the mark the outline says nothing."""
    was, now = (np.abs(cv2.Laplacian(grey_of(each), cv2.CV_32F))[block.tight].sum() for each in (block.picture, fresh))
    return bool(now <= _MAX_CONFIRMED_RESIDUE_RATIO * was)


def _solved(block: Block, *, frugal: bool) -> tuple[Block, Draft, Plane]:
    """The block without what shows through openings in its mark, its draft, and the picture without the mark.

    What an opening shows is the best evidence for what lies under the ink beside it: the draft is made again.
    """
    block = with_gaps_closed(block)
    draft = drafted(block)
    fresh: Plane | None = None
    asked = may_be_bare(draft, block.tight)
    if asked.any():
        fresh, likely = refine(draft, frugal=frugal)
        opened = _without(block, bare(asked, likely))
        if opened is not block:
            block, draft, fresh = opened, drafted(opened), None
    # On smooth ground filling in is better than what compression left of the picture beside the ink.
    opened = _without(block, windows(draft, block.tight & (draft.rough >= MAX_SMOOTH_LEVELS)))
    if opened is not block:
        block, draft, fresh = opened, drafted(opened), None
    if fresh is None:
        fresh = refine(draft, frugal=frugal)[0]
    return block, draft, with_grain(block.picture, fresh, block.loose, draft.rough)


def _without(block: Block, opening: Mask) -> Block:
    """The block whose mark has an opening, but for one that leaves nothing of it."""
    tight = block.tight & ~opening
    if not opening.any() or not tight.any():
        return block
    return replace(block, tight=tight, loose=block.loose & loosened(tight))
