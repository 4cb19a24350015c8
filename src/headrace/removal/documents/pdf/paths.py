"""Where a path is on the page."""

from typing import Any

from headrace.removal.documents.pdf.geometry import Matrix, Quad, apply, principal_axis, quad_of, turned_quad

# A path of this many segments may be a word in outlines; one this much longer than wide has a direction.
_MIN_LETTERING_SEGMENTS, _MIN_ASPECT_RATIO = 40, 3.0


def around(path: list[Any], matrix: Matrix) -> Quad:
    """The box around a path; along its letters, where it is one that is long and slanted."""
    xs, ys = _points(path)
    upright = quad_of(min(xs), min(ys), max(xs), max(ys), matrix)
    if len(path) < _MIN_LETTERING_SEGMENTS or len(xs) != len(ys):
        return upright
    points = [apply(matrix, point) for point in zip(xs, ys, strict=True)]
    degrees, longer = principal_axis(points)
    return turned_quad(points, degrees) if longer >= _MIN_ASPECT_RATIO else upright


def _points(path: list[Any]) -> tuple[list[float], list[float]]:
    xs, ys = list[float](), list[float]()
    for name, operands in path:
        numbers = [float(each) for each in operands]
        if name == "re":
            left, bottom, width, height = numbers
            xs += (left, left + width)
            ys += (bottom, bottom + height)
        else:
            xs += numbers[0::2]
            ys += numbers[1::2]
    return xs, ys
