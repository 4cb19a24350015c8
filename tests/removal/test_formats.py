"""The result is a file like the original: its notes, its colours, as it was packed."""

import io
import struct
import time
import zlib
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from PIL import ExifTags, Image, ImageCms, ImageOps, JpegImagePlugin
from PIL.PngImagePlugin import PngInfo

from headrace.removal.images import formats

_RNG = np.random.default_rng(5)
_PIXELS = np.clip(_RNG.normal(120, 30, (48, 64, 3)), 0, 255).astype(np.uint8)


def _through(source: Path, target: Path | None = None) -> tuple[Any, formats.Original]:
    target = target or source.with_name(f"clean-{source.name}")
    picture, original = formats.read(str(source))
    formats.write(picture, original, str(target), formats.kind_of_result(str(target), original))
    return Image.open(io.BytesIO(target.read_bytes())), original


def _exif(orientation: int) -> bytes:
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = orientation
    exif[ExifTags.Base.Artist] = "Somebody"
    exif.get_ifd(ExifTags.IFD.Exif)[ExifTags.Base.DateTimeOriginal] = "2020:02:02 02:02:02"
    return exif.tobytes()


@pytest.mark.parametrize("name", ["p.jpg", "p.png", "p.webp", "p.tif"])
def test_exif_stays_and_the_picture_is_turned_once(tmp_path: Path, name: str) -> None:
    Image.fromarray(_PIXELS).save(tmp_path / name, exif=_exif(6), dpi=(300, 300))
    result, _ = _through(tmp_path / name)
    exif = result.getexif()
    # A JPEG stays as it lies in the file, with the note of how it is turned: so its blocks stay what they are.
    stored = ((64, 48), 6) if name.endswith("jpg") else ((48, 64), 1)
    assert (result.size, exif.get(ExifTags.Base.Orientation, 1)) == stored
    assert ImageOps.exif_transpose(result).size == (48, 64)
    assert exif[ExifTags.Base.Artist] == "Somebody"
    assert exif.get_ifd(ExifTags.IFD.Exif)[ExifTags.Base.DateTimeOriginal] == "2020:02:02 02:02:02"
    if name != "p.webp":
        assert [round(number) for number in result.info["dpi"]] == [300, 300]


def test_notes_of_a_tiff_go_into_other_kinds(tmp_path: Path) -> None:
    Image.fromarray(_PIXELS).save(tmp_path / "p.tif", exif=_exif(1))
    result, original = _through(tmp_path / "p.tif", tmp_path / "clean.jpg")
    assert result.getexif()[ExifTags.Base.Artist] == "Somebody"
    assert ExifTags.Base.StripOffsets not in result.getexif()
    assert original.notes == []


def test_a_packed_tiff_stays_packed_unless_its_notes_forbid(tmp_path: Path) -> None:
    plain = Image.Exif()
    plain[ExifTags.Base.Artist] = "Somebody"
    Image.fromarray(_PIXELS).save(tmp_path / "p.tif", exif=plain, compression="tiff_lzw")
    result, original = _through(tmp_path / "p.tif")
    assert (result.info["compression"], result.getexif()[ExifTags.Base.Artist]) == ("tiff_lzw", "Somebody")
    original.kept["exif"] = _exif(1)
    formats.write(_PIXELS, original, str(tmp_path / "inner.tif"), "TIFF")
    with Image.open(tmp_path / "inner.tif") as inner:
        assert inner.getexif().get_ifd(ExifTags.IFD.Exif)
        assert np.array_equal(np.asarray(inner), _PIXELS)
    assert original.notes == []


@pytest.mark.parametrize("sampling", [0, 1, 2])
@pytest.mark.parametrize("progressive", [False, True])
def test_a_jpeg_is_packed_as_it_came(tmp_path: Path, sampling: int, progressive: bool) -> None:
    source = tmp_path / "p.jpg"
    Image.fromarray(_PIXELS).save(source, quality=71, subsampling=sampling, progressive=progressive)
    result, _ = _through(source)
    with Image.open(source) as before:
        assert isinstance(before, JpegImagePlugin.JpegImageFile)
        assert result.quantization == before.quantization
        assert JpegImagePlugin.get_sampling(result) == sampling
        assert bool(result.info.get("progressive")) == progressive


def test_tables_that_cannot_be_written_give_way_to_good_ones(tmp_path: Path) -> None:
    original = formats.Original("JPEG", grey=False, own={"qtables": {0: [1, 2, 3]}})
    formats.write(_PIXELS, original, str(tmp_path / "p.jpg"), "JPEG")
    with Image.open(tmp_path / "p.jpg") as result:
        assert max(result.quantization[0]) < 20  # type: ignore[attr-defined]
    assert len(original.notes) == 1


