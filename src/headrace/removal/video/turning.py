"""Between pixels as a clip stores them and as it is shown: many are turned by quarters when they are shown."""

import numpy as np
from numpy.typing import NDArray

from headrace.removal.comparison import read_mask
from headrace.removal.errors import HintUnusable
from headrace.removal.report import Rectangle
from headrace.removal.video.model import Placed, VideoOrder
from headrace.removal.video.probing import Facts
from headrace.removal.video.sampling import Box

Mask = NDArray[np.bool_]


def turns(facts: Facts) -> int:
    """Quarter turns to the left that show it upright. Mirrors are not heeded: hardly any clip has them."""
    return round(facts.rotation / 90) % 4


def shown(picture: NDArray[np.generic], facts: Facts) -> NDArray[np.generic]:
    return np.ascontiguousarray(np.rot90(picture, turns(facts)))


def stored(picture: NDArray[np.bool_], facts: Facts) -> Mask:
    return np.ascontiguousarray(np.rot90(picture, -turns(facts)))


def as_shown(box: Box, facts: Facts) -> Rectangle:
    """The corners go where the picture's do."""
    plane = _corners(box, (facts.height, facts.width), turns(facts))
    top, bottom, left, right = plane
    return left, top, right - left, bottom - top


def box_as_stored(rectangle: Rectangle, facts: Facts) -> Box:
    """Raises ``HintUnusable`` for a box that lies outside."""
    left, top, width, height = rectangle
    wide, high = facts.upright
    if left >= wide or top >= high or left < 0 or top < 0 or width <= 0 or height <= 0:
        raise HintUnusable(f"A box begins at {left}, {top}, outside the clip of {wide} x {high} pixels.")
    box = (top, min(high, top + height), left, min(wide, left + width))
    return _corners(box, (high, wide), -turns(facts))


def _corners(box: Box, size: tuple[int, int], quarter_turns: int) -> Box:
    top, bottom, left, right = box
    height, width = size
    for _ in range(quarter_turns % 4):  # to the left: what was right is up
        top, bottom, left, right = width - right, width - left, top, bottom
        height, width = width, height
    return top, bottom, left, right


def boxes_as_stored(order: VideoOrder, facts: Facts) -> list[tuple[Box, Placed]]:
    return [(box_as_stored(each.box, facts), each) for each in order.boxes]


def keep_as_stored(order: VideoOrder, facts: Facts) -> list[Box]:
    return [box_as_stored(each, facts) for each in order.keep]


def mask_as_stored(order: VideoOrder, facts: Facts) -> Mask | None:
    """The mask that somebody drew. Raises ``HintUnusable`` for one of another size."""
    if order.drawn is None:
        return None
    try:
        mask = read_mask(order.drawn)
    except (OSError, ValueError, SyntaxError) as exc:
        raise HintUnusable(f"{order.drawn} is not a picture that can be read: {exc}") from exc
    width, height = facts.upright
    if mask.shape != (height, width):
        raise HintUnusable(
            f"{order.drawn} has {mask.shape[1]} x {mask.shape[0]} pixels: a mask has the clip's size, "
            f"{width} x {height}."
        )
    return stored(mask, facts)
