"""Good files of every kind that is taken, made here: none is brought along."""

import functools
import io
import struct
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import av
import pikepdf
from PIL import Image, TiffImagePlugin

from tests.assets.inspection.old_office import compound_file, presentation_stream

GPS_LATITUDE = b"exif:GPSLatitude"
_XMP = (
    b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="r"><rdf:Description xmlns:exif="e" '
    b'exif:GPSLatitude="48,8.5N" exif:GPSLongitude="11,34.6E"/></rdf:RDF></x:xmpmeta>'
)
CONTENT_TYPES = (
    '<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Override PartName="/ppt/presentation.xml" ContentType="application/vnd.openxmlformats-officedocument.'
    'presentationml.presentation.main+xml"/></Types>'
)


def picture(width: int = 96, height: int = 64, mode: str = "RGB") -> Any:
    """Something with detail in every corner, so that cutting it off is noticed."""
    drawn = Image.effect_noise((width, height), 60)
    return Image.merge("RGB", (drawn, drawn.rotate(180), drawn.transpose(Image.Transpose.FLIP_LEFT_RIGHT))).convert(
        mode
    )


def packed(image: Any, kind: str, **options: Any) -> bytes:
    target = io.BytesIO()
    image.save(target, kind, **options)
    return target.getvalue()


def exif(orientation: int = 6) -> Any:
    """As a telephone writes it: turned, and with the place."""
    written = Image.Exif()
    written[0x0112] = orientation
    written[0x010F] = "Telephone"
    third = TiffImagePlugin.IFDRational
    written[0x8825] = {1: "N", 2: (third(48), third(8), third(3055, 100)), 3: "E", 4: (third(11), third(34), third(3))}
    read = Image.Exif()  # once written and read, it can be put into any kind of file
    read.load(written.tobytes())
    return read


def jpeg(**options: Any) -> bytes:
    return packed(picture(), "JPEG", **{"quality": 85, **options})


