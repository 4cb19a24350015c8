"""Takes shapes out of a presentation, with everything that only they needed."""

from collections.abc import Iterable
from typing import Any

from headrace.removal.documents.slides.deck import P, R
from headrace.removal.documents.slides.package import Package, related
from headrace.removal.documents.slides.shapes import Shape
from headrace.removal.documents.slides.timing import forget_shapes


def take_off(package: Package, shapes: Iterable[Shape]) -> None:
    """Remove shapes; then relations and parts that nothing needs any more, such as the mark's picture."""
    before = package.reachable()
    by_part: dict[str, list[Shape]] = {}
    for shape in shapes:
        by_part.setdefault(shape.sheet.part, []).append(shape)
    for part, gone in by_part.items():
        _take_off_sheet(package, part, gone)
    _drop_thumbnail(package)
    for part in sorted(before - package.reachable()):
        package.drop(part)


def _take_off_sheet(package: Package, part: str, shapes: list[Shape]) -> None:
    root = package.tree(part)
    ids, pointed = set[str](), set[str]()
    for shape in shapes:
        ids |= {str(node.get("id")) for node in shape.element.iter(f"{P}cNvPr")}
        pointed |= _pointed(shape.element)
        _remove(shape.element)
    # Numbers should be the slide's alone, but some programs use one twice.
    ids -= {str(node.get("id")) for node in root.iter(f"{P}cNvPr")}
    forget_shapes(root, ids)
    package.changed.add(part)
    for relation in pointed - _pointed(root):
        if relation in package.relations(part):
            package.drop_relation(part, relation)


def _pointed(element: Any) -> set[str]:
    """Ids of relations that an element uses."""
    return {
        value
        for node in element.iter()
        if isinstance(node.tag, str)
        for attribute, value in node.attrib.items()
        if attribute.startswith(R)
    }


def _remove(element: Any) -> None:
    above = element.getparent()
    if above is None:
        return  # inside a group that is gone already
    above.remove(element)
    if above.tag == f"{P}grpSp" and not any(each.find(f".//{P}cNvPr") is not None for each in above[2:]):
        _remove(above)


def _drop_thumbnail(package: Package) -> None:
    """The small picture of the first slide shows the mark; programs make a new one when they save."""
    shown = set(related(package, "", "thumbnail"))
    for relation in list(package.relations("").values()):
        if relation.target in shown:
            package.drop_relation("", relation.id)
