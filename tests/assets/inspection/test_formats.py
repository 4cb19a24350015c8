"""What is said of good files, by their content alone."""

import io
import struct
import zipfile
from typing import Any

import pytest

from headrace.assets.inspection.errors import FileMismatch, FileTooLarge
from headrace.assets.inspection.model import FileLimits, Format, MediaType
from headrace.assets.inspection.service import Inspector
from tests.assets.inspection import good
from tests.assets.inspection.conftest import Keep

pytestmark = pytest.mark.asyncio(loop_scope="module")
LIMITS = FileLimits()
PICTURE = {"width": 96, "height": 64, "frames": 1, "orientation": 1}
SMALL = {"width": 48, "height": 32, "orientation": 1}
FILM = {"width": 96, "height": 64, "frames": 12, "duration_ms": 1000, "orientation": 1}
EXPECTED: dict[str, dict[str, Any]] = {
    "jpeg": PICTURE,
    "jpeg-turned": {**PICTURE, "orientation": 6},
    "jpeg-progressive": PICTURE,
    "jpeg-grey": PICTURE,
    "jpeg-cmyk": PICTURE,
    "png": {**PICTURE, "orientation": 6},
    "png-palette": PICTURE,
    "png-alpha": PICTURE,
    "png-animated": {**SMALL, "frames": 3, "duration_ms": 300},
    "webp": {**PICTURE, "orientation": 6},
    "webp-lossless": PICTURE,
    "webp-animated": {**SMALL, "frames": 3, "duration_ms": 300},
    "tiff": {**PICTURE, "pages": 1},
    "tiff-pages": {**PICTURE, "pages": 4},
    "gif": {**SMALL, "frames": 1},
    "gif-animated": {**SMALL, "frames": 3, "duration_ms": 300},
    "heic": PICTURE,
    "mp4": FILM,
    "mp4-turned": {**FILM, "orientation": 6},
    "mov": FILM,
    "mkv": FILM,
    "webm": FILM,
    "pdf": {"pages": 3, "encrypted": False, "signed": False},
    "pdf-streams": {"pages": 2},
    "pdf-rights": {"pages": 2, "encrypted": True},
    "pdf-signed": {"pages": 1, "signed": True},
    "pptx": {"pages": 3, "signed": False},
    "pptx-macros": {"pages": 2},
    "ppt": {"pages": 3},
}


async def test_every_kind_is_known_by_its_content(inspector: Inspector, keep: Keep) -> None:  # W-02
    assert EXPECTED.keys() == good.all_kinds().keys()
    for name, content in good.all_kinds().items():
        found = await inspector.inspect(keep(content), limits=LIMITS)
        kind = Format(name.partition("-")[0])
        assert (found.format, found.media_type, found.mime_type) == (kind, kind.media_type, kind.mime_type), name
        expected = EXPECTED[name]
        assert {field: getattr(found, field) for field in expected} == expected, name


async def test_what_only_some_kinds_have_is_in_the_details(inspector: Inspector, keep: Keep) -> None:
    kinds = good.all_kinds()

    async def details(name: str) -> Any:
        return (await inspector.inspect(keep(kinds[name]), limits=LIMITS)).details

    film = await details("mp4")
    assert (film["video_codec"], film["frame_rate"], film["variable_frame_rate"]) == ("h264", 12.0, False)
    assert (film["audio"], film["subtitles"]) == ([], [])
    page = await details("pdf")
    assert (page["page_width_pt"], page["page_height_pt"]) == (595, 842)
    assert (await details("pdf-rights"))["notes"] == ["rights"]
    assert (await details("pptx-macros"))["notes"] == ["macros"]
    assert (await details("ppt"))["slide_width_emu"] == (await details("pptx"))["slide_width_emu"] * 3 // 4


async def test_a_form_that_draws_itself_does_not_keep_the_inspection_busy(inspector: Inspector, keep: Keep) -> None:
    """The size of a page was asked of the renderer, which parses the page: a 1.5 kB PDF took all CPU time there is."""
    content = good.self_drawing_pdf()
    assert len(content) < 2000
    found = await inspector.inspect(keep(content), limits=LIMITS)
    assert (found.pages, found.details["page_width_pt"], found.details["page_height_pt"]) == (1, 300, 400)


@pytest.mark.parametrize(
    ("page", "size"),
    [
        ({"UserUnit": 2}, (1190, 1684)),
        ({"Rotate": 90}, (842, 595)),
        ({"CropBox": [100, 100, 400, 300]}, (300, 200)),
        ({"CropBox": [400, 300, 100, 100], "UserUnit": 3}, (900, 600)),
        ({"CropBox": [-50, -50, 900, 900]}, (595, 842)),
        ({"MediaBox": [0, 0, 0, 842]}, (None, None)),
    ],
)
async def test_the_size_of_a_page_is_what_its_boxes_say(
    page: dict[str, Any], size: tuple[float | None, float | None], inspector: Inspector, keep: Keep
) -> None:
    details = (await inspector.inspect(keep(good.pdf_of_size(**page)), limits=LIMITS)).details
    assert (details.get("page_width_pt"), details.get("page_height_pt")) == size


