"""Takes drawings out of pages and of the forms in them; everything else is left as it is.

Streams and resources that pages share are copied before they are changed, so that a page that is to stay stays.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pikepdf

from headrace.removal.documents.pdf.annotations import drop_notes, notes_of
from headrace.removal.documents.pdf.drawings import Drawing, Kind, placed
from headrace.removal.documents.pdf.geometry import Quad
from headrace.removal.documents.pdf.pruning import SHOWS, called, emptied, forget, own_copy
from headrace.removal.documents.pdf.reading import Reader, operator_of, parse, resources_of

_REPLACED = ("/Length", "/Filter", "/DecodeParms", "/DL", "/Resources", "/PieceInfo", "/LastModified")


@dataclass(slots=True)
class Taken:
    """What was taken off one page."""

    quads: list[Quad] = field(default_factory=list)
    glyphs: int = 0
    drawings: int = 0

    def add(self, drawings: Iterable[Drawing], quads: Iterable[Quad]) -> None:
        self.quads += quads
        for each in drawings:
            self.drawings += 1
            self.glyphs += each.glyphs + sum(leaf.glyphs for leaf in _inside(each))


def _inside(drawing: Drawing) -> list[Drawing]:
    return [] if drawing.form is None else [leaf.drawing for leaf in placed(drawing.form.drawings)]


class Editor:
    def __init__(self, pdf: pikepdf.Pdf, reader: Reader) -> None:
        self._pdf, self._reader = pdf, reader
        self._signatures: frozenset[int] = frozenset()  # of what goes from the page at hand
        # What became of a form, by what was to go; None: nothing.
        self._forms: dict[tuple[tuple[int, int], frozenset[int]], Any] = {}
        own_resources(pdf)

    def page(self, page: pikepdf.Page, signatures: frozenset[int]) -> Taken:
        """Take the drawings with these signatures off a page; an empty answer says that there were none."""
        self._signatures = signatures
        taken = Taken()
        drawings = self._reader.page(page)
        chosen = [each for each in placed(drawings) if each.drawing.signature in self._signatures]
        if chosen:
            resources = own_copy(resources_of(page.obj))
            content = self._without(page, drawings, resources)
            page.obj.Contents = self._pdf.make_stream(content)
            page.obj.Resources = resources
            taken.add((each.drawing for each in chosen), (each.quad for each in chosen))
        notes = [note for note in notes_of(self._reader, page) if note.drawing.signature in self._signatures]
        if notes:
            drop_notes(page, {note.at for note in notes})
            taken.add((note.drawing for note in notes), (note.drawing.quad for note in notes))
        if taken.drawings and "/Thumb" in page.obj:
            del page.obj.Thumb  # it shows the mark
        return taken

    def _without(self, source: Any, drawings: tuple[Drawing, ...], resources: pikepdf.Dictionary) -> bytes:
        instructions = parse(source)
        before = called(instructions)
        names = [operator_of(each) for each in instructions]
        changes: dict[int, list[Any]] = {}
        bare = False
        for drawing in drawings:
            if drawing.signature in self._signatures:
                changes |= _removal(drawing, instructions, names)
            elif drawing.form is not None:
                bare = bare or "/Resources" not in drawing.form.xobject
                changed = self._form(drawing.form.xobject, drawing.form.drawings)
                if changed is not None:
                    resources.XObject[str(instructions[drawing.first].operands[0])] = changed
        gone = {at for at, instead in changes.items() if not instead}
        useless = emptied(names, gone, _tagged(instructions, names, resources))
        left = _assembled(instructions, changes, useless)
        # A form without resources of its own calls those of its page, unseen from here.
        if not bare:
            forget(resources, before - called(left))
        return bytes(pikepdf.unparse_content_stream(left))

    def _form(self, xobject: Any, drawings: tuple[Drawing, ...]) -> Any:
        """A copy of the form XObject without the mark, or None if the form does not contain the mark."""
        wanted = (xobject.objgen, self._signatures)
        if wanted not in self._forms:
            self._forms[wanted] = None
            if any(each.drawing.signature in self._signatures for each in placed(drawings)):
                own = xobject.get("/Resources")
                resources = own_copy(own) if own is not None else pikepdf.Dictionary()
                changed = self._pdf.make_stream(self._without(xobject, drawings, resources))
                for key in xobject.keys():  # noqa: SIM118
                    if key not in _REPLACED:
                        changed[key] = xobject[key]
                if own is not None:
                    changed.Resources = resources
                self._forms[wanted] = changed
        return self._forms[wanted]


def own_resources(pdf: pikepdf.Pdf) -> None:
    """Every page names its resources itself: what the tree above kept would keep the mark in the file."""
    parents = {}
    for page in pdf.pages:
        if "/Resources" not in page.obj:
            page.obj.Resources = resources_of(page.obj)
        node = page.obj.get("/Parent")
        while isinstance(node, pikepdf.Dictionary) and node.objgen not in parents:
            parents[node.objgen] = node
            node = node.get("/Parent")
    for node in parents.values():
        if "/Resources" in node:
            del node.Resources


def _removal(drawing: Drawing, instructions: list[Any], names: list[str]) -> dict[int, list[Any]]:
    """What stands in the place of the instructions of a drawing."""
    if drawing.kind is Kind.TEXT:
        if drawing.clips:
            return {}
        shows = [at for at in range(drawing.first, drawing.last + 1) if names[at] in SHOWS]
        return {at: _unshown(instructions[at], names[at]) for at in shows}
    if drawing.clips:
        return {drawing.last: [pikepdf.ContentStreamInstruction([], pikepdf.Operator("n"))]}
    return {at: [] for at in range(drawing.first, drawing.last + 1)}


def _unshown(instruction: Any, name: str) -> list[Any]:
    """Two operators show text and do more, which has to stay."""
    next_line = pikepdf.ContentStreamInstruction([], pikepdf.Operator("T*"))
    if name == "'":
        return [next_line]
    if name == '"':
        word, character = instruction.operands[0], instruction.operands[1]
        return [
            pikepdf.ContentStreamInstruction([word], pikepdf.Operator("Tw")),
            pikepdf.ContentStreamInstruction([character], pikepdf.Operator("Tc")),
            next_line,
        ]
    return []


def _tagged(instructions: list[Any], names: list[str], resources: Any) -> set[int]:
    """Sections that the document's structure tree points to."""
    found = set()
    for at, name in enumerate(names):
        if name != "BDC" or len(instructions[at].operands) < 2:
            continue
        properties = instructions[at].operands[1]
        if isinstance(properties, pikepdf.Name):
            properties = resources.get("/Properties", pikepdf.Dictionary()).get(str(properties))
        if isinstance(properties, pikepdf.Dictionary) and "/MCID" in properties:
            found.add(at)
    return found


def _assembled(instructions: list[Any], changes: dict[int, list[Any]], useless: set[int]) -> list[Any]:
    left: list[Any] = []
    for at, instruction in enumerate(instructions):
        if at in useless:
            continue
        if at in changes:
            left += changes[at]
        else:
            left.append(instruction)
    return left
