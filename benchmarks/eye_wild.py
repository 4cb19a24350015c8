"""How well marks are found and taken off that strangers might have put on, on pictures that taught and tuned nothing.

    python -m benchmarks.eye_wild_pictures                 # fetches the pictures
    python -m benchmarks.eye_wild [--photos FOLDER] [--quick] [--json] [--perceptual FILE]

Sixteen families of marks, eight photographs each, 0.1 to 12 megapixels, JPEG 70 to 92, some rescaled after marking;
the photographs as they are, and with bars at their borders; and pictures with text and graphics of their own, which
must stay. ``--perceptual`` names ST-LPIPS as ``benchmarks.perceptual`` writes it, and adds how far results look from
the photographs, beside Telea's with the true mask. See README.md.
"""

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image
from rich.console import Console
from rich.table import Table

from benchmarks.eye import Picture, grown, psnr
from benchmarks.eye_marks import Mark
from benchmarks.eye_wild_marks import ALL_OVER, FAMILIES
from benchmarks.eye_wild_pictures import FOLDER
from benchmarks.perceptual import Distance, around
from headrace.removal.images.eye.detecting import detect
from headrace.removal.images.eye.hinting import Hints
from headrace.removal.images.eye.model import Detection, Restoration
from headrace.removal.images.restoring import restore

SEED = 41
MEGAPIXELS = (0.12, 0.25, 0.4, 0.6, 0.9, 1.4, 2.5)  # and a large one for each family
LARGE = (4, 4, 8, 4, 12, 4, 4, 8, 4, 4, 4, 8, 4, 12, 4, 4)
CLEAN_MOST, NEGATIVE_MOST = 1_500_000, 2_000_000  # pixels of those that carry no mark
BARS, BARRED_MOST = 20, 400_000  # photographs that get bars, and their pixels
LEFT, BAD_DB = 0.2, 22.0  # a result is bad that keeps more of the mark, or has less inside

console = Console(stderr=True)


@dataclass(frozen=True)
class Case:
    family: str
    clean: Picture
    mark: Mark
    marked: Picture


def opened(path: Path, most: float = 1e9) -> Picture:
    """The picture on white, no larger than ``most`` pixels."""
    with Image.open(path) as image:
        rgba = image.convert("RGBA")
    ground = Image.new("RGBA", rgba.size, "white")
    ground.alpha_composite(rgba)
    picture = np.array(ground.convert("RGB"))
    return _shrunk(picture, most) if picture[..., 0].size > most else picture


def _shrunk(picture: Picture, pixels: float) -> Picture:
    scale = min(1.0, float(np.sqrt(pixels / picture[..., 0].size)))
    return cv2.resize(picture, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)  # type: ignore[return-value]


def filed(picture: Picture, quality: int) -> Picture:
    _, encoded = cv2.imencode(".jpg", picture[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, quality])
    return np.ascontiguousarray(cv2.imdecode(encoded, cv2.IMREAD_COLOR)[..., ::-1])  # type: ignore[index]


def pictures_in(folder: Path) -> tuple[list[Path], list[Path]]:
    """Photographs and pictures with text of their own; of a plain folder all are photographs."""
    groups = sorted(p for p in folder.iterdir() if p.is_dir())
    if not groups:
        return sorted(p for p in folder.iterdir() if p.suffix.lower() in (".jpg", ".jpeg", ".png", ".webp")), []
    found = {group.name: sorted(group.iterdir()) for group in groups}
    return found.pop("photo"), [path for paths in found.values() for path in paths]


def cases(photos: list[Path], *, quick: bool) -> Iterator[Case]:
    sizes = {path: Image.open(path).size for path in photos}
    used = dict.fromkeys(photos, 0)
    for k, family in enumerate(FAMILIES):
        wanted = (0.25, 0.6) if quick else (*MEGAPIXELS, LARGE[k])
        for i, megapixels in enumerate(wanted):
            rng = np.random.default_rng([SEED, k, i])
            # The photograph that is large enough and has been used least; where none is, the largest.
            enough = [p for p in photos if sizes[p][0] * sizes[p][1] >= 0.95e6 * megapixels]
            enough = enough or [max(photos, key=lambda p: sizes[p][0] * sizes[p][1])]
            few = min(used[p] for p in enough)
            chosen = [p for p in enough if used[p] == few]
            path = chosen[int(rng.integers(len(chosen)))]
            used[path] += 1
            yield _case(family, opened(path), megapixels * 1e6, rng)


