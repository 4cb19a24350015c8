"""Pictures of 16 bits a colour: what the mark does not touch keeps all of them.

Pillow reads no more than 8 bits of three colours. So the picture is worked on with 8; then the file's own numbers are
read by OpenCV, changed where the picture changed, and written again. Under the mark the lower 8 bits repeat the upper.
"""

import struct
import zlib
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

Picture = NDArray[np.uint8]

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
# Chunks that say how colours are meant, how large a pixel is, who made it; before the pixels.
_KEPT = (b"iCCP", b"sRGB", b"gAMA", b"cHRM", b"cICP", b"pHYs", b"eXIf", b"tEXt", b"zTXt", b"iTXt", b"tIME")
_LEVELS_PER_LEVEL = 257  # from 8 bits to 16: white stays white


class NotDeep(ValueError):
    """It does not hold 16 bits of each colour in a way that can be kept."""


def write_png(source: str, before: Picture, after: Picture, target: str) -> None:
    """Write the 16-bit PNG ``source`` with what differs between the two; ``NotDeep`` if that cannot be done."""
    deep: Any = cv2.imread(source, cv2.IMREAD_UNCHANGED)
    if deep is None or deep.dtype != np.uint16 or not _is_same(deep, before):
        raise NotDeep("it has no 16 bits a colour, or is turned")
    changed = (before != after).any(2)
    if deep.ndim == 2:
        deep[changed] = after[changed].mean(1).round().astype(np.uint16) * _LEVELS_PER_LEVEL
    elif deep.shape[2] in (3, 4):
        deep[changed, :3] = after[changed][:, ::-1].astype(np.uint16) * _LEVELS_PER_LEVEL
    else:
        raise NotDeep("it has another number of colours")
    done, packed = cv2.imencode(".png", deep)
    if not done:
        raise NotDeep("it cannot be packed")
    Path(target).write_bytes(_with_notes(packed.tobytes(), _notes(Path(source).read_bytes())))


def _is_same(deep: NDArray[np.uint16], picture: Picture) -> bool:
    """Whether both are the same picture, the same way up."""
    if deep.shape[:2] != picture.shape[:2]:
        return False
    upper = (deep >> 8).astype(np.uint8)
    return np.array_equal(upper, picture[..., 0]) if upper.ndim == 2 else np.array_equal(upper[..., 2::-1], picture)


def _notes(png: bytes) -> list[tuple[bytes, bytes]]:
    return [(kind, body) for kind, body in _chunks(png) if kind in _KEPT]


def _with_notes(png: bytes, notes: list[tuple[bytes, bytes]]) -> bytes:
    pieces = [_SIGNATURE]
    for kind, body in _chunks(png):
        pieces.append(_chunk(kind, body))
        if kind == b"IHDR":
            pieces += [_chunk(*note) for note in notes]
    return b"".join(pieces)


def _chunks(png: bytes) -> list[tuple[bytes, bytes]]:
    found, at = [], len(_SIGNATURE)
    while at + 12 <= len(png):
        (size,) = struct.unpack_from(">I", png, at)
        kind, body = png[at + 4 : at + 8], png[at + 8 : at + 8 + size]
        found.append((kind, body))
        at += 12 + size
    return found


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
