"""Bad files: some made to harm, each with the code that it must get; and mutations of good ones, as many as wanted."""

import io
import random
import struct
import zipfile
import zlib
from collections.abc import Iterator

from tests.assets.inspection import good
from tests.assets.inspection.old_office import compound_file, presentation_stream

_SLIDE_WITH_ENTITY = b'<?xml version="1.0"?><!DOCTYPE s [<!ENTITY e "word">]><s>&e;</s>'


def crafted() -> dict[str, tuple[str, bytes]]:
    """Name, then the code that it must be refused with, and the bytes."""
    kinds = good.all_kinds()
    archive = _zip({"Main.class": b"program"})
    return {
        "empty": ("file_empty", b""),
        "zeros": ("file_damaged", bytes(10_000)),
        "text": ("file_unknown", b"Dear all,\n" * 40),
        "web page": ("file_unknown", b"<!DOCTYPE html><script>alert(1)</script>"),
        "drawing": ("file_unknown", b'<svg xmlns="http://www.w3.org/2000/svg"/>'),
        "program": ("file_unknown", b"MZ" + bytes(400)),
        "archive": ("file_unknown", archive),
        "avi": ("file_unknown", b"RIFF\x20\0\0\0AVI LIST" + bytes(60)),
        "avif": ("file_unknown", b"\0\0\0\x18ftypavif\0\0\0\0avifmif1" + bytes(60)),
        "word": ("file_unknown", good.pptx(content_types=_types("wordprocessingml.document"))),
        "old word": ("file_unknown", compound_file({"WordDocument": b"text"})),
        "old powerpoint": ("file_unsupported", compound_file({"PP40": b"slides"})),
        "only sound": ("file_unsupported", _without_picture()),
        "locked pptx": ("file_encrypted", compound_file({"EncryptedPackage": b"x", "EncryptionInfo": b"y"})),
        "locked zip": ("file_encrypted", _zip_locked()),
        "locked ppt": ("file_encrypted", compound_file({"Current User": bytes(12) + b"\xdf\xc4\xd1\xf3", **_SLIDES})),
        "huge png": ("file_too_many_pixels", _png(60_000, 60_000, b"")),
        "huge jpeg": ("file_too_many_pixels", _resized_jpeg(65_500)),
        "huge gif": ("file_too_many_pixels", b"GIF89a" + struct.pack("<HH", 65_000, 65_000) + kinds["gif"][10:]),
        "gif frame far out": ("file_too_many_pixels", _gif_with_frame_at(60_000)),
        "huge webp": ("file_too_many_pixels", _huge_webp()),
        "huge tiff": ("file_too_many_pixels", _huge_tiff()),
        "many slides": ("file_too_many_pages", good.pptx(2_500)),
        "many frames": ("file_too_many_frames", _long_gif(3_000)),
        "long video": ("file_too_long", good.video("mp4", "mpeg4", times=range(0, 144_000, 12_000))),
        # It passed, and its removal failed "through no fault of the file" after three attempts.
        "slide with an entity": ("file_bomb", good.pptx(more={"ppt/slides/slide9.xml": _SLIDE_WITH_ENTITY})),
        "many scans": ("file_bomb", _many_scans()),
        "entry bomb": ("file_bomb", good.pptx(more={"ppt/media/a.xml": bytes(80 * 1024**2)})),
        "overlapping zip": ("file_bomb", _overlapping()),
        "entities": ("file_bomb", good.pptx(content_types='<!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>')),
        "pdf and zip": ("file_polyglot", kinds["pdf"] + archive),
        "gif and jar": ("file_polyglot", kinds["gif"] + archive),
        "jpeg and zip": ("file_polyglot", kinds["jpeg"] + archive),
        "png and pdf": ("file_polyglot", kinds["png"] + kinds["pdf"]),
        "mp4 and zip": ("file_polyglot", kinds["mp4"] + archive),
        "pdf in jpeg": ("file_polyglot", kinds["jpeg"][:2] + b"\xff\xfe\0\x0a%PDF-1.4" + kinds["jpeg"][2:]),
        "short jpeg": ("file_truncated", kinds["jpeg"][: len(kinds["jpeg"]) // 2]),
        "short png": ("file_truncated", kinds["png"][: len(kinds["png"]) // 2]),
        "short gif": ("file_truncated", kinds["gif"][:200]),
        "short webp": ("file_truncated", kinds["webp"][:-100]),
        "short mp4": ("file_truncated", kinds["mp4"][: len(kinds["mp4"]) // 2]),
        "short mkv": ("file_truncated", kinds["mkv"][: len(kinds["mkv"]) // 2]),
        "short heic": ("file_truncated", kinds["heic"][:-200]),
        "short pptx": ("file_truncated", kinds["pptx"][:-60]),
        "short ppt": ("file_truncated", kinds["ppt"][:2_000]),
        "short pdf": ("file_truncated", kinds["pdf-streams"][:60]),
        "pdf without pages": ("file_damaged", good.pdf(0)),
        "png rows missing": ("file_damaged", _png(64, 64, zlib.compress(bytes(100)))),
        "png without its palette": ("file_damaged", _without_palette()),
        "png with a wrong sum": ("file_damaged", _png(8, 8, zlib.compress(bytes(8 * 25)), error=1)),
        "pptx with a wrong sum": ("file_damaged", _flipped_in_archive()),
    }


def mutations(count: int, seed: int) -> Iterator[tuple[str, bytes]]:
    """Good files, harmed: the same ones for the same seed."""
    dice = random.Random(seed)
    kinds = good.all_kinds()
    names = sorted(kinds)
    for number in range(count):
        name = names[number % len(names)]
        harm = dice.choice(_HARMS)
        yield f"{number:05}-{harm.__name__.strip('_')}-{name}", harm(kinds[name], dice, kinds[dice.choice(names)])


def harm(content: bytes, dice: random.Random) -> bytes:
    """One file of somebody's, harmed in one of the ways."""
    return dice.choice(_HARMS)(content, dice, content)


def _truncated(content: bytes, dice: random.Random, _other: bytes) -> bytes:
    return content[: dice.randrange(1, max(2, len(content)))]


def _end_lost(content: bytes, dice: random.Random, _other: bytes) -> bytes:
    return content[: -dice.choice((1, 2, 4, 16, 64))]


def _flipped(content: bytes, dice: random.Random, _other: bytes) -> bytes:
    changed = bytearray(content)
    for _ in range(dice.choice((1, 4, 32, 200))):
        changed[dice.randrange(len(changed))] ^= 1 << dice.randrange(8)
    return bytes(changed)


def _header_harmed(content: bytes, dice: random.Random, _other: bytes) -> bytes:
    changed = bytearray(content)
    for _ in range(8):
        changed[dice.randrange(min(len(changed), 512))] = dice.choice((0, 1, 0x7F, 0x80, 0xFF, dice.randrange(256)))
    return bytes(changed)


def _numbers_blown_up(content: bytes, dice: random.Random, _other: bytes) -> bytes:
    changed = bytearray(content)
    for _ in range(3):
        at = dice.randrange(max(1, len(changed) - 4))
        changed[at : at + 4] = dice.choice((b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\0\0\0\0", b"\xff\xff\xff\x7f"))
    return bytes(changed)


def _header_of_another(content: bytes, dice: random.Random, other: bytes) -> bytes:
    cut = dice.choice((8, 16, 64, 256))
    return other[:cut] + content[cut:]


def _piece_zeroed(content: bytes, dice: random.Random, _other: bytes) -> bytes:
    at = dice.randrange(len(content))
    length = dice.randrange(1, 2_000)
    return content[:at] + bytes(len(content[at : at + length])) + content[at + length :]


def _piece_lost(content: bytes, dice: random.Random, _other: bytes) -> bytes:
    at = dice.randrange(len(content))
    return content[:at] + content[at + dice.randrange(1, 500) :]


def _piece_twice(content: bytes, dice: random.Random, _other: bytes) -> bytes:
    at = dice.randrange(len(content))
    return content[:at] + content[at : at + 400] * dice.randrange(2, 20) + content[at:]


def _another_behind(content: bytes, _dice: random.Random, other: bytes) -> bytes:
    return content + other


_HARMS = (
    _truncated, _end_lost, _flipped, _header_harmed, _numbers_blown_up, _header_of_another, _piece_zeroed, _piece_lost,
    _piece_twice, _another_behind,
)  # fmt: skip
_SLIDES = {"PowerPoint Document": presentation_stream(1)}


def _types(kind: str) -> str:
    name = f"application/vnd.openxmlformats-officedocument.{kind}.main+xml"
    return f'<Types><Override PartName="/word/document.xml" ContentType="{name}"/></Types>'


def _zip(entries: dict[str, bytes]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return target.getvalue()


def _zip_locked() -> bytes:
    content = bytearray(good.pptx())
    content[6] |= 1
    content[content.index(b"PK\x01\x02") + 8] |= 1
    return bytes(content)


def _overlapping() -> bytes:
    """Two entries of the directory that share their bytes."""
    content = bytearray(good.pptx(2))
    first = content.index(b"PK\x01\x02")
    second = content.index(b"PK\x01\x02", first + 4)
    content[second + 42 : second + 46] = content[first + 42 : first + 46]
    return bytes(content)


def _flipped_in_archive() -> bytes:
    content = bytearray(good.pptx(1, more={"ppt/media/image.bin": random.Random(1).randbytes(5_000)}))
    content[content.index(b"image.bin") + 2_000] ^= 0xFF
    return bytes(content)


def _chunk(kind: bytes, body: bytes, error: int = 0) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body) ^ error)


def _png(width: int, height: int, packed: bytes, *, error: int = 0) -> bytes:
    header = _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + _chunk(b"IDAT", packed, error) + _chunk(b"IEND", b"")


def _without_palette() -> bytes:
    content = good.all_kinds()["png-palette"]
    at = content.index(b"PLTE") - 4
    return content[:at] + content[at + 12 + int.from_bytes(content[at : at + 4], "big") :]


def _resized_jpeg(side: int) -> bytes:
    content = bytearray(good.jpeg())
    frame = content.index(b"\xff\xc0")
    content[frame + 5 : frame + 9] = struct.pack(">HH", side, side)
    return bytes(content)


def _many_scans() -> bytes:
    content = good.jpeg(progressive=True)
    scan = content.rindex(b"\xff\xda")
    return content[:scan] + content[scan:-2] * 600 + b"\xff\xd9"


def _huge_webp() -> bytes:
    content = bytearray(good.packed(good.picture(mode="RGBA"), "WEBP", lossless=True))
    at = content.index(b"VP8L") + 9
    content[at : at + 4] = struct.pack("<I", 0x3FFF | 0x3FFF << 14)
    return bytes(content)


def _huge_tiff() -> bytes:
    content = bytearray(good.packed(good.picture(), "TIFF"))
    directory = int.from_bytes(content[4:8], "little")
    for at in range(directory + 2, directory + 2 + 12 * content[directory], 12):
        if int.from_bytes(content[at : at + 2], "little") in (256, 257):
            content[at + 2 : at + 12] = struct.pack("<HII", 4, 1, 200_000)
    return bytes(content)


def _gif_with_frame_at(place: int) -> bytes:
    content = bytearray(good.packed(good.picture(4, 4, "P"), "GIF"))
    at = content.index(b",\0\0\0\0\4\0\4\0")
    content[at + 1 : at + 5] = struct.pack("<HH", place, place)
    return bytes(content)


def _long_gif(frames: int) -> bytes:
    content = good.packed(good.picture(4, 4, "P"), "GIF")
    start = content.index(b",\0\0\0\0\4\0\4\0")
    return content[:start] + content[start:-1] * frames + b";"


def _without_picture() -> bytes:
    content = good.all_kinds()["mp4"]
    return content.replace(b"vide", b"soun")