def _case(family: str, photo: Picture, pixels: float, rng: np.random.Generator) -> Case:
    rescaled = float(rng.choice([0.6, 0.75, 0.85, 1.25])) if rng.random() < 0.25 else 1.0
    clean = _shrunk(photo, pixels / rescaled**2)
    mark = FAMILIES[family](clean.shape[:2], rng)  # type: ignore[arg-type]
    marked = mark.over(clean)
    if rescaled != 1.0:
        way = cv2.INTER_AREA if rescaled < 1 else cv2.INTER_CUBIC
        clean, marked, alpha, colour = (
            cv2.resize(plane, None, fx=rescaled, fy=rescaled, interpolation=way)
            for plane in (clean, marked, mark.alpha, mark.colour)
        )
        mark = Mark(alpha, colour)  # type: ignore[arg-type]
    return Case(family, clean, mark, filed(marked, int(rng.integers(70, 93))))  # type: ignore[arg-type]


def _taken(detection: Detection, solved: Restoration, before: Picture) -> NDArray[np.bool_]:
    """What was seen of the mark and changed: what stays, for whatever reason, does not count as seen."""
    return detection.mask_tight & grown((solved.picture != before).any(2), 2)


def rough_box(mark: Mark, rng: np.random.Generator) -> tuple[int, int, int, int]:
    """The mark's box as somebody might draw it: left, top, width, height, a tenth too wide on every side."""
    rows, columns = np.nonzero((mark.alpha > 0.02).any(1))[0], np.nonzero((mark.alpha > 0.02).any(0))[0]
    high, wide = rows[-1] - rows[0] + 1, columns[-1] - columns[0] + 1
    off = [int(4 + side * rng.uniform(0.05, 0.15)) for side in (wide, high, wide, high)]
    left, top = max(0, columns[0] - off[0]), max(0, rows[0] - off[1])
    right, bottom = min(mark.alpha.shape[1], columns[-1] + off[2]), min(mark.alpha.shape[0], rows[-1] + off[3])
    return int(left), int(top), int(right - left), int(bottom - top)


def measure(case: Case, threads: int, distance: Distance | None = None) -> dict[str, float]:
    began = time.perf_counter()
    detection = detect(case.marked, threads=threads)
    solved = restore(case.marked, detection, threads=threads)
    spent = time.perf_counter() - began
    there = case.mark.alpha > 0.02
    changed = np.abs(case.mark.over(case.clean).astype(int) - case.clean).max(2) >= 2
    whole, visible, inside = grown(there, 1), grown(there & changed, 1), grown(there, 2)
    seen = _taken(detection, solved, case.marked)
    telea = cv2.inpaint(case.marked, inside.view(np.uint8), 3, cv2.INPAINT_TELEA)
    oracle = (case.marked - 255 * case.mark.colour) / np.maximum(1 - case.mark.alpha, 0.02)[..., None]
    added, kept = (p[inside].astype(np.float64) - case.clean[inside] for p in (case.marked, solved.picture))
    left = float((added * kept).sum() / max((added * added).sum(), 1.0))
    box = rough_box(case.mark, np.random.default_rng(7))
    hinted = detect(case.marked, threads=threads, hints=Hints(boxes=(box,)))
    helped = restore(case.marked, hinted, threads=threads)
    here = around(inside)
    seen_far = {
        f"lpips_{name}": distance(case.clean[here], picture[here])
        for name, picture in (("telea", telea), ("ours", solved.picture), ("boxed", helped.picture))
        if distance is not None
    }
    removed, ours = solved.refused is None, psnr(solved.picture, case.clean, inside)
    return {
        "recall": (seen & visible).sum() / max(1, visible.sum()),
        "precision": (seen & whole).sum() / seen.sum() if seen.any() else 1.0,
        "marked": psnr(case.marked, case.clean, inside),
        "telea": psnr(telea, case.clean, inside),
        "ours": ours,
        "oracle": psnr(np.clip(oracle, 0, 255), case.clean, inside),
        "left": left,
        "removed": removed,
        "asked": solved.needs_review,
        "bad": removed and (left > LEFT or ours < BAD_DB),
        "poor": solved.needs_look,
        "confidence": solved.confidence,
        "boxed": psnr(helped.picture, case.clean, inside),
        "boxed_missed": helped.refused is not None,
        "s_mp": spent / (case.clean[..., 0].size / 1e6),
        **seen_far,
    }


def letterboxed(photo: Picture, rng: np.random.Generator) -> Picture:
    """The photograph with bars above and below or at both sides: black, white, or a blurred copy of it."""
    sideways = rng.random() < 0.4
    upright = np.ascontiguousarray(photo.transpose(1, 0, 2)) if sideways else photo
    high, wide = upright.shape[:2]
    bar = int(high * rng.uniform(0.08, 0.3))
    kind = rng.choice(["black", "white", "copy"])
    filled = np.full((high + 2 * bar, wide, 3), 255 if kind == "white" else 0, np.uint8)
    if kind == "copy":
        scale = len(filled) / high
        large = cv2.GaussianBlur(cv2.resize(upright, None, fx=scale, fy=scale), (0, 0), 0.03 * high)
        off = (large.shape[1] - wide) // 2
        filled = np.ascontiguousarray(large[: len(filled), off : off + wide]).astype(np.uint8)
    filled[bar : bar + high] = upright
    return filed(np.ascontiguousarray(filled.transpose(1, 0, 2)) if sideways else filled, 90)


