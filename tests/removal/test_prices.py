"""Prices by frames and pixels: the same work costs the same, however the file is put together."""

import io
from pathlib import Path

import av
import pytest
from PIL import Image

from tests.assets.stand import png
from tests.web.world import whole_api


def film(path: Path, *, frames: int, step: int) -> bytes:
    """A clip whose frames are ``step`` thirtieths of a second apart."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=30)
        stream.width, stream.height = 64, 48
        for number in range(frames):
            frame = av.VideoFrame(64, 48, "yuv420p")
            frame.pts = number
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    if step == 1:
        return path.read_bytes()
    scaled = path.with_suffix(".scaled.mp4")
    with av.open(str(path)) as source, av.open(str(scaled), "w") as target:
        copied = target.add_stream_from_template(source.streams.video[0])
        for packet in source.demux(video=0):
            if packet.dts is None:
                continue
            packet.pts, packet.dts = (packet.pts or 0) // step, packet.dts // step  # ffmpeg -itsscale -c copy
            packet.duration = (packet.duration or 0) // step
            packet.stream = copied
            target.mux(packet)
    return scaled.read_bytes()


@pytest.mark.long
async def test_scaled_timestamps_do_not_make_a_clip_cheaper(database_url: str, tmp_path: Path) -> None:
    """`ffmpeg -itsscale 0.1 -c copy` made a clip ten times cheaper with all frames."""
    async with whole_api(database_url) as (world, _):
        quotes = []
        for step in (1, 10):
            content = film(tmp_path / f"{step}.mp4", frames=660, step=step)
            asset_id = (await world.send("POST", f"/v1/assets?name={step}.mp4", content)).json()["id"]
            quotes.append((await world.send("POST", "/v1/removals/quote", {"asset_ids": [asset_id]})).json())
    plain, scaled = (quote["files"][0] for quote in quotes)
    assert (plain["units"], plain["frames"], plain["pixels"]) == (3, 660, 64 * 48)
    assert (scaled["units"], scaled["frames"]) == (3, 660)
    assert scaled["seconds"] == pytest.approx(22)
    assert (plain["pages"], scaled["pages"]) == (1, 1)


async def test_many_photographs_as_one_animated_picture_are_not_one_unit(database_url: str) -> None:
    pages = [Image.new("RGB", (40, 30), (number, 0, 0)) for number in range(20)]
    packed = io.BytesIO()
    pages[0].save(packed, "PNG", save_all=True, append_images=pages[1:], duration=1000)
    async with whole_api(database_url) as (world, _):
        asset_id = (await world.send("POST", "/v1/assets?name=a.png", packed.getvalue())).json()["id"]
        quote = (await world.send("POST", "/v1/removals/quote", {"asset_ids": [asset_id]})).json()
    assert (quote["units"], quote["files"][0]["frames"], quote["files"][0]["pixels"]) == (2, 20, 1200)
    assert (quote["files"][0]["pages"], quote["files"][0]["seconds"]) == (1, 0)


async def test_a_batch_is_refused_by_what_all_of_it_costs(database_url: str) -> None:
    """It said what the first file that did not fit costs, and what was left after those before it."""
    async with whole_api(database_url) as (world, _):
        ids = [
            (await world.send("POST", f"/v1/assets?name={number}.png", png(shade=number))).json()["id"]
            for number in range(3)
        ]
        await world.db.fetch_alone("UPDATE headrace.entitlements SET quota_left = 2 WHERE quota_left > 2 RETURNING id")
        body = {"asset_ids": ids, "rights": {"basis": "OWNER"}}
        refused = (await world.client.post("/v1/removals", json=body)).json()
    assert (refused["code"], refused["details"]["needed"], refused["details"]["left"]) == ("quota_exhausted", 3, 2)
