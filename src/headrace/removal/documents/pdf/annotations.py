"""Annotations that are marks: watermarks, stamps and texts that lie over the page."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pikepdf

from headrace.removal.documents.pdf.drawings import Drawing, Form, Kind, Section
from headrace.removal.documents.pdf.geometry import IDENTITY, bounds, move, multiply, quad_of
from headrace.removal.documents.pdf.reading import Reader, matrix_of
from headrace.removal.documents.words import is_watermark_name

# Links, fields and comments are never marks.
_MAY_BE_MARKS = ("/Watermark", "/Stamp", "/FreeText")


@dataclass(frozen=True, slots=True)
class Note:
    at: int  # in the page's list
    kind: str
    drawing: Drawing


def notes_of(reader: Reader, page: pikepdf.Page) -> Iterator[Note]:
    listed = page.obj.get("/Annots")
    if not isinstance(listed, pikepdf.Array):
        return
    for at, annotation in enumerate(listed):
        if isinstance(annotation, pikepdf.Dictionary) and annotation.get("/Subtype") in _MAY_BE_MARKS:
            try:
                yield Note(at, str(annotation.Subtype)[1:].lower(), _drawing(reader, annotation))
            except (TypeError, ValueError, AttributeError, KeyError):  # without a place on the page it is not seen
                continue


def drop_notes(page: pikepdf.Page, places: set[int]) -> None:
    """Take annotations off a page, with the windows that belong to them."""
    listed = page.obj.Annots
    gone = {listed[at].objgen for at in places} - {(0, 0)}
    kept = [each for at, each in enumerate(listed) if at not in places and not _belongs_to(each, gone)]
    if kept:
        page.obj.Annots = pikepdf.Array(kept)
    else:
        del page.obj.Annots


def _belongs_to(annotation: Any, gone: set[tuple[int, int]]) -> bool:
    if not isinstance(annotation, pikepdf.Dictionary) or annotation.get("/Subtype") != "/Popup":
        return False
    parent = annotation.get("/Parent")
    return isinstance(parent, pikepdf.Dictionary) and parent.objgen in gone


def _drawing(reader: Reader, annotation: Any) -> Drawing:
    x0, y0, x1, y1 = (float(each) for each in annotation.Rect)
    quad = quad_of(min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1))
    subtype = str(annotation.Subtype)
    said = " ".join(str(annotation.get(key, "")) for key in ("/Contents", "/Subj", "/T", "/NM"))
    form = _appearance(reader, annotation, quad)
    inner = tuple(each.signature for each in form.drawings) if form is not None else ()
    alpha = float(annotation.get("/CA", 1.0))
    size = (round(x1 - x0), round(y1 - y0))
    return Drawing(
        Kind.FORM,
        hash(("annotation", subtype, str(annotation.get("/Contents", "")), inner, size)),
        0,
        0,
        quad,
        alpha,
        text=str(annotation.get("/Contents", "")) if form is None or not form.drawings else "",
        section=Section(named=True) if subtype == "/Watermark" or is_watermark_name(said) else None,
        form=form,
    )


def _appearance(reader: Reader, annotation: Any, quad: Any) -> Form | None:
    appearances = annotation.get("/AP")
    stream = appearances.get("/N") if isinstance(appearances, pikepdf.Dictionary) else None
    if not isinstance(stream, pikepdf.Stream):
        return None
    form = reader.form(stream, pikepdf.Dictionary(), 0)
    matrix = matrix_of(stream.get("/Matrix"))
    drawn = None
    if "/BBox" in stream:
        x0, y0, x1, y1 = (float(each) for each in stream.BBox)
        drawn = bounds([move(quad_of(x0, y0, x1, y1), matrix)])
    left, bottom, right, top = bounds([quad])
    if drawn is None or drawn[2] - drawn[0] <= 0 or drawn[3] - drawn[1] <= 0:
        return Form(stream, IDENTITY, form.drawings, form.named)
    across, along = (right - left) / (drawn[2] - drawn[0]), (top - bottom) / (drawn[3] - drawn[1])
    fit = (across, 0.0, 0.0, along, left - drawn[0] * across, bottom - drawn[1] * along)

    return Form(stream, multiply(matrix, fit), form.drawings, form.named)
