"""How long it takes to look into a file, with a warm child, and to make its preview: milliseconds. See README.md.

``measure`` is also called by the benchmark of files. Its files are made here: a photograph of 12 megapixels, a PDF of
100 pages with text and pictures, a video of one minute at 720p.
"""

import argparse
import asyncio
import io
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import av
import pikepdf
from PIL import Image

from benchmarks.report import console, print_json
from headrace.assets.inspection.model import FileLimits
from headrace.assets.inspection.service import Inspector, InspectorConfig


async def measure(quick: bool) -> dict[str, float]:
    """Medians, by ``inspect_KIND_ms`` and ``preview_KIND_ms``; ``inspect_ms`` is the slowest of the former."""
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        files = _make(Path(folder))
        async with Inspector(InspectorConfig(processes=1)) as inspector:
            await inspector.prepare()
            for kind, path in files.items():
                await _measure(inspector, kind, path, figures, rounds=5 if quick else 25)
    figures["inspect_ms"] = max(value for name, value in figures.items() if name.startswith("inspect_"))
    return figures


async def _measure(inspector: Inspector, kind: str, path: Path, figures: dict[str, float], *, rounds: int) -> None:
    limits, target = FileLimits(), path.with_suffix(".preview")
    inspected, drawn = [], []
    facts = await inspector.inspect(path, limits=limits)
    for _ in range(rounds):
        begun = time.perf_counter()
        await inspector.inspect(path, limits=limits)
        inspected.append(time.perf_counter() - begun)
        begun = time.perf_counter()
        await inspector.preview(path, facts, target, longest_side=512)
        drawn.append(time.perf_counter() - begun)
    figures[f"inspect_{kind}_ms"] = 1000 * statistics.median(inspected)
    figures[f"preview_{kind}_ms"] = 1000 * statistics.median(drawn)


def _make(folder: Path) -> dict[str, Path]:
    files = {"nothing": folder / "tiny.png", "jpeg": folder / "photo.jpg", "pdf": folder / "document.pdf"}
    files["video"] = folder / "minute.mp4"
    Image.new("RGB", (8, 8)).save(files["nothing"])
    _photograph(4000, 3000).save(files["jpeg"], quality=90)
    _write_document(files["pdf"], 100)
    _write_video(files["video"], seconds=60, rate=30)
    return files


def _photograph(width: int, height: int) -> Any:
    """Soft shapes with grain: packed at quality 90 it comes to what cameras write."""
    small = Image.effect_noise((width // 40, height // 40), 90).resize((width, height), Image.Resampling.BICUBIC)
    grain = Image.effect_noise((width, height), 12)
    return Image.merge("RGB", (Image.blend(small, grain, 0.3), small, Image.blend(small, grain, 0.2)))


def _write_document(path: Path, pages: int) -> None:
    document = pikepdf.new()
    font = pikepdf.Dictionary(Type=pikepdf.Name.Font, Subtype=pikepdf.Name.Type1, BaseFont=pikepdf.Name.Helvetica)
    packed = io.BytesIO()
    _photograph(600, 400).save(packed, "JPEG")
    picture = document.make_stream(packed.getvalue(), Type=pikepdf.Name.XObject, Subtype=pikepdf.Name.Image, Width=600)
    picture.Height, picture.ColorSpace, picture.BitsPerComponent = 400, pikepdf.Name.DeviceRGB, 8
    picture.Filter = pikepdf.Name.DCTDecode
    for number in range(pages):
        page = document.add_blank_page(page_size=(595, 842))
        lines = "".join(f"1 0 0 1 60 {780 - 14 * line} Tm (Line {line} of page {number}) Tj\n" for line in range(40))
        drawn = f"BT /F1 10 Tf\n{lines}ET q 300 0 0 200 60 20 cm /Im1 Do Q".encode()
        page.Contents = document.make_stream(drawn)
        page.Resources = pikepdf.Dictionary(Font=pikepdf.Dictionary(F1=font), XObject=pikepdf.Dictionary(Im1=picture))
    document.save(path)


def _write_video(path: Path, *, seconds: int, rate: int) -> None:
    """One picture that moves: quick to make, and like any other to who reads it."""
    wide = _photograph(1280 + seconds * rate, 720)
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream("libx264", rate=rate, options={"preset": "ultrafast", "crf": "28"})
        stream.width, stream.height, stream.pix_fmt = 1280, 720, "yuv420p"
        for number in range(seconds * rate):
            frame = av.VideoFrame.from_image(wide.crop((number, 0, number + 1280, 720)))
            container.mux(stream.encode(frame))
        container.mux(stream.encode())


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    figures = await measure(arguments.quick)
    for name, value in figures.items():
        console.print(f"  {name:<28} {value:>10,.1f}", highlight=False)
    if arguments.json:
        print_json(figures)


if __name__ == "__main__":
    asyncio.run(main())
