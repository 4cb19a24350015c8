"""Reads content streams into drawings. Nothing is changed here.

What is broken in a stream is passed over as viewers do it: a page that cannot be read at all has no drawings.
"""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pikepdf
from pikepdf.exceptions import PikepdfError

from headrace.removal.documents.pdf.bombs import TooLarge, require_small
from headrace.removal.documents.pdf.drawings import Drawing, Form, Kind, Section, Tile
from headrace.removal.documents.pdf.fonts import Font, read_font
from headrace.removal.documents.pdf.geometry import (
    IDENTITY,
    Matrix,
    bounds,
    linear,
    move,
    multiply,
    quad_of,
)
from headrace.removal.documents.pdf.marked_content import section_of
from headrace.removal.documents.pdf.paths import around
from headrace.removal.documents.pdf.state import State, luminance
from headrace.removal.documents.pdf.text import TextLine

MAX_FORM_DEPTH = 12  # forms within forms
MAX_INSTRUCTIONS = 5_000_000  # in one stream
_MAX_KEPT_DRAWINGS = 50_000  # drawings of forms that are remembered
_PAINTS = {"S": True, "s": True, "f": False, "F": False, "f*": False, "B": False, "B*": False, "b": False, "b*": False}
_BUILDS = ("m", "l", "c", "v", "y", "re", "h")
_BROKEN = (TypeError, ValueError, AttributeError, KeyError, IndexError, ArithmeticError, PikepdfError)

Object = Any


class Reader:
    """Reads the streams of one document, and remembers its fonts, forms and pictures."""

    def __init__(self) -> None:
        self._fonts: dict[tuple[int, int], Font] = {}
        self._forms: dict[tuple[int, int], tuple[Drawing, ...]] = {}
        self._pictures: dict[tuple[int, int], int] = {}
        self._kept = 0
        self.unreadable = 0

    def page(self, page: pikepdf.Page) -> tuple[Drawing, ...]:
        return self.stream(page, resources_of(page.obj), depth=0)

    def stream(self, source: Object, resources: Object, *, depth: int) -> tuple[Drawing, ...]:
        try:
            instructions = parse(source)
        except _BROKEN:
            self.unreadable += 1
            return ()
        return tuple(_Run(self, resources, depth).read(instructions))

    def form(self, xobject: Object, resources: Object, depth: int) -> Form:
        matrix = matrix_of(xobject.get("/Matrix"))
        named = _is_acrobat_watermark(xobject)
        if depth >= MAX_FORM_DEPTH:
            return Form(xobject, matrix, (), named)
        own = xobject.get("/Resources")
        known = self._forms.get(xobject.objgen)
        if known is None:
            self._forms[xobject.objgen] = ()  # a form that draws itself draws nothing
            known = self.stream(xobject, resources if own is None else own, depth=depth + 1)
            self._remember(xobject.objgen, known)
        return Form(xobject, matrix, known, named)

    def tile(self, pattern: Object, depth: int) -> Tile | None:
        """What a tiling pattern repeats; None for a gradient."""
        if not isinstance(pattern, pikepdf.Stream) or depth >= MAX_FORM_DEPTH:
            return None
        matrix = matrix_of(pattern.get("/Matrix"))
        drawings = self.form(pattern, pikepdf.Dictionary(), depth).drawings
        steps = abs(float(pattern.get("/XStep", 1)) * float(pattern.get("/YStep", 1)))
        area = steps * abs(matrix[0] * matrix[3] - matrix[1] * matrix[2])
        return Tile(tuple(replace(each, quad=move(each.quad, matrix)) for each in drawings), max(area, 1.0))

    def _remember(self, key: tuple[int, int], drawings: tuple[Drawing, ...]) -> None:
        self._kept += len(drawings) + 1
        if self._kept > _MAX_KEPT_DRAWINGS:
            self._forms.clear()
            self._kept = 0
        self._forms[key] = drawings

    def font(self, font: Object) -> Font:
        if not isinstance(font, pikepdf.Dictionary):
            return Font()
        key = font.objgen
        if key == (0, 0):
            return read_font(font)
        if key not in self._fonts:
            self._fonts[key] = read_font(font)
        return self._fonts[key]

    def picture(self, xobject: Object) -> int:
        """What a picture holds, as a number."""
        if xobject.objgen not in self._pictures:
            self._pictures[xobject.objgen] = _content(xobject)
        return self._pictures[xobject.objgen]


