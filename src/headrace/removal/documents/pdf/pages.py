"""The size of a page as it is shown, and where things are on it."""

from dataclasses import dataclass
from typing import Any

import pikepdf
from pikepdf.exceptions import PikepdfError

from headrace.removal.documents.pdf.geometry import Point, Quad, bounds, diagonal
from headrace.removal.report import Box

_LETTER_BOX_POINTS = (0.0, 0.0, 612.0, 792.0)
_VERTICAL_MARGIN_RATIO, _SIDE_MARGIN_RATIO = 0.12, 0.08  # above and below; at the sides
_CENTRE_RATIO = 0.2  # of the page, to either side of its centre


@dataclass(frozen=True, slots=True)
class PageFrame:
    left: float
    bottom: float
    right: float
    top: float
    turned: int = 0  # degrees to the right

    @property
    def width(self) -> float:
        return self.right - self.left

    @property
    def height(self) -> float:
        return self.top - self.bottom

    @property
    def area(self) -> float:
        return self.width * self.height

    def share(self, box: tuple[float, float, float, float]) -> float:
        """How much of the page a box covers."""
        width = min(box[2], self.right) - max(box[0], self.left)
        height = min(box[3], self.top) - max(box[1], self.bottom)
        return max(width, 0.0) * max(height, 0.0) / self.area

    def span(self, box: tuple[float, float, float, float]) -> float:
        return min(diagonal(box) / diagonal((self.left, self.bottom, self.right, self.top)), 2.0)

    def is_centred(self, box: tuple[float, float, float, float]) -> bool:
        across = ((box[0] + box[2]) / 2 - self.left) / self.width - 0.5
        along = ((box[1] + box[3]) / 2 - self.bottom) / self.height - 0.5
        return abs(across) <= _CENTRE_RATIO and abs(along) <= _CENTRE_RATIO

    def is_in_margin(self, box: tuple[float, float, float, float]) -> bool:
        low, high = (box[1] - self.bottom) / self.height, (box[3] - self.bottom) / self.height
        near, far = (box[0] - self.left) / self.width, (box[2] - self.left) / self.width
        along = high <= _VERTICAL_MARGIN_RATIO or low >= 1 - _VERTICAL_MARGIN_RATIO
        return along or far <= _SIDE_MARGIN_RATIO or near >= 1 - _SIDE_MARGIN_RATIO

    def seen(self, point: Point) -> Point:
        """Where a point is seen: from the upper left corner, after the page's rotation."""
        x, y = point[0] - self.left, point[1] - self.bottom
        return {
            0: (x, self.height - y), 90: (y, x), 180: (self.width - x, y), 270: (self.height - y, self.width - x),
        }[self.turned]  # fmt: skip

    def seen_width(self) -> float:
        return self.height if self.turned in (90, 270) else self.width

    def box(self, quads: list[Quad]) -> Box:
        left, bottom, right, top = bounds(quads)
        (x0, y0), (x1, y1) = self.seen((left, bottom)), self.seen((right, top))
        sides = (min(x0, x1), min(y0, y1), abs(x1 - x0), abs(y1 - y0))
        return Box(*(round(value, 1) for value in sides))


def frame_of(page: pikepdf.Page) -> PageFrame:
    """The crop box, in order; of a page that has none, a sheet of paper."""
    try:
        x0, y0, x1, y1 = (float(each) for each in page.cropbox)
        box = (min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1))
    except (TypeError, ValueError, AttributeError, KeyError, PikepdfError):
        box = _LETTER_BOX_POINTS
    if box[2] - box[0] < 1 or box[3] - box[1] < 1:
        box = _LETTER_BOX_POINTS
    return PageFrame(*box, turned=_rotation(page.obj))


def _rotation(node: Any) -> int:
    for _ in range(64):
        if node is None:
            return 0
        if (turned := node.get("/Rotate")) is not None:
            return int(turned) % 360 // 90 * 90 if isinstance(turned, int) else 0
        node = node.get("/Parent")
    return 0
