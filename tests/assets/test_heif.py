"""HEIC as telephones write it (A-03): tiles, layers, crops, turns, alpha, profiles, notes; and files made to harm."""

import io
import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from headrace.assets.heif import decoding, plugin
from headrace.assets.heif.decoding import bits_of, decode, size_of
from headrace.assets.heif.items import HeifDamaged, HeifError, HeifUnsupported, Items
from headrace.assets.heif.notes import read_notes
from tests.assets import heif_files as heif
from tests.assets.heif_files import TILE_PX, Entry, grid, tile, write
from tests.assets.inspection.good import exif, heic

RED, GREEN, BLUE, WHITE = (200, 30, 30), (30, 160, 30), (30, 30, 200), (250, 250, 250)


def items_of(content: bytes) -> Items:
    return Items(lambda offset, count: content[offset : offset + count], len(content))


def decoded(content: bytes) -> Any:
    items = items_of(content)
    picture = decode(items, items.primary)
    assert picture.size == size_of(items, items.primary)
    return picture


def at(picture: Any, x: int, y: int) -> tuple[int, ...]:
    """The nearest of the four colours there."""
    found = picture.convert("RGB").getpixel((x, y))
    near = min((RED, GREEN, BLUE, WHITE), key=lambda c: sum(abs(a - b) for a, b in zip(c, found, strict=True)))
    assert sum(abs(a - b) for a, b in zip(near, found, strict=True)) < 24, found
    return near


def test_a_grid_is_put_together_and_cut_to_its_size() -> None:
    tiles = [tile(n, c, hidden=True) for n, c in ((1, RED), (2, GREEN), (3, BLUE), (4, WHITE))]
    picture = decoded(write([*tiles, grid(5, 2, 2, 100, 90, [1, 2, 3, 4])], primary=5))
    assert picture.size == (100, 90)
    assert [at(picture, x, y) for x, y in ((5, 5), (95, 5), (5, 85), (95, 85))] == [RED, GREEN, BLUE, WHITE]


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ([heif.turn(1)], (GREEN, WHITE, RED, BLUE)),
        ([heif.turn(2)], (WHITE, BLUE, GREEN, RED)),
        ([heif.turn(3)], (BLUE, RED, WHITE, GREEN)),
        ([heif.mirror(0)], (BLUE, WHITE, RED, GREEN)),
        ([heif.mirror(1)], (GREEN, RED, WHITE, BLUE)),
        ([heif.turn(1), heif.mirror(1)], (WHITE, GREEN, BLUE, RED)),
    ],
)
def test_a_picture_is_turned_and_mirrored(properties: list[bytes], expected: tuple[tuple[int, ...], ...]) -> None:
    tiles = [tile(n, c, hidden=True) for n, c in ((1, RED), (2, GREEN), (3, BLUE), (4, WHITE))]
    content = write([*tiles, grid(5, 2, 2, 128, 120, [1, 2, 3, 4], properties=properties)], primary=5)
    picture = decoded(content)
    right, bottom = picture.width - 5, picture.height - 5
    assert tuple(at(picture, x, y) for x, y in ((5, 5), (right, 5), (5, bottom), (right, bottom))) == expected


def test_a_crop_keeps_its_part() -> None:
    tiles = [tile(1, RED, hidden=True), tile(2, GREEN, hidden=True)]
    right_half = heif.crop(TILE_PX, TILE_PX, right=TILE_PX)
    picture = decoded(write([*tiles, grid(3, 1, 2, 128, 64, [1, 2], properties=[right_half])], primary=3))
    assert picture.size == (64, 64)
    assert at(picture, 2, 2) == at(picture, 61, 61) == GREEN


def test_layers_are_placed_on_their_ground() -> None:
    body = struct.pack(">BBHHHHHHhhhh", 0, 0, 0, 0, 51_400, 65_535, 200, 100, 10, 10, 120, 20)
    layers = Entry(3, b"iovl", body, [heif.size(200, 100)], {b"dimg": [1, 2]}, in_idat=True)
    picture = decoded(write([tile(1, RED), tile(2, GREEN), layers], primary=3))
    assert picture.size == (200, 100)
    assert picture.getpixel((2, 2)) == (0, 0, 200)
    assert (at(picture, 40, 40), at(picture, 150, 50)) == (RED, GREEN)


def test_an_alpha_plane_comes_along() -> None:
    plane = tile(2, WHITE, properties=[heif.alpha_kind()], references={b"auxl": [1]})
    content = write([tile(1, RED), plane], primary=1)
    picture = decoded(content)
    assert picture.mode == "RGBA"
    assert picture.getpixel((3, 3))[3] > 240
    assert [item.id for item in items_of(content).shown] == [1]


@pytest.mark.parametrize(("pix_fmt", "bits"), [("yuv420p10le", 10), ("yuv444p", 8), ("gray", 8)])
def test_other_kinds_of_pixels(pix_fmt: str, bits: int) -> None:
    configuration, data = heif.coded(RED, pix_fmt=pix_fmt)
    content = write([Entry(1, b"hvc1", data, [configuration, heif.size(TILE_PX, TILE_PX)])], primary=1)
    items = items_of(content)
    assert bits_of(items, items.primary) == bits
    picture = decoded(content)
    assert picture.mode == ("L" if pix_fmt == "gray" else "RGB")
    if pix_fmt != "gray":
        assert at(picture, 9, 9) == RED


def test_the_files_own_colours_count() -> None:
    plain = decoded(write([tile(1, GREEN)], primary=1)).getpixel((9, 9))
    other = decoded(write([tile(1, GREEN, properties=[heif.colours(1, full_range=False)])], primary=1)).getpixel((9, 9))
    full = decoded(write([tile(1, GREEN, properties=[heif.colours(6, full_range=True)])], primary=1)).getpixel((9, 9))
    assert plain != other
    assert plain != full