async def test_a_frame_rate_that_varies_is_noticed(inspector: Inspector, keep: Keep) -> None:
    content = good.video("mkv", "mpeg4", frames=30, times=[number**2 // 8 + number for number in range(30)])
    found = await inspector.inspect(keep(content), limits=LIMITS)
    assert (found.details["variable_frame_rate"], found.frames) == (True, 30)


async def test_a_recording_without_a_duration_is_measured(
    inspector: Inspector, keep: Keep
) -> None:  # as browsers write them
    content = good.all_kinds()["webm"]
    duration = content.index(b"\x44\x89\x88")  # the element, and that it has 8 bytes
    found = await inspector.inspect(
        keep(content[:duration] + b"\xec\x89" + bytes(9) + content[duration + 11 :]), limits=LIMITS
    )
    assert (found.frames, found.duration_ms) == (12, 1000)


async def test_a_duration_that_is_written_too_short_is_measured(inspector: Inspector, keep: Keep) -> None:
    """Plans limit it, and what a removal costs goes by it."""
    content = good.all_kinds()["mkv"]
    number = content.index(b"\x44\x89\x88") + 3
    found = await inspector.inspect(
        keep(content[:number] + struct.pack(">d", 1.0) + content[number + 8 :]), limits=LIMITS
    )
    assert found.duration_ms == FILM["duration_ms"]


async def test_what_viewers_show_is_taken_with_a_note(inspector: Inspector, keep: Keep) -> None:
    kinds = good.all_kinds()
    motion_photo = kinds["jpeg"] + kinds["mp4"]
    document = kinds["pdf"]
    files = {
        "bytes_behind": [motion_photo, kinds["png"] + b"\n" * 20, kinds["gif"] + b"\0\0"],
        "bytes_before": [b"\r\nmail header\r\n" + document],
        "no_end": [kinds["png"][:-6], kinds["jpeg"][:-2], kinds["jpeg-progressive"][:-2], kinds["gif"][:-1]],
        "repaired": [document[: document.rindex(b"xref")], document.replace(b"startxref\n", b"startxref\n9")],
    }
    for note, contents in files.items():
        for number, content in enumerate(contents):
            found = await inspector.inspect(keep(content), limits=LIMITS)
            assert note in found.details["notes"], (note, number)


async def test_the_kinds_of_presentations_have_their_own_names(inspector: Inspector, keep: Keep) -> None:
    types = good.CONTENT_TYPES.replace("presentation.main", "slideshow.main")
    found = await inspector.inspect(keep(good.pptx(content_types=types)), limits=LIMITS)
    assert found.mime_type == "application/vnd.openxmlformats-officedocument.presentationml.slideshow"
    signature = {"_xmlsignatures/sig1.xml": b"<Signature/>"}
    assert (await inspector.inspect(keep(good.pptx(more=signature)), limits=LIMITS)).signed


async def test_more_than_the_plan_allows_is_refused_by_its_own_code(inspector: Inspector, keep: Keep) -> None:  # W-18
    kinds = good.all_kinds()
    for name, limits, code in (
        ("jpeg", FileLimits(max_pixels=96 * 64 - 1), "file_too_many_pixels"),
        ("heic", FileLimits(max_pixels=1000), "file_too_many_pixels"),
        ("webm", FileLimits(max_pixels=1000), "file_too_many_pixels"),
        ("pdf", FileLimits(max_pages=2), "file_too_many_pages"),
        ("tiff-pages", FileLimits(max_pages=3), "file_too_many_pages"),
        ("ppt", FileLimits(max_pages=2), "file_too_many_pages"),
        ("gif-animated", FileLimits(max_frames=2), "file_too_many_frames"),
        ("mkv", FileLimits(max_seconds=0), "file_too_long"),
        ("pptx", FileLimits(max_unpacked_bytes=1000), "file_bomb"),
    ):
        with pytest.raises(Exception, match=r"\w") as caught:
            await inspector.inspect(keep(kinds[name]), limits=limits)
        assert getattr(caught.value, "code", caught.value) == code, name
    with pytest.raises(FileTooLarge) as too_large:
        await inspector.inspect(keep(kinds["jpeg"]), limits=FileLimits(max_bytes=100))
    assert too_large.value.details == {"size_bytes": len(kinds["jpeg"]), "max_bytes": 100}


async def test_a_file_that_is_not_what_was_said_is_refused(inspector: Inspector, keep: Keep) -> None:
    path = keep(good.all_kinds()["pdf"])
    assert (await inspector.inspect(path, limits=LIMITS, expected=MediaType.PDF)).pages == 3
    with pytest.raises(FileMismatch, match="of the kind PDF, not IMAGE"):
        await inspector.inspect(path, limits=LIMITS, expected=MediaType.IMAGE)


async def test_an_archive_within_a_presentation_does_not_make_two_files_of_it(inspector: Inspector, keep: Keep) -> None:
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("xl/workbook.xml", "<x/>")
    found = await inspector.inspect(keep(good.pptx(more={"ppt/embeddings/a.xlsx": inner.getvalue()})), limits=LIMITS)
    assert found.format is Format.PPTX
