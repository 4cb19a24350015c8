"""Files that are no media: which type they have, by their first bytes, and which of them are taken.

Nothing parses them. They are stored as they came, and handed out as downloads.
"""

from pathlib import Path

from headrace.assets.content import OCTETS
from headrace.assets.inspection.model import Facts, MediaType

ANY = "*"
TEXT = "text/plain"
ZIP = "application/zip"
# The documents of Office and OpenDocument are ZIP archives; they differ only when unpacked.
_STARTS: tuple[tuple[bytes, str], ...] = (
    (b"PK\x03\x04", ZIP),
    (b"PK\x05\x06", ZIP),
    (b"\x1f\x8b", "application/gzip"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"Rar!\x1a\x07", "application/vnd.rar"),
    (b"BZh", "application/x-bzip2"),
    (b"\xfd7zXZ\0", "application/x-xz"),
    (b"\x28\xb5\x2f\xfd", "application/zstd"),
    (b"PAR1", "application/vnd.apache.parquet"),
    (b"SQLite format 3\0", "application/vnd.sqlite3"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/x-ole-storage"),
    (b"{\\rtf", "application/rtf"),
    (b"ID3", "audio/mpeg"),
    (b"fLaC", "audio/flac"),
    (b"OggS", "audio/ogg"),
)
KNOWN = frozenset({mime_type for _, mime_type in _STARTS} | {TEXT, "audio/wav", OCTETS})
_SAMPLE_BYTES = 64 * 1024
_CONTROLS = frozenset(range(32)) - {7, 8, 9, 10, 12, 13, 27}


def facts_of(path: Path) -> Facts:
    """The facts of a file that is not media."""
    with path.open("rb") as file:
        return Facts(MediaType.OTHER, None, type_of(file.read(_SAMPLE_BYTES)))


def type_of(head: bytes) -> str:
    """The MIME type by the first bytes; ``application/octet-stream`` where they tell nothing."""
    for start, mime_type in _STARTS:
        if head.startswith(start):
            return mime_type
    if head[:4] == b"RIFF" and head[8:12] == b"WAVE":
        return "audio/wav"
    return TEXT if _is_text(head) else OCTETS


def _is_text(head: bytes) -> bool:
    if not _CONTROLS.isdisjoint(head):
        return False
    try:
        head.decode()
    except UnicodeDecodeError as exc:
        # A character that was cut in two at the end is none that is wrong.
        return len(head) == _SAMPLE_BYTES and exc.start >= len(head) - 3
    return True


def takes(chosen: frozenset[str], mime_type: str) -> bool:
    """Whether the settings name this type."""
    return ANY in chosen or mime_type in chosen
