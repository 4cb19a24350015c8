"""Matrices and quadrilaterals of pages. A matrix is (a, b, c, d, e, f) as PDF writes it."""

import math
from collections.abc import Iterable

Matrix = tuple[float, float, float, float, float, float]
Point = tuple[float, float]
# Lower left, lower right, upper right, upper left, of what was drawn upright: its base tells the angle.
Quad = tuple[Point, Point, Point, Point]

IDENTITY: Matrix = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)
_MAX_COORDINATE = 1e7  # nothing on a page is farther away; broken files say so nevertheless


def multiply(first: Matrix, then: Matrix) -> Matrix:
    """The matrix that does ``first``, and ``then`` the other."""
    a, b, c, d, e, f = first
    g, h, i, j, k, m = then
    return (a * g + b * i, a * h + b * j, c * g + d * i, c * h + d * j, e * g + f * i + k, e * h + f * j + m)


def apply(matrix: Matrix, point: Point) -> Point:
    a, b, c, d, e, f = matrix
    x, y = point
    return (_bounded(a * x + c * y + e), _bounded(b * x + d * y + f))


def _bounded(value: float) -> float:
    if -_MAX_COORDINATE < value < _MAX_COORDINATE:
        return value
    return _MAX_COORDINATE if value > 0 or math.isnan(value) else -_MAX_COORDINATE


def quad_of(left: float, bottom: float, right: float, top: float, matrix: Matrix = IDENTITY) -> Quad:
    corners = ((left, bottom), (right, bottom), (right, top), (left, top))
    first, second, third, fourth = (apply(matrix, corner) for corner in corners)
    return (first, second, third, fourth)


def move(quad: Quad, matrix: Matrix) -> Quad:
    first, second, third, fourth = (apply(matrix, corner) for corner in quad)
    return (first, second, third, fourth)


def bounds(quads: Iterable[Quad]) -> tuple[float, float, float, float]:
    """Left, bottom, right, top of all of them."""
    points = [point for quad in quads for point in quad]
    xs, ys = [x for x, _ in points], [y for _, y in points]
    return (min(xs), min(ys), max(xs), max(ys))


def angle_of(quad: Quad) -> float:
    """Degrees by which the base is turned, to the left."""
    (x0, y0), (x1, y1) = quad[0], quad[1]
    return math.degrees(math.atan2(y1 - y0, x1 - x0)) if (x0, y0) != (x1, y1) else 0.0


def diagonal(box: tuple[float, float, float, float]) -> float:
    return math.hypot(box[2] - box[0], box[3] - box[1])


def linear(matrix: Matrix) -> tuple[float, ...]:
    """What a matrix does besides moving, rounded: equal for what is drawn in the same way elsewhere."""
    return tuple(round(_bounded(value), 2) for value in matrix[:4])


def principal_axis(points: list[Point]) -> tuple[float, float]:
    """The direction in which points lie, in degrees, and how many times longer than wide their cloud is."""
    count = max(len(points), 1)
    middle_x, middle_y = sum(x for x, _ in points) / count, sum(y for _, y in points) / count
    xx = sum((x - middle_x) ** 2 for x, _ in points) / count
    yy = sum((y - middle_y) ** 2 for _, y in points) / count
    xy = sum((x - middle_x) * (y - middle_y) for x, y in points) / count
    spread = math.hypot(xx - yy, 2 * xy)
    longest, shortest = (xx + yy + spread) / 2, max((xx + yy - spread) / 2, 1e-9)
    return math.degrees(math.atan2(2 * xy, xx - yy) / 2), math.sqrt(longest / shortest)


def turned_quad(points: list[Point], degrees: float) -> Quad:
    """The smallest box around points whose base has this direction."""
    cosine, sine = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    along = [x * cosine + y * sine for x, y in points]
    across = [y * cosine - x * sine for x, y in points]
    turn: Matrix = (cosine, sine, -sine, cosine, 0.0, 0.0)
    return quad_of(min(along), min(across), max(along), max(across), turn)
