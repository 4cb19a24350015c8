"""HEIF files for tests: pictures coded by x265 here, in boxes put together by hand."""

import functools
import io
import struct
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import av
from PIL import Image

TILE_PX = 64


@dataclass
class Entry:
    """An item of a file to write. ``properties`` are whole boxes; ``references`` point to ids."""

    id: int
    kind: bytes
    data: bytes = b""
    properties: list[bytes] = field(default_factory=list)
    references: dict[bytes, list[int]] = field(default_factory=dict)
    hidden: bool = False
    mime_type: bytes = b""
    in_idat: bool = False


def box(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", 8 + len(body)) + kind + body


def full(kind: bytes, body: bytes, version: int = 0, flags: int = 0) -> bytes:
    return box(kind, struct.pack(">B", version) + flags.to_bytes(3, "big") + body)


def size(width: int, height: int) -> bytes:
    return full(b"ispe", struct.pack(">II", width, height))


def turn(quarters: int) -> bytes:
    """Counter-clockwise."""
    return box(b"irot", bytes([quarters]))


def mirror(axis: int) -> bytes:
    return box(b"imir", bytes([axis]))


def crop(width: int, height: int, right: int = 0, down: int = 0) -> bytes:
    """To this size; the centre moves by ``right`` and ``down`` half pixels."""
    return box(b"clap", struct.pack(">IIIIiIiI", width, 1, height, 1, right, 2, down, 2))


def alpha_kind() -> bytes:
    return full(b"auxC", b"urn:mpeg:hevc:2015:auxid:1\0")


def colours(matrix: int, *, full_range: bool) -> bytes:
    return box(b"colr", b"nclx" + struct.pack(">HHHB", 1, 13, matrix, 0x80 if full_range else 0))


@functools.cache
def coded(colour: tuple[int, ...], side: int = TILE_PX, pix_fmt: str = "yuv420p") -> tuple[bytes, bytes]:
    """Decoder configuration and data of a plain square."""
    return encode(
        Image.new("RGB" if len(colour) == 3 else "L", (side, side), colour if len(colour) == 3 else colour[0]), pix_fmt
    )


def encode(picture: Any, pix_fmt: str = "yuv420p") -> tuple[bytes, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "video.mp4")
        with av.open(str(path), "w", format="mp4") as container:
            options = {"x265-params": "log-level=none:bframes=0:qp=4"}
            stream: Any = container.add_stream("libx265", rate=1, options=options)
            (stream.width, stream.height), stream.pix_fmt = picture.size, pix_fmt
            stream.codec_context.thread_count = 1
            frame = av.VideoFrame.from_image(picture.convert("RGB"))  # type: ignore[no-untyped-call]
            frame.pts = 0
            container.mux(stream.encode(frame))
            container.mux(stream.encode())
        film = path.read_bytes()
    place = film.index(b"hvcC") - 4
    configuration = film[place : place + int.from_bytes(film[place : place + 4], "big")]
    with av.open(io.BytesIO(film), "r") as container:
        return configuration, bytes(next(container.demux(container.streams.video[0])))


def tile(entry_id: int, colour: tuple[int, ...], **more: Any) -> Entry:
    configuration, data = coded(colour)
    extra = more.pop("properties", [])
    return Entry(entry_id, b"hvc1", data, [configuration, size(TILE_PX, TILE_PX), *extra], **more)


def grid(entry_id: int, rows: int, columns: int, width: int, height: int, tiles: list[int], **more: Any) -> Entry:
    body = struct.pack(">BBBBHH", 0, 0, rows - 1, columns - 1, width, height)
    extra = more.pop("properties", [])
    return Entry(entry_id, b"grid", body, [size(width, height), *extra], {b"dimg": tiles}, in_idat=True, **more)


def write(entries: list[Entry], primary: int, brand: bytes = b"heic") -> bytes:
    """The file. Items with ``in_idat`` lie in the list itself, as writers put grids there."""
    start = box(b"ftyp", brand + b"\0\0\0\0mif1" + brand)
    data_start = len(start) + len(_meta(entries, primary, 0)) + 8
    data = b"".join(entry.data for entry in entries if not entry.in_idat)
    return start + _meta(entries, primary, data_start) + box(b"mdat", data)


def _meta(entries: list[Entry], primary: int, data_start: int) -> bytes:
    infos = b"".join(
        full(
            b"infe",
            struct.pack(">HH", entry.id, 0)
            + entry.kind
            + b"\0"
            + (entry.mime_type + b"\0" if entry.mime_type else b""),
            version=2,
            flags=int(entry.hidden),
        )
        for entry in entries
    )
    known: list[bytes] = []
    links = b""
    for entry in entries:
        known += [each for each in entry.properties if each not in known]
        listed = bytes(known.index(each) + 1 for each in entry.properties)
        links += struct.pack(">HB", entry.id, len(listed)) + listed
    idat, places, at = b"", b"", data_start
    for entry in entries:
        offset = len(idat) if entry.in_idat else at
        places += struct.pack(">HHHHII", entry.id, int(entry.in_idat), 0, 1, offset, len(entry.data))
        idat += entry.data if entry.in_idat else b""
        at += 0 if entry.in_idat else len(entry.data)
    references = b"".join(
        box(kind, struct.pack(f">HH{len(to)}H", entry.id, len(to), *to))
        for entry in entries
        for kind, to in entry.references.items()
    )
    return full(
        b"meta",
        full(b"hdlr", b"\0\0\0\0pict" + bytes(13))
        + full(b"pitm", struct.pack(">H", primary))
        + full(b"iinf", struct.pack(">H", len(entries)) + infos)
        + (full(b"iref", references) if references else b"")
        + box(b"iprp", box(b"ipco", b"".join(known)) + full(b"ipma", struct.pack(">I", len(entries)) + links))
        + full(b"iloc", struct.pack(">BBH", 0x44, 0, len(entries)) + places, version=1)
        + (box(b"idat", idat) if idat else b""),
    )
