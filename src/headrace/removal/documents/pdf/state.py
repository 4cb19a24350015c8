"""The graphics state of a content stream, as far as it says how a drawing looks."""

from dataclasses import dataclass, field
from typing import Any

import pikepdf

from headrace.removal.documents.pdf.drawings import Tile
from headrace.removal.documents.pdf.fonts import Font
from headrace.removal.documents.pdf.geometry import IDENTITY, Matrix

# A soft mask hides a part of what is drawn, another mode mixes it with what is below: both are seen through.
_SOFT_MASK_ALPHA_RATIO, _BLENDED_ALPHA_RATIO = 0.6, 0.8
_MIXING = ("/Multiply", "/Screen", "/Overlay", "/Darken", "/Lighten", "/SoftLight", "/HardLight", "/ColorBurn")


@dataclass(slots=True)
class State:
    ctm: Matrix = IDENTITY
    fill_alpha: float = 1.0
    stroke_alpha: float = 1.0
    mixing: float = 1.0
    fill: float | None = 0.0  # luminance; None is unknown
    stroke: float | None = 0.0
    tile: Tile | None = None  # what paths are filled with instead of a colour
    font: Font = field(default_factory=Font)
    size: float = 1.0
    character_space: float = 0.0
    word_space: float = 0.0
    scale: float = 1.0
    leading: float = 0.0
    rise: float = 0.0
    render: int = 0

    def saved(self) -> "State":
        # Written out, because streams save their state all the time, and copying by reflection is ten times slower.
        return State(
            self.ctm, self.fill_alpha, self.stroke_alpha, self.mixing, self.fill, self.stroke, self.tile, self.font,
            self.size, self.character_space, self.word_space, self.scale, self.leading, self.rise, self.render,
        )  # fmt: skip

    def alpha(self, *, stroked: bool) -> float:
        return (self.stroke_alpha if stroked else self.fill_alpha) * self.mixing

    def luminance(self, *, stroked: bool) -> float | None:
        return self.stroke if stroked else self.fill

    def use(self, parameters: Any) -> None:
        """Take over an ExtGState dictionary."""
        if not isinstance(parameters, pikepdf.Dictionary):
            return
        self.fill_alpha = _share(parameters.get("/ca"), self.fill_alpha)
        self.stroke_alpha = _share(parameters.get("/CA"), self.stroke_alpha)
        mask, blend = parameters.get("/SMask"), parameters.get("/BM")
        if isinstance(blend, pikepdf.Array):
            blend = blend[0] if len(blend) else None
        if mask is not None or blend is not None:
            mixes = blend is not None and str(blend) in _MIXING
            self.mixing = _SOFT_MASK_ALPHA_RATIO if isinstance(mask, pikepdf.Dictionary) else 1.0
            self.mixing *= _BLENDED_ALPHA_RATIO if mixes else 1.0


def _share(value: Any, otherwise: float) -> float:
    try:
        return otherwise if value is None else min(max(float(value), 0.0), 1.0)
    except (TypeError, ValueError):
        return otherwise


def luminance(components: list[float]) -> float | None:
    """How light a colour is, by the number of its components; None where that does not tell."""
    if len(components) == 1:
        return components[0]
    if len(components) == 3:
        red, green, blue = components
        return 0.3 * red + 0.59 * green + 0.11 * blue
    if len(components) == 4:
        cyan, magenta, yellow, black = components
        return (1 - black) * (1 - 0.3 * cyan - 0.59 * magenta - 0.11 * yellow)
    return None
