"""The parts of a presentation and how they point to each other (Open Packaging Conventions).

Parts are read when they are asked for: films and pictures stay in the file, whatever their size.
"""

import posixpath
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

from lxml import etree

from headrace.removal.errors import DocumentUnreadable

MAX_PARTS, MAX_UNPACKED_BYTES, MAX_XML_BYTES = 20_000, 8 * 1024**3, 64 * 1024**2
CONTENT_TYPES: Final = "[Content_Types].xml"
_RELATIONSHIPS = "{http://schemas.openxmlformats.org/package/2006/relationships}Relationship"
_OVERRIDE = "{http://schemas.openxmlformats.org/package/2006/content-types}Override"
_UNPACKING = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)
_BROKEN = (*_UNPACKING, OSError, ValueError, KeyError)


@dataclass(frozen=True, slots=True)
class Relation:
    id: str
    type: str  # the last word of its address: slide, slideLayout, image …
    target: str  # the name of a part; empty for what lies outside


class Package:
    """Reads parts, remembers the changed ones, and writes the whole package."""

    def __init__(self, path: str) -> None:
        self._path = path
        try:
            self._zip = zipfile.ZipFile(path)
        except _BROKEN as exc:
            raise DocumentUnreadable(f"{path} is not a presentation that can be read: {exc}") from exc
        self._sizes = {info.filename: info.file_size for info in self._zip.infolist() if not info.is_dir()}
        if len(self._sizes) > MAX_PARTS or sum(self._sizes.values()) > MAX_UNPACKED_BYTES:
            self.close()
            raise DocumentUnreadable(f"{path} unpacks to more than a presentation may have.")
        self._trees: dict[str, Any] = {}
        self._relations: dict[str, dict[str, Relation]] = {}
        self.changed: set[str] = set()
        self.dropped: set[str] = set()

    def close(self) -> None:
        self._zip.close()

    def __contains__(self, name: str) -> bool:
        return name in self._sizes and name not in self.dropped

    def names(self) -> list[str]:
        return [name for name in self._sizes if name not in self.dropped]

    def crc(self, name: str) -> int:
        return self._zip.getinfo(name).CRC

    def read(self, name: str, *, limit: int = MAX_XML_BYTES) -> bytes:
        if self._sizes.get(name, 0) > limit:
            raise DocumentUnreadable(f"{self._path}: {name} is larger than such a part may be.")
        try:
            return self._zip.read(name)
        except _BROKEN as exc:
            raise DocumentUnreadable(f"{self._path}: {name} cannot be read: {exc}") from exc

    def tree(self, name: str) -> Any:
        """The root element of an XML part. What is done to it is written if ``changed`` names the part."""
        if name not in self._trees:
            # No entities and nothing from elsewhere: the file is a stranger's.
            parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
            try:
                self._trees[name] = etree.fromstring(self.read(name), parser)
            except etree.XMLSyntaxError as exc:
                raise DocumentUnreadable(f"{self._path}: {name} is broken: {exc}") from exc
            if self._trees[name].getroottree().docinfo.doctype:
                del self._trees[name]
                raise DocumentUnreadable(f"{self._path}: {name} declares XML entities, which no presentation does.")
        return self._trees[name]

    def forget(self, name: str) -> None:
        """Give back the memory of a part that was only read."""
        if name not in self.changed:
            self._trees.pop(name, None)

    def relations(self, part: str) -> dict[str, Relation]:
        """What a part points to, by id; the empty name is the package."""
        if part not in self._relations:
            name = relations_name(part)
            listed = self.tree(name).iter(_RELATIONSHIPS) if name in self else ()
            self._relations[part] = {each.id: each for each in (_relation(part, node) for node in listed)}
        return self._relations[part]

    def drop_relation(self, part: str, relation_id: str) -> None:
        name = relations_name(part)
        for node in self.tree(name).findall(_RELATIONSHIPS):
            if node.get("Id") == relation_id:
                node.getparent().remove(node)
        self.changed.add(name)
        self._relations[part].pop(relation_id, None)

    def reachable(self) -> set[str]:
        """All parts that something points to, from the package's own relations on."""
        seen, waiting = {""}, [""]
        while waiting:
            for relation in self.relations(waiting.pop()).values():
                if relation.target in self and relation.target not in seen:
                    seen.add(relation.target)
                    waiting.append(relation.target)
        return seen - {""}

    def drop(self, part: str) -> None:
        """Leave a part out, with its relations and its line in the table of contents."""
        self.dropped |= {part, relations_name(part)} & set(self._sizes)
        types = self.tree(CONTENT_TYPES)
        for node in types.findall(_OVERRIDE):
            if node.get("PartName") == f"/{part}":
                types.remove(node)
                self.changed.add(CONTENT_TYPES)

    def write(self, target: str) -> None:
        """All parts in their order: the changed ones serialized, the others as they are."""
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as result:
            for info in self._zip.infolist():
                if info.is_dir() or info.filename in self.dropped:
                    continue
                like = zipfile.ZipInfo(info.filename, info.date_time)
                like.compress_type, like.external_attr = info.compress_type, info.external_attr
                if info.filename in self.changed:
                    like.compress_type = zipfile.ZIP_DEFLATED
                    result.writestr(like, serialised(self._trees[info.filename]))
                    continue
                like.file_size = info.file_size
                try:
                    with self._zip.open(info) as source, result.open(like, "w") as copy:
                        while piece := source.read(1 << 20):
                            copy.write(piece)
                except _UNPACKING as exc:
                    raise DocumentUnreadable(f"{self._path}: {info.filename} cannot be read: {exc}") from exc


def serialised(root: Any) -> bytes:
    return bytes(etree.tostring(root.getroottree(), xml_declaration=True, encoding="UTF-8", standalone=True))


def relations_name(part: str) -> str:
    folder, name = posixpath.split(part)
    return posixpath.join(folder, "_rels", f"{name}.rels")


def _relation(part: str, node: Any) -> Relation:
    kind = str(node.get("Type", "")).rsplit("/", 1)[-1]
    target = ""
    if node.get("TargetMode") != "External":
        said = unquote(str(node.get("Target", "")).split("#")[0])
        target = said.lstrip("/") if said.startswith("/") else posixpath.join(posixpath.dirname(part), said)
        target = posixpath.normpath(target) if target else ""
    return Relation(str(node.get("Id", "")), kind, target)


def related(package: Package, part: str, kind: str) -> Iterator[str]:
    """The parts of one kind that a part points to."""
    for relation in package.relations(part).values():
        if relation.type == kind and relation.target in package:
            yield relation.target
