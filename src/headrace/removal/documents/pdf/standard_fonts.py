"""The widths of the fonts that every reader has, which files leave out: Adobe's metrics of the standard 14."""

import json
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

_FIRST_CHARACTER_CODE = 32
_COURIER_WIDTH_UNITS = 600
_EM_UNITS = 1000.0
_FAMILIES = {"arial": "Helvetica", "helvetica": "Helvetica", "times": "Times", "courier": "Courier"}
# The upright and the slanted Helvetica have the same widths.
_FACES = {
    ("Helvetica", False, False): "Helvetica",
    ("Helvetica", False, True): "Helvetica",
    ("Helvetica", True, False): "Helvetica-Bold",
    ("Helvetica", True, True): "Helvetica-Bold",
    ("Times", False, False): "Times-Roman",
    ("Times", False, True): "Times-Italic",
    ("Times", True, False): "Times-Bold",
    ("Times", True, True): "Times-BoldItalic",
}
_NAME = re.compile(
    r"(arial|helvetica|times|courier)(?:new)?(?:roman)?(?:ps)?(?:mt)?[,-]?(?:roman|bold|italic|oblique|mt)*"
)


@cache
def standard_widths(name: str) -> Mapping[int, float] | None:
    """In ems by the codes of WinAnsiEncoding; None for a font that is none of the 14."""
    plain = name.lower().replace(" ", "")
    found = _NAME.fullmatch(plain)
    if found is None:
        return None
    family = _FAMILIES[found[1]]
    if family == "Courier":
        return dict.fromkeys(range(_FIRST_CHARACTER_CODE, 256), _COURIER_WIDTH_UNITS / _EM_UNITS)
    face = _FACES[family, "bold" in plain, "italic" in plain or "oblique" in plain]
    widths = _table()[face]
    return {_FIRST_CHARACTER_CODE + at: width / _EM_UNITS for at, width in enumerate(widths) if width}


@cache
def _table() -> dict[str, list[int]]:
    table: dict[str, list[int]] = json.loads(
        files("headrace.removal.documents.pdf").joinpath("standard_widths.json").read_text()
    )
    return table
