"""Just enough of the old Office container to make presentations of before 2007."""

import struct

_SECTOR = 512
_END, _FREE, _FAT = 0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFD
_SMALL = 4096


def compound_file(streams: dict[str, bytes]) -> bytes:
    """A file with these streams; each is filled up to the size from which on it has sectors of its own."""
    sectors: list[bytes] = [b""]  # the first will be the FAT
    chains: list[int] = [_FAT]
    entries = [_entry("Root Entry", 5, _END, 0, child=1)]
    for number, (name, content) in enumerate(streams.items(), start=1):
        filled = content.ljust(_SMALL, b"\0")
        following = number + 1 if number < len(streams) else _FREE
        entries.append(_entry(name, 2, _append(filled, sectors, chains), len(filled), right=following))
    directory = _append(b"".join(entries), sectors, chains)
    sectors[0] = struct.pack("<128I", *chains, *[_FREE] * (128 - len(chains)))
    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16) + struct.pack("<HHHHH", 0x3E, 3, 0xFFFE, 9, 6) + bytes(6)
    header += struct.pack("<IIIIIIIII", 0, 1, directory, 0, _SMALL, _END, 0, _END, 0)
    return header + struct.pack("<109I", 0, *[_FREE] * 108) + b"".join(sectors)


def presentation_stream(slides: int) -> bytes:
    places = b"".join(_record(0x03F3, struct.pack("<IIIII", number, 0, 0, 256 + number, 0)) for number in range(slides))
    atom = _record(0x03E9, struct.pack("<IIII", 5760, 4320, 4320, 5760) + bytes(24))
    return _record(0x03E8, atom + _record(0x0FF0, places, version=0xF), version=0xF)


def _record(kind: int, body: bytes, version: int = 0) -> bytes:
    return struct.pack("<HHI", version, kind, len(body)) + body


def _append(content: bytes, sectors: list[bytes], chains: list[int]) -> int:
    first = len(sectors)
    count = -(-len(content) // _SECTOR)
    for number in range(count):
        sectors.append(content[number * _SECTOR : (number + 1) * _SECTOR].ljust(_SECTOR, b"\0"))
        chains.append(first + number + 1 if number < count - 1 else _END)
    return first


def _entry(name: str, kind: int, start: int, size: int, *, child: int = _FREE, right: int = _FREE) -> bytes:
    written = name.encode("utf-16-le")
    return (
        written.ljust(64, b"\0")
        + struct.pack("<HBBIII", len(written) + 2, kind, 1, _FREE, right, child)
        + bytes(36)
        + struct.pack("<IQ", start, size)
    )