@pytest.mark.parametrize("lossless", [False, True])
@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
def test_webp_stays_lossless_if_it_was(tmp_path: Path, lossless: bool, mode: str) -> None:
    source = tmp_path / "p.webp"
    image = Image.fromarray(_PIXELS)
    if mode == "RGBA":
        image.putalpha(120)
    image.save(source, lossless=lossless, exif=_exif(1))
    result, _ = _through(source)
    with Image.open(source) as before:
        same = np.array_equal(np.asarray(before), np.asarray(result))
    assert (same, result.mode) == (lossless, mode)


@pytest.mark.parametrize("name", ["p.jpg", "p.png", "p.tif"])
def test_grey_stays_grey(tmp_path: Path, name: str) -> None:
    Image.fromarray(_PIXELS).convert("L").save(tmp_path / name)
    result, original = _through(tmp_path / name)
    assert (result.mode, original.notes) == ("L", [])


@pytest.mark.parametrize("name", ["p.gif", "p.webp", "p.png", "p.tif"])
def test_several_frames_are_refused(tmp_path: Path, name: str) -> None:
    frames = [Image.fromarray(np.roll(_PIXELS, shift, 0)) for shift in (0, 9, 20)]
    frames[0].save(tmp_path / name, save_all=True, append_images=frames[1:])
    with pytest.raises(formats.NotCleanable, match="holds 3 frames or pages: only single pictures"):
        formats.read(str(tmp_path / name))


def test_a_telephones_photograph_with_a_preview_is_one_picture(tmp_path: Path) -> None:
    first, second = Image.fromarray(_PIXELS), Image.fromarray(_PIXELS[::2, ::2])
    first.save(tmp_path / "p.jpg", "MPO", save_all=True, append_images=[second])
    result, original = _through(tmp_path / "p.jpg")
    assert (result.format, result.size) == ("JPEG", (64, 48))
    assert original.notes == ["the previews or maps behind the photograph are not kept"]


def test_what_becomes_8_bits_of_rgb_is_said(tmp_path: Path) -> None:
    deep = _PIXELS.astype(np.uint16) * 257
    cv2.imwrite(str(tmp_path / "rgb.png"), deep)
    cv2.imwrite(str(tmp_path / "grey.png"), deep[..., 0])
    Image.fromarray(_PIXELS).convert("CMYK").save(tmp_path / "cmyk.jpg")
    cv2.imwrite(str(tmp_path / "rgb.tif"), deep)
    for name, to, mode, note in (
        ("rgb.png", "clean.webp", "RGB", "more than 8 bits a colour become 8"),
        ("rgb.tif", "clean.tif", "RGB", "more than 8 bits a colour become 8"),
        ("cmyk.jpg", "clean.jpg", "RGB", "CMYK becomes RGB"),
    ):
        result, original = _through(tmp_path / name, tmp_path / to)
        assert (result.mode, original.notes) == (mode, [note])


@pytest.mark.parametrize("shape", [(48, 64), (48, 64, 3), (48, 64, 4)])
def test_a_png_of_16_bits_keeps_them_beside_the_mark(shape: tuple[int, ...], tmp_path: Path) -> None:  # W-05
    deep = np.random.default_rng(3).integers(0, 65536, shape, np.uint16)
    source, target = str(tmp_path / "a.png"), str(tmp_path / "b.png")
    cv2.imwrite(source, deep)
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    raw = Path(source).read_bytes()
    body = b"p\0\0" + zlib.compress(profile)
    chunk = struct.pack(">I", len(body)) + b"iCCP" + body + struct.pack(">I", zlib.crc32(b"iCCP" + body))
    Path(source).write_bytes(raw[:33] + chunk + raw[33:])
    picture, original = formats.read(source)
    changed = picture.copy()
    changed[10:20, 10:20] = 100
    formats.write(changed, original, target, "PNG")
    again: Any = cv2.imread(target, cv2.IMREAD_UNCHANGED)
    assert (again.dtype, again.shape) == (np.uint16, shape)
    away = np.ones(shape[:2], np.bool_)
    away[10:20, 10:20] = False
    assert (again[away] == deep[away]).all()
    colours = again if len(shape) == 2 else again[..., :3]
    assert (colours[10:20, 10:20] >> 8 == 100).all()
    if len(shape) == 3 and shape[2] == 4:
        assert (again[..., 3] == deep[..., 3]).all()
    with Image.open(target) as opened:
        assert opened.info["icc_profile"] == profile
    assert original.notes == []


