"""Streams that unpack to far more than any page needs, found out before they fill the memory."""

import zlib
from collections.abc import Iterator
from typing import Any

import pikepdf

MAX_UNPACKED_BYTES = 128 * 1024**2  # of instructions, unpacked
_MAX_HARMLESS_BYTES = 100_000  # packed bytes, which Deflate can blow up a thousand times
_PIECE_BYTES = 1 << 20


class TooLarge(Exception):
    """More than a page can have; says what."""


def require_small(source: Any) -> None:
    """Raises ``TooLarge`` for a page or a form whose instructions unpack to more than one can have."""
    if sum(_unpacked(stream) for stream in _streams(source)) > MAX_UNPACKED_BYTES:
        raise TooLarge(f"a page unpacks to more than {MAX_UNPACKED_BYTES // 1024**2} megabytes")


def _streams(source: Any) -> Iterator[pikepdf.Stream]:
    contents = source.obj.get("/Contents") if isinstance(source, pikepdf.Page) else source
    for each in contents if isinstance(contents, pikepdf.Array) else [contents]:
        if isinstance(each, pikepdf.Stream):
            yield each


def _unpacked(stream: pikepdf.Stream) -> int:
    """How many bytes it has; no more of them are unpacked than it takes to know that they are too many."""
    if int(stream.get("/Length", 0)) < _MAX_HARMLESS_BYTES:
        return 0
    packed = stream.read_raw_bytes()
    if str(stream.get("/Filter", "")) not in ("/FlateDecode", "/Fl"):
        return len(packed)
    unpacker, size, rest = zlib.decompressobj(), 0, bytes(packed)
    try:
        while rest and size <= MAX_UNPACKED_BYTES and not unpacker.eof:
            size += len(unpacker.decompress(rest, _PIECE_BYTES))
            rest = unpacker.unconsumed_tail
    except zlib.error:
        return size
    return size