def parse(source: Object) -> list[Any]:
    """The instructions of a page or a form. Raises ``TooLarge``."""
    require_small(source)
    instructions: list[Any] = list(pikepdf.parse_content_stream(source))
    if len(instructions) > MAX_INSTRUCTIONS:
        raise TooLarge(f"a page has more than {MAX_INSTRUCTIONS:,} instructions")
    return instructions


def operator_of(instruction: Any) -> str:
    """The name of an instruction; of one that is no text, and so none, nothing."""
    try:
        return str(instruction.operator)
    except UnicodeDecodeError:
        return ""


def resources_of(page: Object) -> Object:
    """A page's resources, its own or those of the tree above it."""
    for _ in range(64):
        if (found := page.get("/Resources")) is not None:
            return found
        page = page.get("/Parent")
        if page is None:
            break
    return pikepdf.Dictionary()


def matrix_of(value: Object) -> Matrix:
    try:
        a, b, c, d, e, f = (float(each) for each in value)
    except (TypeError, ValueError):
        return IDENTITY
    return (a, b, c, d, e, f)


def _content(xobject: Object) -> int:
    digest = hashlib.blake2b(digest_size=8)
    for stream in (xobject, xobject.get("/SMask")):
        if isinstance(stream, pikepdf.Stream):
            digest.update(stream.read_raw_bytes())
            digest.update(f"{stream.get('/Width')} {stream.get('/Height')} {stream.get('/Filter')}".encode())
    return int.from_bytes(digest.digest(), "big")


def _is_acrobat_watermark(xobject: Object) -> bool:
    try:
        return bool(xobject.PieceInfo.ADBE_CompoundType.Private == "/Watermark")
    except (AttributeError, KeyError, TypeError):
        return False