def _profile(space: bytes, tags: dict[bytes, bytes]) -> bytes:
    """An ICC profile of version 2."""
    texts = {
        b"desc": b"desc" + bytes(4) + struct.pack(">I", 2) + b"x\0" + bytes(78),
        b"cprt": b"text" + bytes(4) + b"x\0",
    }
    white = {b"wtpt": b"XYZ " + bytes(4) + struct.pack(">3i", 63190, 65536, 54061)}
    index, content = b"", b""
    tags = texts | white | tags
    for name, data in tags.items():
        data += bytes(-len(data) % 4)
        index += name + struct.pack(">2I", 132 + 12 * len(tags) + len(content), len(data))
        content += data
    size = 132 + len(index) + len(content)
    head = struct.pack(">I4xI4s4s4s12x4s28x3i", size, 0x02400000, b"prtr", space, b"Lab ", b"acsp", 63190, 65536, 54061)
    return head.ljust(128, b"\0") + struct.pack(">I", len(tags)) + index + content


def _press() -> bytes:
    """A press on which cyan prints as red, and the other colours not at all; black is black."""
    paper, red, black = (255, 128, 128), (138, 209, 198), (0, 128, 128)
    nodes = [black if ink & 1 else red if ink & 8 else paper for ink in range(16)]
    straight = bytes(range(256))
    unity = struct.pack(">9i", *(65536 * (place % 4 == 0) for place in range(9)))
    table = b"mft1" + bytes(4) + bytes((4, 3, 2, 0)) + unity
    return _profile(b"CMYK", {b"A2B0": table + straight * 4 + bytes(sum(nodes, ())) + straight * 3})


@pytest.mark.parametrize("name", ["p.jpg", "p.tif"])
def test_cmyk_becomes_what_its_profile_says_and_the_profile_goes(tmp_path: Path, name: str) -> None:
    inks = np.zeros((64, 64, 4), np.uint8)
    inks[:32, :, 0] = inks[48:, :, 3] = 255
    image = Image.fromarray(inks, "CMYK")
    for profile, colour in ((None, (0, 255, 255)), (_press(), (255, 0, 0))):
        image.save(tmp_path / name, icc_profile=profile)
        result, original = _through(tmp_path / name)
        assert "icc_profile" not in result.info
        assert original.notes == ["CMYK becomes RGB"]
        for row, expected in ((16, colour), (40, (255, 255, 255)), (56, (0, 0, 0))):
            assert np.allclose(result.getpixel((32, row)), expected, atol=8), row


def test_a_profile_that_cannot_be_read_goes_and_is_spoken_of(tmp_path: Path) -> None:
    Image.fromarray(_PIXELS).convert("CMYK").save(tmp_path / "p.jpg", icc_profile=_press()[:600])
    result, original = _through(tmp_path / "p.jpg")
    assert "icc_profile" not in result.info
    assert original.notes[0] == "CMYK becomes RGB"
    assert original.notes[1].startswith("the colour profile could not be used, so colours differ")


@pytest.mark.parametrize("mode", ["L", "RGB"])
@pytest.mark.parametrize("name", ["p.jpg", "p.png", "p.tif"])
def test_the_profiles_of_grey_and_rgb_stay(tmp_path: Path, mode: str, name: str) -> None:
    profile = _profile(b"GRAY", {b"kTRC": b"curv" + bytes(8)})
    if mode == "RGB":
        profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    Image.fromarray(_PIXELS).convert(mode).save(tmp_path / name, icc_profile=profile)
    result, original = _through(tmp_path / name)
    assert (result.mode, result.info["icc_profile"], original.notes) == (mode, profile, [])


def test_a_transparent_colour_stays_transparent(tmp_path: Path) -> None:
    image = Image.fromarray(_PIXELS).quantize(8)
    image.save(tmp_path / "p.png", transparency=3)
    result, _ = _through(tmp_path / "p.png")
    assert np.array_equal(np.asarray(result)[..., 3] == 0, np.asarray(image) == 3)


def test_a_kind_that_is_only_read_is_said_to_be(tmp_path: Path) -> None:
    with pytest.raises(formats.NotCleanable, match="PSD can be read, but not written"):
        formats.kind_of_result(str(tmp_path / "p.psd"), formats.Original("PSD", grey=False))


