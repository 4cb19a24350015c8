"""Holds the result against the original: only the mark is gone, and every reference has its target."""

from collections import Counter
from typing import Any

from headrace.removal.documents.slides.deck import A, Deck, P, R, read_deck
from headrace.removal.documents.slides.package import Package
from headrace.removal.documents.slides.shapes import Shape, shapes_on
from headrace.removal.errors import DocumentUnreadable
from headrace.removal.report import Check


def check(before: str, after: str, taken: list[Shape]) -> Check:
    """Reads both files again; nothing in memory is trusted."""
    old, new = Package(before), Package(after)
    try:
        first, second = read_deck(old, before), read_deck(new, after)
        reason = _damage(old, new, first, second, taken)
        before_count, after_count = _copies(old, first, taken), _copies(new, second, taken)
    except DocumentUnreadable as exc:
        return Check(False, f"The result cannot be read: {exc.message}", 1.0, 1.0, 0.0, 0)
    finally:
        new.close()
        old.close()
    expected = before_count - len(taken)
    residue = max(after_count - expected, 0) / max(len(taken), 1)
    if reason is None and residue:
        reason = "The mark is still in the file."
    pages = len({page for shape in taken for page in shape.sheet.pages})
    return Check(reason is None, reason, 1.0, round(residue, 4), _area(taken, first), pages)


def _damage(old: Package, new: Package, first: Deck, second: Deck, taken: list[Shape]) -> str | None:
    if (first.slides, len(first.sheets)) != (second.slides, len(second.sheets)):
        return "The result has another number of slides."
    changed = {shape.sheet.part for shape in taken}
    for name in new.names():
        if name not in old:
            return f"{name} is new."
        if name not in changed and not name.endswith((".rels", ".xml")) and old.crc(name) != new.crc(name):
            return f"{name} is another."
    for sheet in second.sheets:
        gone = [shape for shape in taken if shape.sheet.part == sheet.part]
        if (reason := _sheet_damage(old, new, sheet.part, gone)) is not None:
            return reason
    return None


def _sheet_damage(old: Package, new: Package, part: str, gone: list[Shape]) -> str | None:
    before, after = old.tree(part), new.tree(part)
    if _letters(before) - _letters_of(gone) != _letters(after):
        return f"{part} has lost other text than the mark's."
    if _count(before) - sum(_count(shape.element) for shape in gone) > _count(after) + _groups(before):
        return f"{part} has lost other shapes than the mark."
    relations = new.relations(part)
    for node in after.iter():
        if not isinstance(node.tag, str):
            continue
        for attribute, value in node.attrib.items():
            if attribute.startswith(R) and value and value not in relations and value in old.relations(part):
                return f"{part} points to something that is gone."
    missing = [each.target for each in relations.values() if each.target and each.target not in new]
    lost = [target for target in missing if target in old]
    return f"{part} points to {lost[0]}, which is gone." if lost else None


def _letters(root: Any) -> Counter[str]:
    return Counter(letter for run in root.iter(f"{A}t") for letter in run.text or "")


def _letters_of(shapes: list[Shape]) -> Counter[str]:
    return sum((_letters(shape.element) for shape in shapes), Counter[str]())


def _count(root: Any) -> int:
    return sum(1 for _ in root.iter(f"{P}cNvPr"))


def _groups(root: Any) -> int:
    return sum(1 for _ in root.iter(f"{P}grpSp"))


def _copies(package: Package, deck: Deck, taken: list[Shape]) -> int:
    signatures = {shape.signature for shape in taken}
    return sum(shape.signature in signatures for sheet in deck.sheets for shape in shapes_on(package, sheet))


def _area(taken: list[Shape], deck: Deck) -> float:
    """The share of the slides that the mark covered, as boxes."""
    if not deck.slides:
        return 0.0
    size = deck.width * deck.height
    covered = sum(
        (size if shape.kind == "background" else min(shape.box.width * shape.box.height, size)) * len(shape.sheet.pages)
        for shape in taken
    )
    return round(min(covered / size / deck.slides, 1.0), 6)
