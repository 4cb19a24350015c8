"""Islands in a mark: the picture through the eye of a letter, or a part of the mark that was overlooked.

In a mark that hides the picture an overlooked part is worse than a missed corner: it stays, and what is filled in
around it takes on its colour.
"""

from collections.abc import Iterable

import cv2
import numpy as np
from numpy.typing import NDArray

from headrace.removal.images.eye.model import Levels, Mask, Picture, Region

_MARGIN_PX = 24
_MAX_REGION_PIXELS = 4_000_000  # pixels of a region that is looked through
_MIN_ISLAND_ALPHA = 0.3  # alpha of marks in which islands matter
# An island goes on in the mark's colour where it differs by no more levels than this. If it does along so much of its
# rim it is a part of the mark: the picture would show an edge all around.
_MAX_COLOUR_DISTANCE_LEVELS, _MIN_RIM_RATIO = 10.0, 0.5
# In a mark at least this strong, holes of at most this many pixels, or this share of the mark's, are closed.
_MIN_HOLE_ALPHA, _MAX_HOLE_PIXELS, _MAX_HOLE_RATIO = 0.75, 64, 0.02


def claim(
    picture: Picture, seen: Levels, tight: Mask, regions: Iterable[Region], certainty: Levels | None = None
) -> None:
    """Enters overlooked parts of strong marks into ``tight``, and what they are made of into the planes ``seen``."""
    height, width = tight.shape
    for region in regions:
        rows = slice(max(0, region.top - _MARGIN_PX), min(height, region.top + region.height + _MARGIN_PX))
        columns = slice(max(0, region.left - _MARGIN_PX), min(width, region.left + region.width + _MARGIN_PX))
        if (rows.stop - rows.start) * (columns.stop - columns.start) <= _MAX_REGION_PIXELS:
            part = picture[rows, columns].astype(np.float32)
            found = _claimed(part, seen[:, rows, columns], tight[rows, columns], most=region.pixels)
            tight[rows, columns] |= found
            if certainty is not None:
                certainty[rows, columns][found] = round(255 * region.score)


def _claimed(picture: NDArray[np.float32], seen: Levels, tight: Mask, *, most: int) -> Mask:
    count, labels, boxes, _ = cv2.connectedComponentsWithStats((~tight).view(np.uint8), connectivity=4)
    left, top, width, height, area = boxes.T
    inner = (left > 0) & (top > 0) & (left + width < tight.shape[1]) & (top + height < tight.shape[0])
    # What is larger than all that was seen of the mark is the picture in a frame, whatever the frame's colour.
    inner &= area <= most
    inner[0] = False
    islands: Mask = inner[labels]
    if not islands.any():
        return islands
    beside = cv2.dilate(np.where(islands, labels, 0).astype(np.float32), np.ones((9, 9), np.uint8))
    # Two pixels off the island's edge, which is blurred.
    blurred = cv2.dilate(islands.view(np.uint8), np.ones((3, 3), np.uint8)).view(np.bool_)
    rim = tight & (beside > 0) & ~blurred
    of = beside[rim].astype(np.intp)
    pixels = np.maximum(np.bincount(of, minlength=count), 1)
    share = cv2.blur(islands.astype(np.float32), (11, 11)) + np.float32(1e-6)
    near = cv2.blur(picture * islands[..., None], (11, 11)) / share[..., None]
    alike = np.abs(picture[rim] - near[rim]).mean(1) <= _MAX_COLOUR_DISTANCE_LEVELS
    along = np.bincount(of, alike, minlength=count) / pixels
    strength = np.bincount(of, seen[1][rim], minlength=count) / pixels
    overlooked = (strength >= 255 * _MIN_ISLAND_ALPHA) & (along >= _MIN_RIM_RATIO)
    # A hole in what hides the picture is ink of another shade rather than an opening: one is larger.
    overlooked |= (strength >= 255 * _MIN_HOLE_ALPHA) & (area <= max(_MAX_HOLE_PIXELS, _MAX_HOLE_RATIO * most))
    found: Mask = (inner & overlooked)[labels]
    # Nothing is known of what it hides.
    seen[0][found] = seen[1][found] = 255
    seen[2:5, found] = np.rint(picture[found].T)
    return found
