"""Files inside Qt's resource archives (``.rcc``), which some packages keep their pictures in."""

import struct
import zlib
from pathlib import Path

_FOLDER, _PACKED = 2, 1


def resource(archive: Path, path: str) -> bytes:
    """The file of that path ("/folder/name") in the archive."""
    blob = archive.read_bytes()
    version, tree, data, names = struct.unpack(">4I", blob[4:20])
    row = 22 if version >= 2 else 14
    at = 0
    for part in path.strip("/").split("/"):
        count, first = struct.unpack(">II", blob[tree + at * row + 6 : tree + at * row + 14])
        children = range(first, first + count)
        at = next(child for child in children if _name(blob, names, tree + child * row) == part)
    entry = tree + at * row
    flags = struct.unpack(">H", blob[entry + 4 : entry + 6])[0]
    if flags & _FOLDER:
        raise IsADirectoryError(path)
    begin = data + struct.unpack(">I", blob[entry + 10 : entry + 14])[0]
    length = struct.unpack(">I", blob[begin : begin + 4])[0]
    content = blob[begin + 4 : begin + 4 + length]
    return zlib.decompress(content[4:]) if flags & _PACKED else content


def _name(blob: bytes, names: int, entry: int) -> str:
    begin = names + struct.unpack(">I", blob[entry : entry + 4])[0]
    length = struct.unpack(">H", blob[begin : begin + 2])[0]
    return blob[begin + 6 : begin + 6 + 2 * length].decode("utf-16-be")
