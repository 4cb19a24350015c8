"""What a string in a content stream says, and how wide it is."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pikepdf
from fontTools.agl import toUnicode
from pikepdf.exceptions import PikepdfError

from headrace.removal.documents.pdf.standard_fonts import standard_widths

_EM_UNITS = 1000.0
_DEFAULT_WIDTH_RATIO = 0.6  # of an em, where a font says nothing of its widths
_MAX_CMAP_BYTES = 1_000_000  # bytes
_HEX = rb"<\s*([0-9A-Fa-f\s]*)>"
_BFCHAR = re.compile(_HEX + rb"\s*" + _HEX)
_BFRANGE = re.compile(_HEX + rb"\s*" + _HEX + rb"\s*(?:" + _HEX + rb"|\[([^\]]*)\])")
_BLOCK = re.compile(rb"begin(bfchar|bfrange)(.*?)end(?:bfchar|bfrange)", re.DOTALL)
_SUBSET = re.compile(r"^/?[A-Z]{6}\+")
# By a part of the encoding's name.
_CODECS = {
    "UCS2": "utf-16-be", "UTF16": "utf-16-be", "GB": "gb18030", "RKSJ": "cp932", "B5": "big5", "UHC": "cp949",
    "KSC-EUC": "euc_kr",
}  # fmt: skip


@dataclass(slots=True)
class Font:
    name: str = ""  # without the letters of a subset: it is another on every page that was merged in
    code_bytes: int = 1
    letters: Mapping[int, str] = field(default_factory=dict)
    widths: Mapping[int, float] = field(default_factory=dict)  # in ems
    other_width: float = _DEFAULT_WIDTH_RATIO
    vertical: bool = False
    codec: str | None = None  # of strings in one of the encodings that every reader knows

    def decode(self, shown: bytes) -> str:
        """The text; unknown codes are left out."""
        if self.codec is not None and not self.letters:
            return shown.decode(self.codec, "ignore")
        if self.code_bytes == 1:
            return "".join(self.letters.get(code) or _latin(code, self.letters) for code in shown)
        return "".join(self.letters.get(code, "") for code in self._codes(shown))

    def width(self, shown: bytes) -> float:
        if self.codec is not None:
            return self.other_width * self.glyphs(shown)
        codes = shown if self.code_bytes == 1 else self._codes(shown)
        return sum(self.widths.get(code, self.other_width) for code in codes)

    def glyphs(self, shown: bytes) -> int:
        if self.codec is not None:
            return len(shown.decode(self.codec, "ignore"))
        return len(shown) // self.code_bytes

    def _codes(self, shown: bytes) -> list[int]:
        return [int.from_bytes(shown[at : at + 2], "big") for at in range(0, len(shown) - 1, 2)]


def _latin(code: int, letters: Mapping[int, str]) -> str:
    # A map that leaves codes out is one of a subset: what it does not name cannot be guessed.
    return chr(code) if not letters and 32 <= code < 256 else ""


def read_font(font: Any) -> Font:
    """What a font dictionary says; of a broken one, as much as can be read."""
    if not isinstance(font, pikepdf.Dictionary):
        return Font()
    name = _SUBSET.sub("", str(font.get("/BaseFont", ""))).lstrip("/")
    try:
        if font.get("/Subtype") == "/Type0":
            return _composite(font, name)
        letters = _to_unicode(font) or _differences(font)
        return Font(name, 1, letters, _simple_widths(font, name), _missing_width(font))
    except (TypeError, ValueError, AttributeError, KeyError, IndexError, PikepdfError):
        return Font(name)


def _composite(font: pikepdf.Dictionary, name: str) -> Font:
    descendants = font.get("/DescendantFonts")
    descendant: Any = descendants[0] if isinstance(descendants, pikepdf.Array) and len(descendants) else {}
    widths = _cid_widths(descendant.get("/W"))
    other = float(descendant.get("/DW", 1000)) / _EM_UNITS
    named = font.get("/Encoding")
    encoding = str(named) if isinstance(named, pikepdf.Name) else ""
    codec = next((codec for part, codec in _CODECS.items() if part in encoding), None)
    return Font(name, 2, _to_unicode(font), widths, other, encoding.endswith("-V"), codec)


def _simple_widths(font: pikepdf.Dictionary, name: str) -> Mapping[int, float]:
    widths = font.get("/Widths")
    if not isinstance(widths, pikepdf.Array):
        return standard_widths(name) or {}
    # The glyphs of a Type 3 font are in units of their own.
    unit = abs(float(font.FontMatrix[0])) if font.get("/Subtype") == "/Type3" else 1 / _EM_UNITS
    first = int(font.get("/FirstChar", 0))
    return {first + at: float(width) * unit for at, width in enumerate(widths)}


def _missing_width(font: pikepdf.Dictionary) -> float:
    descriptor = font.get("/FontDescriptor")
    missing = float(descriptor.get("/MissingWidth", 0)) if isinstance(descriptor, pikepdf.Dictionary) else 0.0
    return missing / _EM_UNITS or _DEFAULT_WIDTH_RATIO


def _cid_widths(listed: Any) -> dict[int, float]:
    widths: dict[int, float] = {}
    values = list(listed) if isinstance(listed, pikepdf.Array) else []
    at = 0
    while at + 1 < len(values):
        first = int(values[at])
        if isinstance(values[at + 1], pikepdf.Array):
            widths |= {first + n: float(width) / _EM_UNITS for n, width in enumerate(values[at + 1])}
            at += 2
            continue
        if at + 2 >= len(values):
            break
        last = min(int(values[at + 1]), first + 0xFFFF)
        widths |= dict.fromkeys(range(first, last + 1), float(values[at + 2]) / _EM_UNITS)
        at += 3
    return widths


def _to_unicode(font: pikepdf.Dictionary) -> dict[int, str]:
    stream = font.get("/ToUnicode")
    if not isinstance(stream, pikepdf.Stream):
        return {}
    letters: dict[int, str] = {}
    for kind, block in _BLOCK.findall(stream.read_bytes()[:_MAX_CMAP_BYTES]):
        if kind == b"bfchar":
            letters |= {_number(code): _unicode(text) for code, text in _BFCHAR.findall(block)}
            continue
        for first, last, text, listed in _BFRANGE.findall(block):
            letters |= _range(_number(first), _number(last), text, listed)
    return letters


def _range(first: int, last: int, text: bytes, listed: bytes) -> dict[int, str]:
    last = min(last, first + 0xFFFF)
    if listed:
        texts = re.findall(_HEX, listed)
        return {code: _unicode(each) for code, each in zip(range(first, last + 1), texts, strict=False)}
    start = _unicode(text)
    if not start:
        return {}
    letters = {}
    for code in range(first, last + 1):
        point = ord(start[-1]) + code - first
        letters[code] = start[:-1] + (chr(point) if point < 0x110000 else "")
    return letters


def _number(text: bytes) -> int:
    return int(b"".join(text.split()) or b"0", 16) & 0xFFFFFFFF


def _unicode(text: bytes) -> str:
    digits = b"".join(text.split())
    return bytes.fromhex((digits + b"0" * (len(digits) % 2)).decode()).decode("utf-16-be", "ignore")


def _differences(font: pikepdf.Dictionary) -> dict[int, str]:
    encoding = font.get("/Encoding")
    listed = encoding.get("/Differences") if isinstance(encoding, pikepdf.Dictionary) else None
    if not isinstance(listed, pikepdf.Array):
        return {}
    letters, code = {code: chr(code) for code in range(32, 127)}, 0
    each: Any
    for each in listed:
        if isinstance(each, int):
            code = each
            continue
        letters[code] = _glyph_letter(str(each).lstrip("/"))
        code += 1
    return letters


def _glyph_letter(name: str) -> str:
    return str(toUnicode(name))
