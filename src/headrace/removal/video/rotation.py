"""Between pixels as a clip stores them and as it is shown: many are turned by quarters when they are shown."""

import numpy as np
from numpy.typing import NDArray

from headrace.removal.errors import HintUnusable
from headrace.removal.images.comparison import read_mask
from headrace.removal.order import END_SECONDS, FrameHint, Hint, Order, Rectangle
from headrace.removal.report import Box as Shown
from headrace.removal.video.model import Placed
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


def as_shown(box: Box, facts: Facts) -> Shown:
    """The corners go where the picture's do."""
    plane = _corners(box, (facts.height, facts.width), turns(facts))
    top, bottom, left, right = plane
    return Shown(left, top, right - left, bottom - top)


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


def boxes_as_stored(order: Order, facts: Facts) -> list[tuple[Box, Placed]]:
    return [(box_as_stored(box, facts), placed(hint, facts)) for hint in order.hints for box in hint.all_boxes]


def placed(hint: Hint, facts: Facts) -> Placed:
    """Its time in seconds. Raises ``HintUnusable`` for a time that the clip does not have."""
    begins, ends = hint.seconds or (0.0, None)
    ends = None if ends is None or ends >= END_SECONDS else ends
    if isinstance(hint, FrameHint) and hint.frames is not None:
        first, last = hint.frames
        if not 0 <= first <= last or first >= facts.frames:
            raise HintUnusable(f"There are no frames {first} to {last}: the clip has 0 to {facts.frames - 1}.")
        times = [float((stamp - facts.stamps[0]) * facts.time_base) for stamp in facts.stamps[first : last + 2]]
        begins, ends = times[0], times[last + 1 - first] if last + 1 < facts.frames else None
    if begins >= facts.seconds or (ends is not None and ends <= begins):
        until = "its end" if ends is None else f"{ends:g} s"
        raise HintUnusable(f"A box is for {begins:g} s to {until}: the clip lasts {facts.seconds:g} s.")
    return Placed(begins, ends)


def keep_as_stored(order: Order, facts: Facts) -> list[Box]:
    return [box_as_stored(each, facts) for each in order.keep]


def mask_as_stored(order: Order, facts: Facts) -> Mask | None:
    """The user-drawn mask. Raises ``HintUnusable`` for one of another size."""
    if order.mask is None:
        return None
    try:
        mask = read_mask(order.mask)
    except (OSError, ValueError, SyntaxError) as exc:
        raise HintUnusable(f"{order.mask} is not a picture that can be read: {exc}") from exc
    width, height = facts.upright
    if mask.shape != (height, width):
        raise HintUnusable(
            f"{order.mask} has {mask.shape[1]} x {mask.shape[0]} pixels: a mask has the clip's size, "
            f"{width} x {height}."
        )
    return stored(mask, facts)
