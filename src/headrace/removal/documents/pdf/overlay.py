"""A picture of the page with the surest candidate, and boxes around all that are on it."""

from contextlib import closing

import pypdfium2
from PIL import Image, ImageDraw, ImageFont

from headrace.removal.documents.pdf.pages import PageFrame
from headrace.removal.errors import DocumentUnreadable, TargetUnusable
from headrace.removal.report import Candidate

_PAGE_SIDE_PX = 1600.0  # pixels
_CERTAIN_RGB, _DOUBTFUL_RGB = (200, 0, 0), (220, 130, 0)
_LINE_PX, _LETTER_PX = 3, 28  # pixels


def draw_overlay(
    source: str, target: str, *, password: str | None, candidates: tuple[Candidate, ...], frame: PageFrame
) -> None:
    """Write a PNG: red is certain, orange is for the user to judge. ``frame`` is the first candidate's page's."""
    number = candidates[0].pages[0]
    picture = _drawn(source, number, password)
    draw, scale = ImageDraw.Draw(picture), picture.width / frame.seen_width()
    for each in reversed(candidates):
        if number not in each.pages:
            continue
        colour = _CERTAIN_RGB if each.certain else _DOUBTFUL_RGB
        left, top = each.box.left * scale, each.box.top * scale
        right, bottom = left + each.box.width * scale, top + each.box.height * scale
        draw.rectangle((left, top, right, bottom), outline=colour, width=_LINE_PX)
        at = (min(max(left, 0), picture.width - _LETTER_PX) + 6, min(max(top, 0), picture.height - _LETTER_PX) + 4)
        draw.text(at, str(each.id), fill=colour, font=ImageFont.load_default(_LETTER_PX))
    _save(picture, target)


def draw_sides(before: str, after: str, target: str, *, password: str | None, number: int) -> None:
    """Write a PNG of one page, as it was and as it is, side by side."""
    left, right = (_drawn(path, number, password) for path in (before, after))
    sides = Image.new("RGB", (left.width + right.width, max(left.height, right.height)), "white")
    sides.paste(left, (0, 0))
    sides.paste(right, (left.width, 0))
    _save(sides, target)


def _drawn(source: str, number: int, password: str | None) -> Image.Image:
    try:
        with closing(pypdfium2.PdfDocument(source, password=password)) as document:
            page = document[number - 1]
            picture: Image.Image = page.render(scale=min(_PAGE_SIDE_PX / max(*page.get_size(), 1.0), 4.0)).to_pil()
            return picture.convert("RGB")
    except pypdfium2.PdfiumError as exc:
        raise DocumentUnreadable(f"Page {number} of {source} cannot be drawn: {exc}") from exc


def _save(picture: Image.Image, target: str) -> None:
    try:
        picture.save(target, "PNG")
    except OSError as exc:
        raise TargetUnusable(f"{target} could not be written: {exc.strerror or exc}") from exc