class _Run:
    """One pass over one stream."""

    def __init__(self, reader: Reader, resources: Object, depth: int) -> None:
        self._reader, self._resources, self._depth = reader, resources, depth
        self._state, self._saved = State(), list[State]()
        self._sections: list[Section | None] = []
        self._found: list[Drawing] = []
        self._line = TextLine()
        self._path: list[Any] = []
        self._path_from, self._clips = 0, False
        self._at = 0

    def read(self, instructions: list[Any]) -> list[Drawing]:
        for self._at, instruction in enumerate(instructions):
            name = operator_of(instruction)
            if name in _BUILDS:
                if not self._path:
                    self._path_from = self._at
                self._path.append((name, tuple(instruction.operands)))
                continue
            if (act := _ACTS.get(name)) is None:
                continue
            try:
                act(self, name, instruction)
            except _BROKEN:  # too few operands, a name that leads nowhere: viewers go on
                continue
        self._end_line()
        return self._found

    # state

    def save(self, _name: str, _given: Any) -> None:
        self._saved.append(self._state.saved())

    def restore(self, _name: str, _given: Any) -> None:
        if self._saved:
            self._state = self._saved.pop()

    def concatenate(self, _name: str, given: Any) -> None:
        self._state.ctm = multiply(matrix_of(given.operands), self._state.ctm)

    def parameters(self, _name: str, given: Any) -> None:
        self._state.use(self._resource("/ExtGState", given.operands[0]))

    def colour(self, name: str, given: Any) -> None:
        operands = given.operands
        pattern = bool(operands) and isinstance(operands[-1], pikepdf.Name)
        tile = self._reader.tile(self._resource("/Pattern", operands[-1]), self._depth) if pattern else None
        # One component in a colour space of its own may be ink as well as light.
        unknown = pattern or (len(operands) == 1 and name not in ("g", "G"))
        value = None if unknown else luminance([float(each) for each in operands])
        if name.isupper():
            self._state.stroke = value
        else:
            self._state.fill, self._state.tile = value, tile

    # marked content

    def begin_section(self, _name: str, given: Any) -> None:
        properties = given.operands[1] if len(given.operands) > 1 else None
        if isinstance(properties, pikepdf.Name):
            properties = self._resource("/Properties", properties)
        self._sections.append(section_of(str(given.operands[0]), properties))

    def end_section(self, _name: str, _given: Any) -> None:
        self._end_line()
        if self._sections:
            self._sections.pop()

    def _section(self) -> Section | None:
        sections = [each for each in self._sections if each is not None]
        named = next((each for each in sections if each.named), None)
        return named or next(iter(sections), None)

    # paths

    def clip(self, _name: str, _given: Any) -> None:
        self._clips = True

    def paint(self, name: str, _given: Any) -> None:
        path, clips = self._path, self._clips
        self._path, self._clips = [], False
        if name == "n" or not path:
            return
        state, stroked = self._state, _PAINTS[name]
        tile = None if stroked else state.tile
        signature = hash(("path", name, tuple(path), linear(state.ctm), self._look(stroked), _tile_content(tile)))
        self._add(
            Drawing(
                Kind.PATH, signature, self._path_from, self._at, around(path, state.ctm),
                state.alpha(stroked=stroked), state.luminance(stroked=stroked), segments=len(path),
                subpaths=sum(step in ("m", "re") for step, _ in path), clips=clips,
                tile=tile, section=self._section(),
            )
        )  # fmt: skip

    def _look(self, stroked: bool) -> tuple[float, float | None]:
        shade = self._state.luminance(stroked=stroked)
        return round(self._state.alpha(stroked=stroked), 3), None if shade is None else round(shade, 3)

    def shade(self, _name: str, given: Any) -> None:
        signature = hash(("shading", str(given.operands[0]), linear(self._state.ctm)))
        quad = quad_of(0, 0, 1, 1, self._state.ctm)
        alpha = self._state.alpha(stroked=False)
        self._add(Drawing(Kind.SHADING, signature, self._at, self._at, quad, alpha, section=self._section()))

    # pictures and forms

    def inline_picture(self, _name: str, given: Any) -> None:
        signature = hash(("inline", given.iimage.unparse(), linear(self._state.ctm)))
        self._add(
            Drawing(Kind.PICTURE, signature, self._at, self._at, quad_of(0, 0, 1, 1, self._state.ctm),
                    self._state.alpha(stroked=False), section=self._section())
        )  # fmt: skip

    def draw_xobject(self, _name: str, given: Any) -> None:
        xobject = self._resource("/XObject", given.operands[0])
        if not isinstance(xobject, pikepdf.Stream):
            return
        section = self._section()
        if section is None or not section.named:  # a layer of the form does not hide a watermark section around it
            section = section_of("/OC", xobject.get("/OC")) or section
        if xobject.get("/Subtype") == "/Form":
            self._draw_form(xobject, section)
        elif xobject.get("/Subtype") == "/Image":
            state = self._state
            signature = hash(("picture", self._reader.picture(xobject), linear(state.ctm), self._look(False)))
            self._add(
                Drawing(Kind.PICTURE, signature, self._at, self._at, quad_of(0, 0, 1, 1, state.ctm),
                        state.alpha(stroked=False), section=section, picture=xobject.objgen,
                        soft="/SMask" in xobject)
            )  # fmt: skip

    def _draw_form(self, xobject: Object, section: Section | None) -> None:
        form = self._reader.form(xobject, self._resources, self._depth)
        form = Form(xobject, multiply(form.matrix, self._state.ctm), form.drawings, form.named)
        # By what it draws: some programs write another object with other names for every page.
        inner = tuple((each.signature, *(round(x) for point in each.quad for x in point)) for each in form.drawings)
        content = inner or self._reader.picture(xobject)
        signature = hash(("form", content, linear(self._state.ctm), self._look(False)))
        quads = [move(each.quad, form.matrix) for each in form.drawings] or [quad_of(0, 0, 1, 1, form.matrix)]
        if form.named:
            section = Section(named=True)
        self._add(
            Drawing(Kind.FORM, signature, self._at, self._at, quad_of(*bounds(quads)),
                    self._state.alpha(stroked=False), section=section, form=form)
        )  # fmt: skip

    # text

    def begin_text(self, _name: str, _given: Any) -> None:
        self._end_line()
        self._line.reset()

    def end_text(self, _name: str, _given: Any) -> None:
        self._end_line()

    def set_text(self, name: str, given: Any) -> None:
        state, operands = self._state, given.operands
        if name == "Tf":
            state.font = self._reader.font(self._resource("/Font", operands[0]))
            state.size = float(operands[1])
        elif name == "Tz":
            state.scale = float(operands[0]) / 100
        else:
            value = float(operands[0])
            setattr(state, _TEXT_STATE[name], int(value) if name == "Tr" else value)

    def position(self, name: str, given: Any) -> None:
        self._end_line()
        numbers = [float(each) for each in given.operands]
        if name == "Tm":
            self._line.put(matrix_of(numbers))
            return
        if name == "TD":
            self._state.leading = -numbers[1]
        self._line.move(*((0.0, -self._state.leading) if name == "T*" else numbers))

    def show(self, name: str, given: Any) -> None:
        operands = given.operands
        if name in ("'", '"'):
            if name == '"':
                self._state.word_space, self._state.character_space = float(operands[0]), float(operands[1])
            self._end_line()
            self._line.move(0.0, -self._state.leading)
        shown = operands[0] if name == "TJ" else [operands[-1]]
        self._line.show(self._at, list(shown), self._state, self._section())

    def _end_line(self) -> None:
        if (drawing := self._line.take()) is not None:
            self._add(drawing)

    def _add(self, drawing: Drawing) -> None:
        self._found.append(drawing)

    def _resource(self, kind: str, name: Object) -> Object:
        category = self._resources.get(kind)
        return None if category is None else category.get(str(name))


