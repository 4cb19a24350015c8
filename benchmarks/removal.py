"""How well marks are taken off pictures with a hint, many pictures, clips and documents; and how fast.

    python -m benchmarks.removal [--photos FOLDER] [--quick] [--json]

Beside ours: unprocessed, OpenCV's Telea with the true mask, and the oracle, which knows strength and colour. Figures
are PSNR inside the true mask grown by two pixels, the mean over pictures or frames. See README.md.
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks import removal_documents, video_clips
from benchmarks.eye import Picture, _framed, grown, psnr
from benchmarks.eye_marks import KINDS, Mark
from benchmarks.in_process import process
from headrace.removal.images.eye.detecting import detect
from headrace.removal.images.eye.hinting import Hints
from headrace.removal.images.eye.solving import solve
from headrace.removal.local import process_batch
from headrace.removal.order import Order

SEED = 17
MANY = ("tiled", "logo_semi", "large_text")
QUALITY = 92
Row = dict[str, float]
console = Console(stderr=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=Path, default=Path("../shared/photos"))
    parser.add_argument("--quick", action="store_true", help="fewer photographs, shorter clips")
    parser.add_argument("--json", action="store_true", help="print one flat JSON object last")
    args = parser.parse_args()
    os.environ.setdefault("SVT_LOG", "1")
    av.logging.set_level(av.logging.ERROR)
    photos = [_read(path) for path in sorted(args.photos.glob("*.jpg"))]
    framed = [_framed(photo) for photo in photos]
    rows: dict[str, Row] = {}
    figures: dict[str, float] = {}
    figures["manual_gap_db"] = manual_gap(framed[: 2 if args.quick else 8], rows, quick=args.quick)
    for count in (8, 24):
        figures[f"many_{count}"] = many_pictures(framed, count, rows, figures, quick=args.quick)
    film = video_clips.Film(photos, frames=180 if args.quick else 600, shots=12 if args.quick else 20)
    video(film, "video", video_clips.fixed(film), rows, figures)
    film = video_clips.Film(photos, frames=240 if args.quick else 600, shots=12 if args.quick else 20)
    video(film, "video_jump", video_clips.jumping(film, 30 if args.quick else 75), rows, figures)
    figures["pdf_diff"] = max(removal_documents.pdf_diff().values())
    figures["pptx_diff"] = max(removal_documents.pptx_diff().values())
    figures["pdf_100_pages_s"] = removal_documents.pdf_100_pages_s()
    _show(rows, figures)
    if args.json:
        print(json.dumps({name: round(value, 4) for name, value in figures.items()}))


def _read(path: Path) -> Picture:
    return cv2.cvtColor(cv2.imread(str(path)), cv2.COLOR_BGR2RGB)  # type: ignore[arg-type,return-value]


def _others(marked: Picture, clean: Picture, mark: Mark) -> Row:
    """What the mask's truth and nothing at all give."""
    inside = grown(mark.alpha > 0.02, 2)
    telea = cv2.inpaint(marked, inside.view(np.uint8), 3, cv2.INPAINT_TELEA)
    oracle = (marked - 255 * mark.colour) / np.maximum(1 - mark.alpha, 0.02)[..., None]
    return {
        "unprocessed": psnr(marked, clean, inside),
        "telea": psnr(telea, clean, inside),
        "oracle": psnr(np.clip(oracle, 0, 255), clean, inside),
    }


def manual_gap(photos: list[Picture], rows: dict[str, Row], *, quick: bool) -> float:
    """How much better AUTO is than MANUAL with a rough box, of the kind where that is most; where AUTO finds it."""
    gaps = []
    for number, (kind, draw) in enumerate(KINDS.items()):
        if quick and number % 3:
            continue
        apart, found = [], []
        for which, photo in enumerate(photos):
            mark = draw(photo.shape[:2], np.random.default_rng([SEED, which, number]))
            marked, inside = _filed(mark.over(photo)), grown(mark.alpha > 0.02, 2)
            auto, by_hand = (
                solve(marked, detect(marked, hints=hints)) for hints in (None, Hints(boxes=(_box(inside),)))
            )
            if auto.refused is None:
                apart.append(psnr(auto.picture, photo, inside) - psnr(by_hand.picture, photo, inside))
            found.append(_others(marked, photo, mark) | {"ours": psnr(by_hand.picture, photo, inside)})
        rows[f"box: {kind}"] = _mean(found)
        if apart:
            gaps.append(float(np.mean(apart)))
    return max(gaps)


def _box(inside: NDArray[np.bool_]) -> tuple[int, int, int, int]:
    """Around the mark, a tenth too large on each side."""
    at, down = np.flatnonzero(inside.any(0)), np.flatnonzero(inside.any(1))
    more = (int(0.1 * len(at)) + 4, int(0.1 * len(down)) + 4)
    left, top = max(0, int(at[0]) - more[0]), max(0, int(down[0]) - more[1])
    return left, top, int(at[-1]) + more[0] - left, int(down[-1]) + more[1] - top


def _filed(picture: Picture) -> Picture:
    _, encoded = cv2.imencode(".jpg", picture[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, QUALITY])
    return np.ascontiguousarray(cv2.imdecode(encoded, cv2.IMREAD_COLOR)[..., ::-1])  # type: ignore[index]


