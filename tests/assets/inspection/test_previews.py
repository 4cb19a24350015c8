"""Small pictures, and files without the place where they were taken."""

from pathlib import Path

import av
import pytest
from PIL import Image

from headrace.assets.inspection.errors import FileUnsupported
from headrace.assets.inspection.model import FileLimits
from headrace.assets.inspection.service import Inspector
from tests.assets.inspection import good
from tests.assets.inspection.conftest import Keep

pytestmark = pytest.mark.asyncio(loop_scope="module")
LIMITS = FileLimits()
GPS = 0x8825


async def test_every_kind_has_a_preview_that_fits_and_stands_upright(
    inspector: Inspector, keep: Keep, tmp_path: Path
) -> None:  # W-02
    target = tmp_path / "preview"
    for name, content in good.all_kinds().items():
        path = keep(content)
        facts = await inspector.inspect(path, limits=LIMITS)
        await inspector.preview(path, facts, target, longest_side=32)
        with Image.open(target) as preview:
            preview.load()
            assert preview.format == "WEBP", name
            assert max(preview.size) == 32, name
            turned = facts.orientation == 6
            upright = name.startswith("pdf") or turned
            assert (preview.height > preview.width) == upright, name


async def test_a_video_that_begins_in_black_shows_its_first_picture(
    inspector: Inspector, keep: Keep, tmp_path: Path
) -> None:
    path, target = keep(good.video("mp4", "mpeg4", black=6)), tmp_path / "preview"
    await inspector.preview(path, await inspector.inspect(path, limits=LIMITS), target, longest_side=64)
    with Image.open(target) as preview:
        brightness = preview.convert("L").tobytes()
        assert max(brightness) - min(brightness) > 60


async def test_odd_pictures_that_were_taken_have_a_preview(inspector: Inspector, keep: Keep, tmp_path: Path) -> None:
    kinds, target = good.all_kinds(), tmp_path / "preview"
    deep = good.packed(Image.new("I;16B", (40, 20), 900), "TIFF")
    for content in (kinds["jpeg"][:-2], kinds["png"][:-6], kinds["gif"][:-1], deep):
        path = keep(content)
        await inspector.preview(path, await inspector.inspect(path, limits=LIMITS), target, longest_side=32)
        with Image.open(target) as preview:
            assert max(preview.size) == 32


async def test_a_presentation_shows_the_picture_that_it_keeps_of_itself(
    inspector: Inspector, keep: Keep, tmp_path: Path
) -> None:
    red = good.packed(Image.new("RGB", (256, 144), (200, 0, 0)), "JPEG")
    path, target = keep(good.pptx(more={"docProps/thumbnail.jpeg": red})), tmp_path / "preview"
    await inspector.preview(path, await inspector.inspect(path, limits=LIMITS), target, longest_side=64)
    with Image.open(target) as preview:
        assert preview.size == (64, 36)
        red_part, green_part = preview.convert("RGB").tobytes()[:2]
        assert red_part > 150 > green_part


@pytest.mark.parametrize("name", ["jpeg-turned", "png", "webp", "tiff"])
async def test_the_place_goes_and_every_pixel_stays(
    inspector: Inspector, keep: Keep, tmp_path: Path, name: str
) -> None:  # W-18
    content = good.all_kinds()[name]
    target = tmp_path / "stripped"
    assert await inspector.strip_location(keep(content), target)
    with Image.open(keep(content)) as before, Image.open(target) as after:
        assert before.getexif().get_ifd(GPS)
        assert not after.getexif().get_ifd(GPS)
        assert after.getexif()[0x010F] == "Telephone"
        assert before.tobytes() == after.tobytes()
    assert len(target.read_bytes()) == len(content)
    assert good.GPS_LATITUDE not in target.read_bytes()
    assert b"\xbf\x0b\0\0d\0\0\0" not in target.read_bytes()  # the seconds of the latitude, 3055/100
    stripped = await inspector.inspect(target, limits=LIMITS)
    assert stripped.width == 96
    assert not await inspector.strip_location(target, tmp_path / "again")
    assert not (tmp_path / "again").exists()


async def test_the_place_goes_from_a_video(inspector: Inspector, keep: Keep, tmp_path: Path) -> None:
    target = tmp_path / "stripped"
    for kind in ("mp4", "mov"):
        path = keep(good.video(kind, "mpeg4", place="+48.1394+011.5769/"))
        assert "location" in _metadata(path)
        assert await inspector.strip_location(path, target)
        assert "location" not in _metadata(target)
        assert b"+48.1394" not in target.read_bytes()
        with av.open(str(target)) as container:
            assert len(list(container.decode(video=0))) == 12


def _metadata(path: Path) -> dict[str, str]:
    with av.open(str(path)) as container:
        return dict(container.metadata)


async def test_files_without_a_place_are_left_and_others_refused(
    inspector: Inspector, keep: Keep, tmp_path: Path
) -> None:
    kinds, target = good.all_kinds(), tmp_path / "stripped"
    for name in ("jpeg", "gif", "heic", "mp4"):
        assert not await inspector.strip_location(keep(kinds[name]), target), name
    with pytest.raises(FileUnsupported, match="pictures, MP4 and MOV"):
        await inspector.strip_location(keep(kinds["pdf"]), target)
    assert not target.exists()
