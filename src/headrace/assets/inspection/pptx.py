"""PPTX and its kin: an archive whose list of contents says that it is a presentation."""

import posixpath
import zipfile
from xml.etree import ElementTree as ET

from headrace.assets.inspection import archives
from headrace.assets.inspection.errors import FileDamaged, FilePolyglot, FileUnknown, FileUnsupported
from headrace.assets.inspection.findings import check_pages, facts
from headrace.assets.inspection.model import PRESENTATIONS, Facts, FileLimits, Format, Note
from headrace.assets.inspection.source import Source

_OTHER_KINDS = (
    ("wordprocessingml", "a Word document"),
    ("ms-word", "a Word document"),
    ("spreadsheetml", "an Excel workbook"),
    ("ms-excel", "an Excel workbook"),
    ("visio", "a Visio drawing"),
)


def inspect(source: Source, limits: FileLimits) -> Facts:
    if source.read_at(0, 2) != b"PK":
        raise FilePolyglot
    with archives.opened(source, limits) as archive:
        names = set(archive.namelist())
        main, mime_type = _main_part(archive, names)
        presentation = archives.read_xml(archive, main)
        if presentation is None:
            raise FileDamaged("The presentation itself is missing in the file: save it again and send that.")
        slides = _count(presentation, "sldId")
        check_pages(slides, limits)
        archives.check_entries(archive)
        width, height = _slide_size(presentation)
    macros = any(name.lower().endswith("vbaproject.bin") for name in names)
    return facts(
        Format.PPTX,
        mime_type=mime_type,
        notes=[Note.MACROS] if macros else [],
        pages=slides,
        signed=any(name.startswith("_xmlsignatures/") and name.endswith(".xml") for name in names),
        details={"slide_width_emu": width, "slide_height_emu": height, "media": _media(names)},
    )


def _main_part(archive: zipfile.ZipFile, names: set[str]) -> tuple[str, str]:
    """Where the presentation is in the archive, and what kind of one."""
    types = archives.read_xml(archive, "[Content_Types].xml")
    if types is None:
        raise FileUnknown(_other_archive(names))
    seen = []
    for override in types:
        kind = override.get("ContentType", "")
        seen.append(kind)
        for known, mime_type in PRESENTATIONS.items():
            if kind.lower() == known.lower() and override.get("PartName"):
                return override.get("PartName", "").lstrip("/"), mime_type
    return _by_default(types, archive, seen)


def _by_default(types: ET.Element, archive: zipfile.ZipFile, seen: list[str]) -> tuple[str, str]:
    """Some writers name the kind for the ending alone, and the part in the relations."""
    kinds = {each.get("ContentType", "").lower() for each in types}
    for known, mime_type in PRESENTATIONS.items():
        if known.lower() in kinds:
            return _from_relations(archive), mime_type
    for word, name in _OTHER_KINDS:
        if any(word in kind.lower() for kind in seen):
            raise FileUnknown(f"This is {name}, which is not taken: save it as PDF and send that.")
    if any("presentationml" in kind for kind in seen):
        raise FileDamaged("The presentation itself is missing in the file: save it again and send that.")
    raise FileUnsupported("This is an Office file, but no presentation: save it as PDF and send that.")


def _from_relations(archive: zipfile.ZipFile) -> str:
    relations = archives.read_xml(archive, "_rels/.rels")
    for each in relations if relations is not None else ():
        if each.get("Type", "").endswith("/officeDocument"):
            return posixpath.normpath(each.get("Target", "").lstrip("/"))
    raise FileDamaged


def _other_archive(names: set[str]) -> str | None:
    if "mimetype" in names and "content.xml" in names:
        return "This is an OpenDocument file, which is not taken: save it as PPTX or PDF and send that."
    if "META-INF/MANIFEST.MF" in names:
        return "This is a Java program, which is not taken."
    return "This is a ZIP archive, which is not taken: unpack it and send the files in it."


def _count(root: ET.Element, local: str) -> int:
    """Elements of that name, whatever their namespace: strict files have another."""
    listed = next((each for each in root if _local(each) == "sldIdLst"), None)
    return 0 if listed is None else sum(_local(each) == local for each in listed)


def _slide_size(root: ET.Element) -> tuple[int | None, int | None]:
    size = next((each for each in root if _local(each) == "sldSz"), None)
    if size is None:
        return None, None
    return _number(size.get("cx")), _number(size.get("cy"))


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 12 else None


def _media(names: set[str]) -> int | None:
    return sum(name.startswith("ppt/media/") for name in names) or None


def _local(element: ET.Element) -> str:
    return str(element.tag).rpartition("}")[2]
