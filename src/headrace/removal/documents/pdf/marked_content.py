"""What a file says of its parts: marked content and layers (optional content groups)."""

from collections.abc import Iterator
from typing import Any

import pikepdf

from headrace.removal.documents.pdf.drawings import Section
from headrace.removal.documents.words import is_watermark_name

_BELONGS = ("/Header", "/Footer", "/PageNum", "/Bates", "/Redaction")
_USUAL = Section(belongs=True)
_NAMED = Section(named=True)


def section_of(tag: str, properties: Any) -> Section | None:
    """What a marked-content tag or an ``/OC`` entry says; None where that is nothing of interest."""
    if not isinstance(properties, pikepdf.Dictionary):
        return None
    if tag == "/Artifact":
        subtype = str(properties.get("/Subtype", ""))
        if subtype == "/Watermark":
            return _NAMED
        return _USUAL if subtype in _BELONGS else None
    if tag != "/OC":
        return None
    names = [str(layer.get("/Name", "")) for layer in _layers_in(properties)]
    if any(is_watermark_name(name) for name in names):
        return Section(named=True, layer=names[0])
    return Section(layer=names[0]) if names else None


def _layers_in(properties: pikepdf.Dictionary) -> Iterator[pikepdf.Dictionary]:
    """The layer itself, or those of a membership dictionary."""
    if properties.get("/Type") != "/OCMD":
        yield properties
        return
    members = properties.get("/OCGs")
    for each in members if isinstance(members, pikepdf.Array) else [members]:
        if isinstance(each, pikepdf.Dictionary):
            yield each


def drop_watermark_layers(pdf: pikepdf.Pdf) -> None:
    """Take layers that are called watermark out of the document's list of layers."""
    settings = pdf.Root.get("/OCProperties")
    if not isinstance(settings, pikepdf.Dictionary) or not isinstance(settings.get("/OCGs"), pikepdf.Array):
        return
    dropped = {
        layer.objgen
        for layer in settings.OCGs
        if isinstance(layer, pikepdf.Dictionary) and is_watermark_name(str(layer.get("/Name", "")))
    }
    if dropped:
        _without(settings, dropped, 0)


def _without(node: Any, dropped: set[tuple[int, int]], depth: int) -> None:
    """Lists in the settings lose these layers; they are nested a few levels."""
    if depth > 8:
        return
    if isinstance(node, pikepdf.Array):
        for at in reversed(range(len(node))):
            if isinstance(node[at], pikepdf.Dictionary) and node[at].objgen in dropped:
                del node[at]
    children = node if isinstance(node, pikepdf.Array) else [node[key] for key in node.keys()]  # noqa: SIM118
    for child in children:
        if isinstance(child, pikepdf.Array) or (isinstance(child, pikepdf.Dictionary) and "/Name" not in child):
            _without(child, dropped, depth + 1)
