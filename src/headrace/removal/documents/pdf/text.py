"""Strings that are shown one after the other, as one drawing.

They belong together until the next move: each begins where the former ended, so that one alone cannot be taken out.
"""

from typing import Any

import pikepdf

from headrace.removal.documents.pdf.drawings import Drawing, Kind, Section
from headrace.removal.documents.pdf.geometry import IDENTITY, Matrix, linear, multiply, quad_of
from headrace.removal.documents.pdf.state import State

_ASCENT_RATIO, _DESCENT_RATIO = 0.95, -0.3  # of an em; most letters are smaller
_INVISIBLE_MODES, _STROKED_MODES, _FIRST_CLIPPING_MODE = (3, 7), (1, 5), 4


class TextLine:
    def __init__(self) -> None:
        self.reset()
        self._clear()

    def reset(self) -> None:
        self._start: Matrix = IDENTITY

    def _clear(self) -> None:
        self._shown: list[bytes] = []
        self._text, self._glyphs = "", 0
        self._advance, self._height = 0.0, 0.0
        self._first: tuple[int, State, Section | None] | None = None
        self._last = 0

    def put(self, matrix: Matrix) -> None:
        self._start = matrix

    def move(self, right: float, up: float) -> None:
        self._start = multiply((1.0, 0.0, 0.0, 1.0, right, up), self._start)

    def show(self, at: int, operands: list[Any], state: State, section: Section | None) -> None:
        if self._first is None:
            self._first = (at, state.saved(), section)
        self._last = at
        self._height = max(self._height, abs(state.size))
        for each in operands:
            if isinstance(each, pikepdf.String):
                self._add(bytes(each), state)
            else:
                self._advance -= float(each) / 1000 * state.size * state.scale

    def _add(self, shown: bytes, state: State) -> None:
        font = state.font
        self._shown.append(shown)
        self._text += font.decode(shown)
        self._glyphs += font.glyphs(shown)
        spaces = shown.count(b" ") if font.code_bytes == 1 else 0
        width = state.size if font.vertical else font.width(shown) * state.size
        self._advance += (width + font.glyphs(shown) * state.character_space + spaces * state.word_space) * state.scale

    def take(self) -> Drawing | None:
        """The strings since the last move, if there are any."""
        if self._first is None:
            return None
        at, state, section = self._first
        matrix = multiply(self._start, state.ctm)
        stroked = state.render in _STROKED_MODES
        shown = self._text or b"|".join(self._shown)
        alpha, shade = state.alpha(stroked=stroked), state.luminance(stroked=stroked)
        look = (round(state.size, 2), round(alpha, 3), None if shade is None else round(shade, 3))
        drawing = Drawing(
            Kind.TEXT,
            hash(("text", shown, state.font.name, linear(matrix), look)),
            at,
            self._last,
            quad_of(
                min(0.0, self._advance),
                state.rise + _DESCENT_RATIO * self._height,
                max(self._advance, 0.0),
                state.rise + _ASCENT_RATIO * self._height,
                matrix,
            ),
            alpha,
            shade,
            self._text,
            self._glyphs,
            visible=state.render not in _INVISIBLE_MODES,
            # Text that clips decides where later drawings are seen: it has to stay.
            clips=state.render >= _FIRST_CLIPPING_MODE,
            section=section,
        )
        self._clear()
        return drawing
