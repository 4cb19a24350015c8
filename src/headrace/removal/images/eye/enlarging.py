"""Carrying over to a large picture what was solved on a smaller copy of it."""

from dataclasses import replace

import cv2
import numpy as np

from headrace.removal.images.eye.blocks import around, boxes, cut, inner, on_planes
from headrace.removal.images.eye.drafting import drafted
from headrace.removal.images.eye.model import Detection, Picture, shrunk

_BLOCK_ROWS = 512


def enlarge(picture: Picture, clean: Picture, solved: Detection) -> None:
    """Takes the mark off the picture as it was taken off the copy that it was seen on, which is ``clean`` now.

    The copy tells all but the finest detail. That is drafted with the mark's edges as the picture itself has them.
    """
    left_over = replace(solved, tight=solved.tight.copy(), loose=solved.loose.copy())
    for box in boxes(left_over, _BLOCK_ROWS):
        outer = around(box, solved)
        block = cut(picture, left_over, outer)
        draft = drafted(block).blend
        rows, columns = on_planes(solved.step, outer)
        off = clean[rows, columns] - shrunk(draft, solved.step)
        large = cv2.resize(off, None, fx=solved.step, fy=solved.step, interpolation=cv2.INTER_CUBIC)
        fresh = draft + large[: draft.shape[0], : draft.shape[1]]
        here, there = inner(box, outer), np.s_[box[0] : box[1], box[2] : box[3]]
        inside = block.loose[here]
        picture[there][inside] = np.clip(np.rint(fresh[here][inside]), 0, 255).astype(np.uint8)
        done = on_planes(solved.step, box)
        left_over.loose[done] = left_over.tight[done] = False