def many_pictures(
    photos: list[Picture], count: int, rows: dict[str, Row], figures: dict[str, float], *, quick: bool
) -> float:
    """The same mark over many files, JPEG before and after: the mean over kinds of marks."""
    ours, untouched = [], []
    for kind in MANY:
        for seed in range(1 if quick else 3):
            mark = KINDS[kind](photos[0].shape[:2], np.random.default_rng([SEED, seed, count]))
            with tempfile.TemporaryDirectory() as folder:
                row, beside = _same_mark(photos[:count], mark, Path(folder), quick=quick)
            ours.append(row["ours"])
            rows[f"{count} pictures: {kind} {seed}"] = row
            untouched.append(beside)
    figures["untouched_db"] = float(np.mean([*untouched, figures.get("untouched_db", untouched[0])]))
    return float(np.mean(ours))


def _same_mark(photos: list[Picture], mark: Mark, folder: Path, *, quick: bool) -> tuple[Row, float]:
    orders = []
    for number, photo in enumerate(photos):
        source = folder / f"{number}.jpg"
        cv2.imwrite(str(source), mark.over(photo)[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, QUALITY])
        orders.append(Order(str(source), result=str(folder / f"{number}.clean.jpg")))
    with tempfile.TemporaryDirectory() as scratch:
        process_batch(orders, lambda _: None, lambda: Path(scratch))
    inside, beside, found = grown(mark.alpha > 0.02, 2), [], []
    outside = ~grown(mark.alpha > 0, 16)  # a JPEG's blocks
    for order, photo in zip(orders, photos, strict=True):
        if order.result is None or not Path(order.result).exists():
            found.append({"ours": psnr(_read(Path(order.source)), photo, inside)})
            continue
        marked, result = _read(Path(order.source)), _read(Path(order.result))
        others = {} if quick and found else _others(marked, photo, mark)
        found.append(others | {"ours": psnr(result, photo, inside)})
        beside.append(min(99.0, psnr(result, marked, outside)) if outside.any() else 99.0)
    names = {name for each in found for name in each}
    mean = {name: float(np.mean([each[name] for each in found if name in each])) for name in sorted(names)}
    return mean, float(np.mean(beside)) if beside else 99.0


def video(
    film: video_clips.Film, name: str, marks: video_clips.Marks, rows: dict[str, Row], figures: dict[str, float]
) -> None:
    """A clip, fully automatic: how good, how fast, and how much it flickers beside the clean one."""
    with tempfile.TemporaryDirectory() as folder:
        source, result = Path(folder, "marked.mp4"), Path(folder, "clean.mp4")
        video_clips.write(film, source, marks)
        plain = _cpu(lambda: video_clips.pack_again(source, Path(folder, "plain.mp4")))
        began = time.perf_counter()
        spent = _cpu(lambda: process(Order(str(source), result=str(result))))
        seconds = time.perf_counter() - began
        if not result.exists() or result.stat().st_size == 0:
            result = source
        rows[name], flicker = _frames(film, marks, source, result)
    rows[name]["fps"] = film.frames / seconds
    figures[f"{name}_mpsnr"] = rows[name]["ours"]
    if name == "video":
        figures["video_fps"], figures["flicker"] = rows[name]["fps"], flicker
        # On a machine that others use, too: processor time, beside that of packing the same frames and nothing else.
        figures["video_cpu_ms_a_frame"], figures["video_cpu_ratio"] = 1000 * spent / film.frames, spent / plain


def _cpu(work: Callable[[], object]) -> float:
    """Seconds of processor time, of all threads."""
    before = time.process_time()
    work()
    return time.process_time() - before


def _frames(film: video_clips.Film, marks: video_clips.Marks, source: Path, result: Path) -> tuple[Row, float]:
    found: list[Row] = []
    moved: list[tuple[float, float]] = []
    last: tuple[Any, Picture, Picture] | None = None
    for number, (clean, marked, ours) in enumerate(zip(film.clean(), _decoded(source), _decoded(result), strict=True)):
        mark = marks(number)
        assert mark is not None
        rows, columns = (np.flatnonzero(mark.alpha.max(axis) > 0.02) for axis in (1, 0))
        here = np.s_[max(0, rows[0] - 8) : rows[-1] + 9, max(0, columns[0] - 8) : columns[-1] + 9]
        part = Mark(mark.alpha[here], mark.colour[here])
        inside = grown(part.alpha > 0.02, 2)
        others = _others(marked[here], clean[here], part) if number % 5 == 0 else {}
        found.append(others | {"ours": psnr(ours[here], clean[here], inside)})
        if last is not None and last[0] == here:
            moved.append((_moved(clean[here], last[1], inside), _moved(ours[here], last[2], inside)))
        last = (here, clean[here], ours[here])
    names = {name for each in found for name in each}
    mean = {name: float(np.mean([each[name] for each in found if name in each])) for name in sorted(names)}
    return mean, sum(each[1] for each in moved) / sum(each[0] for each in moved)


def _moved(one: Picture, other: Picture, inside: NDArray[np.bool_]) -> float:
    return float(np.abs(one[inside].astype(np.float32) - other[inside]).mean())


def _decoded(path: Path) -> Iterator[Picture]:
    with av.open(str(path)) as container:
        for frame in container.decode(container.streams.video[0]):
            yield frame.to_ndarray(format="rgb24")


def _mean(found: list[Row]) -> Row:
    return {name: float(np.mean([each[name] for each in found])) for name in found[0]}


def _show(rows: dict[str, Row], figures: dict[str, float]) -> None:
    names = ("unprocessed", "telea", "ours", "oracle", "fps")
    table = Table("inside the mask, dB", *names, box=None, header_style="bold")
    for name, row in rows.items():
        table.add_row(name, *(f"{row[column]:.1f}" if column in row else "" for column in names))
    console.print(table)
    for name, value in figures.items():
        console.print(f"{name:18} {value:.3f}")


if __name__ == "__main__":
    main()