def _tile_content(tile: Tile | None) -> tuple[int, ...]:
    return () if tile is None else tuple(each.signature for each in tile.drawings)


_TEXT_STATE = {"Tc": "character_space", "Tw": "word_space", "TL": "leading", "Ts": "rise", "Tr": "render"}
_ACTS: dict[str, Callable[[_Run, str, Any], None]] = {
    "q": _Run.save, "Q": _Run.restore, "cm": _Run.concatenate, "gs": _Run.parameters,
    **dict.fromkeys(("g", "G", "rg", "RG", "k", "K", "sc", "SC", "scn", "SCN"), _Run.colour),
    "BMC": _Run.begin_section, "BDC": _Run.begin_section, "EMC": _Run.end_section,
    "W": _Run.clip, "W*": _Run.clip, **dict.fromkeys((*_PAINTS, "n"), _Run.paint), "sh": _Run.shade,
    "Do": _Run.draw_xobject, "INLINE IMAGE": _Run.inline_picture,
    "BT": _Run.begin_text, "ET": _Run.end_text, **dict.fromkeys((*_TEXT_STATE, "Tf", "Tz"), _Run.set_text),
    **dict.fromkeys(("Td", "TD", "Tm", "T*"), _Run.position), **dict.fromkeys(("Tj", "TJ", "'", '"'), _Run.show),
}  # fmt: skip