def _with_notes() -> bytes:
    note = exif(orientation=6).tobytes()
    note = note.removeprefix(b"Exif\0\0")
    about = {b"cdsc": [1]}
    profile = heif.box(b"colr", b"prof" + b"profile of a test")
    return write(
        [
            tile(1, RED, properties=[profile]),
            Entry(2, b"Exif", struct.pack(">I", 6) + b"Exif\0\0" + note, references=about),
            Entry(3, b"mime", b"<x:xmpmeta/>", references=about, mime_type=b"application/rdf+xml"),
        ],
        primary=1,
    )


def test_notes_are_read_and_the_orientation_is_upright() -> None:
    items = items_of(_with_notes())
    notes = read_notes(items, items.primary)
    read = Image.Exif()
    read.load(notes.exif)
    assert (read[0x0112], read[0x010F]) == (1, "Telephone")
    assert (notes.xmp, notes.profile) == (b"<x:xmpmeta/>", b"profile of a test")


def test_pillow_opens_it() -> None:
    plugin.register()
    plugin.register()
    with Image.open(io.BytesIO(_with_notes())) as picture:
        assert (picture.format, picture.size, picture.mode) == ("HEIF", (TILE_PX, TILE_PX), "RGB")
        assert picture.getexif()[0x0112] == 1
        assert picture.info["icc_profile"] == b"profile of a test"
        picture.load()
        assert at(picture, 9, 9) == RED


def test_pillow_reports_damage_as_of_any_picture() -> None:
    plugin.register()
    content = heic()
    with Image.open(io.BytesIO(content[:-400])) as picture, pytest.raises(OSError, match="behind its end"):
        picture.load()
    with pytest.raises(OSError, match="cannot identify"):
        Image.open(io.BytesIO(content[:60]))


def test_another_coding_is_named() -> None:
    content = write([Entry(1, b"av01", b"x", [heif.size(8, 8)])], primary=1)
    with pytest.raises(HeifUnsupported, match="no picture coded by HEVC"):
        _ = items_of(content).primary


def test_a_thumbnail_named_as_primary_leads_to_its_picture() -> None:
    small = heif.coded(GREEN, side=32)
    thumbnail = Entry(2, b"hvc1", small[1], [small[0], heif.size(32, 32)], {b"thmb": [1]})
    assert decoded(write([tile(1, RED), thumbnail], primary=2)).size == (TILE_PX, TILE_PX)


@pytest.mark.parametrize(
    "entries",
    [
        [grid(1, 1, 1, 64, 64, [1])],  # of itself
        [grid(1, 1, 1, 64, 64, [2]), grid(2, 1, 1, 64, 64, [1])],
        [tile(1, RED), grid(2, 2, 2, 128, 128, [1, 1])],  # too few tiles
        [tile(1, RED), grid(2, 1, 1, 640, 640, [1])],  # which do not cover it
        [grid(2, 1, 1, 64, 64, [9])],  # there is no such item
        [tile(1, RED, properties=[heif.crop(64, 64, right=400)])],
        [Entry(1, b"hvc1", b"", [heif.size(64, 64)])],
        [Entry(1, b"iovl", b"\0\1", [heif.size(64, 64)])],
    ],
)
def test_files_made_to_harm_are_damaged(entries: list[Entry]) -> None:
    content = write(entries, primary=max(entry.id for entry in entries))
    with pytest.raises(HeifDamaged):
        decoded(content)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_no_change_of_a_byte_raises_anything_else(data: st.DataObject) -> None:
    content = bytearray(_with_notes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, 900))] = data.draw(st.integers(0, 255))
    try:
        items = items_of(bytes(content))
        read_notes(items, items.primary)
        size_of(items, items.primary)
    except HeifError:
        pass


def _one_item(places: bytes) -> bytes:
    info = heif.full(b"infe", struct.pack(">HH", 1, 0) + b"hvc1\0", version=2)
    infos = heif.full(b"iinf", struct.pack(">H", 1) + info)
    return heif.box(b"ftyp", b"heic\0\0\0\0mif1heic") + heif.full(b"meta", infos + places)


def test_a_small_list_of_millions_of_parts_is_refused() -> None:
    """An extent whose numbers have no bytes takes no room: 700 bytes of a file took 12 seconds."""
    places = b"".join(struct.pack(">HHHH", 1, 0, 0, 65_535) for _ in range(20))
    with pytest.raises(HeifDamaged, match="too many parts"):
        items_of(_one_item(heif.full(b"iloc", struct.pack(">HH", 0, 20) + places, version=1)))


def test_a_part_far_behind_the_end_is_damage() -> None:
    """A place beyond what the operating system counts raised OverflowError."""
    place = struct.pack(">HHHHHQQ", 0x8800, 1, 1, 0, 1, 2**64 - 8, 4)
    items = items_of(_one_item(heif.full(b"iloc", place)))
    with pytest.raises(HeifDamaged, match="behind its end"):
        items.read(items[1])


def test_layers_of_layers_of_layers_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight levels of ten layers would be decoded a hundred million times."""
    monkeypatch.setattr(decoding, "_MAX_PARTS", 100)
    layers = [tile(1, RED)]
    for n in range(2, 6):
        body = struct.pack(">BB4HHH", 0, 0, 0, 0, 0, 0, 8, 8) + bytes(4 * 10)
        layers.append(Entry(n, b"iovl", body, [heif.size(8, 8)], {b"dimg": [n - 1] * 10}, in_idat=True))
    items = items_of(write(layers, primary=5))
    with pytest.raises(HeifDamaged, match="composed"):
        decode(items, items.primary)