def video(
    kind: str,
    codec: str,
    *,
    frames: int = 12,
    rate: int = 12,
    rotation: int = 0,
    times: Sequence[int] | None = None,
    black: int = 0,
    place: str | None = None,
    options: dict[str, str] | None = None,
) -> bytes:
    """A short film; ``times`` are its frames' ticks, ``black`` is how many at its beginning show nothing."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"video.{kind}")
        with av.open(str(path), "w", format={"mkv": "matroska"}.get(kind, kind)) as container:
            if place is not None:
                container.metadata["location"] = place
            stream: Any = container.add_stream(codec, rate=rate, options=options)
            stream.width, stream.height, stream.pix_fmt = 96, 64, "yuv420p"
            stream.codec_context.thread_count = 1
            if rotation:
                stream.set_display_rotation(rotation)
            for number in range(frames):
                shown = Image.new("RGB", (96, 64)) if number < black else picture().rotate(number * 10)
                frame = av.VideoFrame.from_image(shown)  # type: ignore[no-untyped-call]
                frame.pts = number if times is None else times[number]
                container.mux(stream.encode(frame))
            container.mux(stream.encode())
        return path.read_bytes()


def heic() -> bytes:
    """One picture coded by HEVC, in the boxes that HEIC wants around it."""
    film = video("mp4", "libx265", frames=2, options={"x265-params": "log-level=none:bframes=0"})
    place = film.index(b"hvcC") - 4
    configuration = film[place : place + int.from_bytes(film[place : place + 4], "big")]
    with av.open(io.BytesIO(film), "r") as container:
        data = bytes(next(container.demux(container.streams.video[0])))
    properties = _box(b"ipco", configuration + _full(b"ispe", struct.pack(">II", 96, 64)))
    properties += _full(b"ipma", struct.pack(">IHBBB", 1, 1, 2, 0x81, 2))
    start = _box(b"ftyp", b"heic\0\0\0\0mif1heic")

    def meta(offset: int) -> bytes:
        return _full(
            b"meta",
            _full(b"hdlr", b"\0\0\0\0pict" + bytes(13))
            + _full(b"pitm", struct.pack(">H", 1))
            + _full(b"iinf", struct.pack(">H", 1) + _full(b"infe", struct.pack(">HH", 1, 0) + b"hvc1\0", version=2))
            + _full(b"iloc", struct.pack(">BBHHHHII", 0x44, 0, 1, 1, 0, 1, offset, len(data)))
            + _box(b"iprp", properties),
        )

    return start + meta(len(start) + len(meta(0)) + 8) + _box(b"mdat", data)


def pdf(pages: int = 3, **options: Any) -> bytes:
    document = pikepdf.new()
    for number in range(pages):
        document.add_blank_page(page_size=(595, 842))
        content = f"BT /F1 24 Tf 72 {700 - number % 50} Td (Page {number}) Tj ET".encode()
        page = document.pages[-1]
        page.Contents = document.make_stream(content)
        font = pikepdf.Dictionary(Type=pikepdf.Name.Font, Subtype=pikepdf.Name.Type1, BaseFont=pikepdf.Name.Helvetica)
        page.Resources = pikepdf.Dictionary(Font=pikepdf.Dictionary(F1=font))
    target = io.BytesIO()
    document.save(target, **options)
    return target.getvalue()


def self_drawing_pdf() -> bytes:
    """A page of a form that draws itself forty times: a kilobyte that no renderer comes to the end of."""
    document = pikepdf.new()
    document.add_blank_page(page_size=(300, 400))
    form = document.make_stream(b"/F Do " * 40, Type=pikepdf.Name.XObject, Subtype=pikepdf.Name.Form)
    form.BBox = [0, 0, 300, 400]
    form.Resources = pikepdf.Dictionary(XObject=pikepdf.Dictionary(F=form))
    page = document.pages[0]
    page.Resources = pikepdf.Dictionary(XObject=pikepdf.Dictionary(F=form))
    page.Contents = document.make_stream(b"/F Do " * 40)
    target = io.BytesIO()
    document.save(target)
    return target.getvalue()


def pdf_of_size(**page: Any) -> bytes:
    document = pikepdf.new()
    document.add_blank_page(page_size=(595, 842))
    for name, value in page.items():
        document.pages[0][f"/{name}"] = value
    target = io.BytesIO()
    document.save(target)
    return target.getvalue()


def signed_pdf() -> bytes:
    document = pikepdf.open(io.BytesIO(pdf(1)))
    signature = pikepdf.Dictionary(Type=pikepdf.Name.Sig, ByteRange=[0, 10, 20, 10], Contents=pikepdf.String("x"))
    field = document.make_indirect(pikepdf.Dictionary(FT=pikepdf.Name.Sig, T=pikepdf.String("S"), V=signature))
    document.Root.AcroForm = pikepdf.Dictionary(SigFlags=3, Fields=[field])
    target = io.BytesIO()
    document.save(target)
    return target.getvalue()


def pptx(slides: int = 3, *, more: dict[str, bytes] | None = None, content_types: str = CONTENT_TYPES) -> bytes:
    listed = "".join(f'<p:sldId id="{256 + number}"/>' for number in range(slides))
    main = (
        '<?xml version="1.0"?><p:presentation xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main">'
        f'<p:sldIdLst>{listed}</p:sldIdLst><p:sldSz cx="12192000" cy="6858000"/></p:presentation>'
    )
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", content_types)
        archive.writestr("ppt/presentation.xml", main)
        for number in range(slides):
            archive.writestr(f"ppt/slides/slide{number + 1}.xml", f"<slide>{number}</slide>" * 50)
        for name, content in (more or {}).items():
            archive.writestr(name, content)
    return target.getvalue()


def ppt(slides: int = 3) -> bytes:
    return compound_file(
        {"Current User": bytes(12) + b"\x5f\xc0\x91\xe3", "PowerPoint Document": presentation_stream(slides)}
    )


@functools.cache
def all_kinds() -> dict[str, bytes]:
    """Name, which begins with the format, and bytes."""
    several = [picture(48, 32, "P").rotate(angle) for angle in (0, 40, 80)]
    return {
        "jpeg": jpeg(),
        "jpeg-turned": jpeg(exif=exif(), xmp=_XMP),
        "jpeg-progressive": jpeg(progressive=True),
        "jpeg-grey": packed(picture(mode="L"), "JPEG"),
        "jpeg-cmyk": packed(picture(mode="CMYK"), "JPEG"),
        "png": packed(picture(), "PNG", exif=exif()),
        "png-palette": packed(picture(mode="P"), "PNG"),
        "png-alpha": packed(picture(mode="RGBA"), "PNG"),
        "png-animated": packed(several[0], "PNG", save_all=True, append_images=several[1:], duration=100),
        "webp": packed(picture(), "WEBP", exif=exif()),
        "webp-lossless": packed(picture(mode="RGBA"), "WEBP", lossless=True),
        "webp-animated": packed(several[0], "WEBP", save_all=True, append_images=several[1:], duration=100),
        "tiff": packed(picture(), "TIFF", exif=exif(1)),
        "tiff-pages": packed(picture(), "TIFF", save_all=True, append_images=several, compression="tiff_lzw"),
        "gif": packed(several[0], "GIF"),
        "gif-animated": packed(several[0], "GIF", save_all=True, append_images=several[1:], duration=100, loop=0),
        "heic": heic(),
        "mp4": video("mp4", "libx264"),
        "mp4-turned": video("mp4", "mpeg4", rotation=-90),
        "mov": video("mov", "mpeg4"),
        "mkv": video("mkv", "mpeg4"),
        "webm": video("webm", "libvpx"),
        "pdf": pdf(),
        "pdf-streams": pdf(2, object_stream_mode=pikepdf.ObjectStreamMode.generate),
        "pdf-rights": pdf(2, encryption=pikepdf.Encryption(owner="owner", user="")),
        "pdf-signed": signed_pdf(),
        "pptx": pptx(),
        "pptx-macros": pptx(2, more={"ppt/vbaProject.bin": b"program" * 40}),
        "ppt": ppt(),
    }


def _box(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", 8 + len(body)) + kind + body


def _full(kind: bytes, body: bytes, version: int = 0) -> bytes:
    return _box(kind, bytes([version, 0, 0, 0]) + body)
