"""How much of what a document shows a user's box holds: the same for pages and slides."""

from headrace.removal.order import Hint, Rectangle
from headrace.removal.report import Box

_MIN_INSIDE_RATIO = 0.8  # of what is shown
# Of the page: a box that takes more is for finding, not for taking everything.
_MAX_PAGE_RATIO = 0.5
REASON = "the user drew a box around it"


def is_inside(own: Box, box: Rectangle) -> bool:
    """Whether the box holds nearly all of something; a line counts as one point wide."""
    left, top, width, height = box
    wide, high = max(own.width, 1.0), max(own.height, 1.0)
    across = min(left + width, own.left + wide) - max(left, own.left)
    along = min(top + height, own.top + high) - max(top, own.top)
    return max(across, 0.0) * max(along, 0.0) >= _MIN_INSIDE_RATIO * wide * high


def is_for(hint: Hint, box: Rectangle, page: int, area: float) -> bool:
    """Whether the box is for this page, and small enough to mean all that is in it."""
    return (hint.pages is None or hint.pages[0] <= page <= hint.pages[1]) and box[2] * box[3] <= _MAX_PAGE_RATIO * area
