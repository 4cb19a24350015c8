"""What a page draws, one by one: the units that can be taken out of it."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from headrace.removal.documents.pdf.geometry import Matrix, Quad, move, multiply


class Kind(StrEnum):
    TEXT = "text"
    PATH = "path"
    PICTURE = "picture"
    FORM = "form"
    SHADING = "shading"


@dataclass(frozen=True, slots=True)
class Section:
    """Marked content around a drawing: what the file says that it is."""

    named: bool = False  # a watermark
    belongs: bool = False  # a header, a footer: part of the document
    layer: str | None = None


@dataclass(frozen=True, slots=True)
class Drawing:
    kind: Kind
    signature: int  # the same for what is drawn in the same way, on any page
    first: int  # the instructions that draw it, both ends in
    last: int
    quad: Quad  # in the space of its stream
    alpha: float = 1.0
    luminance: float | None = None  # of its colour; None is unknown
    text: str = ""
    glyphs: int = 0
    segments: int = 0  # of a path
    subpaths: int = 0
    clips: bool = False  # the path is a clip, too, which has to stay
    visible: bool = True
    tile: "Tile | None" = None  # a path that is filled with a pattern
    section: Section | None = None
    picture: tuple[int, int] | None = None  # the object of an image
    soft: bool = False  # an image with an alpha channel
    form: "Form | None" = None


@dataclass(frozen=True, slots=True)
class Form:
    """A form XObject: a page within the page."""

    xobject: Any
    matrix: Matrix  # from its space to that of the stream that draws it
    drawings: tuple[Drawing, ...]
    named: bool  # Acrobat notes that it is a watermark


@dataclass(frozen=True, slots=True)
class Tile:
    """A pattern that repeats over what is filled with it."""

    drawings: tuple[Drawing, ...]
    area: float  # that one copy takes


@dataclass(frozen=True, slots=True)
class Placed:
    """A drawing where it is on the page."""

    drawing: Drawing
    quad: Quad
    alpha: float
    section: Section | None
    stream: int  # the same for neighbours in one stream
    parent: int | None  # signature of the form that it is in


def placed(drawings: tuple[Drawing, ...]) -> Iterator[Placed]:
    """All drawings of a page with those inside its forms, in order."""
    yield from _placed(drawings, None, 1.0, None, (), None)


def _placed(
    drawings: tuple[Drawing, ...],
    matrix: Matrix | None,
    alpha: float,
    section: Section | None,
    place: tuple[int, ...],
    parent: int | None,
) -> Iterator[Placed]:
    stream = hash(place)
    for at, each in enumerate(drawings):
        quad = each.quad if matrix is None else move(each.quad, matrix)
        around = each.section or section
        yield Placed(each, quad, each.alpha * alpha, around, stream, parent)
        if each.form is not None:
            inner = each.form.matrix if matrix is None else multiply(each.form.matrix, matrix)
            yield from _placed(each.form.drawings, inner, each.alpha * alpha, around, (*place, at), each.signature)