def untouched(paths: list[Path], most: float, threads: int, *, bars: bool = False) -> list[dict[str, float]]:
    """Of pictures without a mark: whether and how much they are changed, and whether that is called poor."""
    rows = []
    for number, path in enumerate(paths):
        picture = opened(path, most)
        if bars:
            picture = letterboxed(picture, np.random.default_rng([SEED, number]))
        solved = restore(picture, detect(picture, threads=threads), threads=threads)
        area = float((solved.picture != picture).any(2).mean() * 100)
        rows.append({"changed": area > 0, "area": area, "unwarned": area > 0 and not solved.needs_look})
    return rows


def figures(
    rows: dict[str, list[dict[str, float]]],
    clean: list[dict[str, float]],
    negatives: list[dict[str, float]],
    barred: list[dict[str, float]],
) -> dict[str, float]:
    """The flat object that ``--json`` prints."""
    every = [row for group in rows.values() for row in group]

    def mean(name: str, of: list[dict[str, float]] = every) -> float:
        return float(np.mean([row[name] for row in of])) if of else 0.0

    bad = [row for row in every if row["bad"]]
    all_over = [row for family in ALL_OVER for row in rows[family]]
    told = {
        "recall": mean("recall"),
        "precision": mean("precision"),
        "worst_recall": min(mean("recall", group) for group in rows.values()),
        "inside": mean("ours"),
        "inside_marked": mean("marked"),
        "inside_telea": mean("telea"),
        "inside_oracle": mean("oracle"),
        "worst_gain_db": min(mean("ours", group) - mean("telea", group) for group in rows.values()),
        "removed": mean("removed"),
        "asked": 100 * mean("asked"),
        "negatives_changed": 100 * mean("changed", negatives),
        "negatives_unwarned": 100 * mean("unwarned", negatives),
        "negatives_area": mean("area", negatives),
        "clean_changed": 100 * mean("changed", clean),
        "letterbox_changed": 100 * mean("changed", barred),
        "bad": len(bad),
        "bad_told": 100 * mean("poor", bad),
        "good_called_poor": 100 * mean("poor", [row for row in every if row["removed"] and not row["bad"]]),
        "boxed": mean("boxed"),
        "boxed_missed": 100 * mean("boxed_missed"),
        "s_mp": mean("s_mp"),
        "s_mp_all_over": mean("s_mp", all_over),
    }
    if "lpips_telea" in every[0]:
        told["lpips_telea"] = mean("lpips_ours") / mean("lpips_telea")
        told["boxed_lpips_telea"] = mean("lpips_boxed") / mean("lpips_telea")
    return {name: round(value, 4) for name, value in told.items()}


def show(rows: dict[str, list[dict[str, float]]]) -> None:
    names = [name for name in next(iter(rows.values()))[0] if name != "poor"]
    table = Table("family", *names, box=None, header_style="bold")
    for family, group in rows.items():
        means = [float(np.mean([row[name] for row in group])) for name in names]
        table.add_row(family, *(f"{value:.{2 if abs(value) < 2 else 1}f}" for value in means))
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=Path, default=FOLDER)
    parser.add_argument("--quick", action="store_true", help="two small pictures of each family, a few of the others")
    parser.add_argument("--json", action="store_true", help="print one flat JSON object last")
    parser.add_argument("--perceptual", type=Path, help="ST-LPIPS, as benchmarks.perceptual writes it")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    photos, others = pictures_in(args.photos)
    rows: dict[str, list[dict[str, float]]] = {family: [] for family in FAMILIES}
    distance = None if args.perceptual is None else Distance(args.perceptual)
    for case in cases(photos, quick=args.quick):
        rows[case.family].append(measure(case, args.threads, distance))
    step, most = (12, 300_000) if args.quick else (1, 1e9)
    clean = untouched(photos[::step], min(CLEAN_MOST, most), args.threads)
    negatives = untouched(others[::step], min(NEGATIVE_MOST, most), args.threads)
    chosen = photos[:: max(1, len(photos) // BARS)][: 5 if args.quick else BARS]
    barred = untouched(chosen, BARRED_MOST, args.threads, bars=True)
    show(rows)
    told: dict[str, Any] = figures(rows, clean, negatives, barred)
    console.print("  ".join(f"{name} {value}" for name, value in told.items()))
    if args.json:
        print(json.dumps(told))


if __name__ == "__main__":
    main()
