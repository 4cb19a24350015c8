"""Slides, layouts and masters of a presentation, and who shows whose shapes."""

from dataclasses import dataclass
from typing import Any, Final

from headrace.removal.documents.slides.package import Package, related
from headrace.removal.errors import DocumentUnreadable

P: Final = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
A: Final = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
R: Final = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
MC: Final = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
# ISO's strict form of the same format has other addresses; PowerPoint can write it, hardly anybody does.
_STRICT = "purl.oclc.org/ooxml"
EMU_PER_POINT: Final = 12_700.0  # in a point


@dataclass(frozen=True, slots=True)
class Sheet:
    """A part with shapes: a slide, a layout or a master."""

    part: str
    level: str  # slide, layout, master
    pages: tuple[int, ...]  # the slides on which its shapes are seen, from 1


@dataclass(frozen=True, slots=True)
class Deck:
    sheets: tuple[Sheet, ...]
    slides: int
    width: float  # points
    height: float


def read_deck(package: Package, path: str) -> Deck:
    """Raises ``DocumentUnreadable`` for a package that is no presentation."""
    main = next(related(package, "", "officeDocument"), None)
    if main is None:
        raise DocumentUnreadable(f"{path} is not a presentation: it has no main part.")
    root = package.tree(main)
    if _STRICT in str(root.tag):
        raise DocumentUnreadable(f"{path} is in the strict form of its format: save it as an ordinary .pptx first.")
    if root.tag != f"{P}presentation":
        raise DocumentUnreadable(f"{path} is an Office file, but no presentation.")
    targets = package.relations(main)
    slides = [targets[each.get(f"{R}id")].target for each in root.iter(f"{P}sldId") if each.get(f"{R}id") in targets]
    size = root.find(f"{P}sldSz")
    width, height = (
        (int(size.get(side, 0)) / EMU_PER_POINT for side in ("cx", "cy")) if size is not None else (960.0, 540.0)
    )
    sheets = _sheets(package, [part for part in slides if part in package])
    masters = set(related(package, main, "slideMaster"))
    sheets += _unused(package, sheets, masters)
    return Deck(tuple(sheets), len(slides), max(width, 1.0), max(height, 1.0))


def _sheets(package: Package, slides: list[str]) -> list[Sheet]:
    shown: dict[tuple[str, str], list[int]] = {}
    for number, slide in enumerate(slides, 1):
        shown.setdefault((slide, "slide"), []).append(number)
        layout = next(related(package, slide, "slideLayout"), None)
        if layout is None or not _shows_master(package, slide):
            continue
        shown.setdefault((layout, "layout"), []).append(number)
        master = next(related(package, layout, "slideMaster"), None)
        if master is not None and _shows_master(package, layout):
            shown.setdefault((master, "master"), []).append(number)
    return [Sheet(part, level, tuple(pages)) for (part, level), pages in shown.items()]


def _shows_master(package: Package, part: str) -> bool:
    return package.tree(part).get("showMasterSp", "1") not in ("0", "false")


def _unused(package: Package, sheets: list[Sheet], masters: set[str]) -> list[Sheet]:
    """Masters and layouts that no slide uses: the mark is in the file there, too."""
    known = {sheet.part for sheet in sheets}
    rest = [Sheet(part, "master", ()) for part in sorted(masters - known)]
    layouts = {layout for master in masters for layout in related(package, master, "slideLayout")}
    return rest + [Sheet(part, "layout", ()) for part in sorted(layouts - known)]


def shape_tree(root: Any) -> Any:
    """The element that holds the shapes of a sheet, or None."""
    return root.find(f"{P}cSld/{P}spTree")