@pytest.mark.parametrize("sampling", [0, 1, 2])
@pytest.mark.parametrize("turned", [1, 6])
def test_a_jpeg_keeps_its_blocks_beside_the_mark_and_how_it_is_turned(  # W-05
    sampling: int, turned: int, tmp_path: Path
) -> None:
    rng = np.random.default_rng(5)
    soft = cv2.resize(rng.uniform(20, 235, (30, 41, 3)).astype(np.float32), (327, 243), interpolation=cv2.INTER_CUBIC)
    exif = Image.Exif()
    exif[274] = turned
    source, target = str(tmp_path / "a.jpg"), str(tmp_path / "b.jpg")
    colourful = Image.fromarray(np.clip(soft, 0, 255).astype(np.uint8))
    colourful.save(source, quality=88, subsampling=sampling, exif=exif.tobytes(), xmp=b"<x/>")
    picture, original = formats.read(source)
    assert picture.shape[:2] == ((243, 327) if turned == 1 else (327, 243))
    changed = picture.copy()
    changed[96:128, 96:128] //= 2
    formats.write(changed, original, target, "JPEG")
    written, again = formats.read(target)
    away = np.ones(picture.shape[:2], np.bool_)
    away[80:144, 80:144] = False
    error = np.mean((written.astype(np.float64) - picture)[away] ** 2)
    assert error < 255**2 / 10**5.5  # 55 dB
    assert (written == picture)[away].mean() > 0.97
    assert np.abs(written.astype(int) - changed)[100:124, 100:124].mean() < 4
    with Image.open(target) as opened:
        assert opened.getexif()[274] == turned
        assert (opened.info["xmp"], JpegImagePlugin.get_sampling(opened)) == (b"<x/>", sampling)
        with Image.open(source) as first:
            assert getattr(opened, "quantization") == getattr(first, "quantization")  # noqa: B009 - untyped
    assert again.kept.keys() == original.kept.keys()


@pytest.mark.parametrize("name", ["photo.png", "photo.jpg", "photo.webp"])
def test_xmp_stays(tmp_path: Path, name: str) -> None:
    """A PNG's was dropped without a word."""
    xmp = b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF/></x:xmpmeta>'
    source, target = tmp_path / name, tmp_path / f"clean-{name}"
    picture = Image.new("RGB", (64, 48), (200, 30, 30))
    if name.endswith("png"):
        notes = PngInfo()
        notes.add_itxt("XML:com.adobe.xmp", xmp.decode())
        picture.save(source, pnginfo=notes)
    else:
        picture.save(source, xmp=xmp)
    pixels, original = formats.read(str(source))
    formats.write(pixels, original, str(target), original.kind)
    with Image.open(target) as written:
        assert written.info["xmp"] == xmp


@pytest.mark.parametrize(
    "link",
    [
        b'<rdf:Description dcterms:provenance="self#jumbf=/c2pa/urn:uuid:1" dc:format="image/jpeg"/>',
        b'<rdf:Description dc:format="image/jpeg"><dcterms:provenance>https://x.example/m</dcterms:provenance></rdf:Description>',
    ],
)
def test_no_link_to_dropped_content_credentials_stays(link: bytes, tmp_path: Path) -> None:
    source, target = tmp_path / "photo.jpg", tmp_path / "clean.jpg"
    xmp = b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF>%b</rdf:RDF></x:xmpmeta>' % link
    Image.new("RGB", (64, 48), (200, 30, 30)).save(source, xmp=xmp)
    pixels, original = formats.read(str(source))
    formats.write(pixels, original, str(target), "JPEG")
    with Image.open(target) as written:
        assert b"provenance" not in written.info["xmp"]
        assert b'dc:format="image/jpeg"' in written.info["xmp"]


@pytest.mark.parametrize(
    "unit", [b" ", b"<dcterms:provenance ", b"<dcterms:provenance>", b" dcterms:provenance=", b" dcterms:provenance "]
)
def test_hostile_xmp_is_searched_in_linear_time(unit: bytes, tmp_path: Path) -> None:
    """A WebP's XMP may be as large as the file; 100 kB of spaces took six seconds, 200 kB 24."""
    source = tmp_path / "photo.webp"
    Image.new("RGB", (64, 48)).save(source, xmp=unit * (1_000_000 // len(unit)))
    began = time.process_time()
    formats.read(str(source))
    assert time.process_time() - began < 5


def test_content_credentials_are_dropped_with_a_warning(tmp_path: Path) -> None:
    source = tmp_path / "photo.png"
    Image.new("RGB", (8, 8)).save(source)
    content = source.read_bytes()
    manifest = b"\0\0\0\x20jumb\0\0\0\x18jumdc2pa\0\x11\0\x10\x80\0\0\xaa\0\x38\x9bq\x03"
    chunk = len(manifest).to_bytes(4, "big") + b"caBX" + manifest + zlib.crc32(b"caBX" + manifest).to_bytes(4, "big")
    assert formats.read(str(source))[1].notes == []
    source.write_bytes(content[:33] + chunk + content[33:])
    _, original = formats.read(str(source))
    assert ["Content Credentials (C2PA)" in note for note in original.notes] == [True]
