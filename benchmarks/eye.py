"""How well the eye finds marks and takes them off, on photographs and with fonts that training never saw.

    python -m benchmarks.eye [--photos FOLDER] [--quick] [--json]

Truth for recall is what the mark changes by two levels or more, grown by a pixel; for precision, all of the mark.
Figures "inside" are over the true mask grown by two pixels. See README.md.
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
from rich.console import Console
from rich.table import Table

from benchmarks.eye_marks import KINDS, Mark
from headrace.removal.images.eye.detecting import detect
from headrace.removal.images.eye.membrane import fill
from headrace.removal.images.eye.model import MIN_SCORE
from headrace.removal.images.eye.solving import solve
from training.photographs import evaluation_files

WIDTH, HEIGHT = 960, 600
QUALITY = 92
SEED = 17
QUICK_PHOTOS = 4

Picture = NDArray[np.uint8]
console = Console(stderr=True)


@dataclass(frozen=True)
class Case:
    kind: str
    clean: Picture
    mark: Mark
    marked: Picture


def photographs(folder: Path, *, quick: bool) -> list[Picture]:
    """The evaluation's, if the folder is the shared one; else every picture in it."""
    files = sorted(p for p in folder.iterdir() if p.suffix.lower() in (".jpg", ".jpeg", ".png", ".webp"))
    if (folder / "manifest.json").exists():
        files = [p for p in files if p.name in evaluation_files()]
    if quick:
        files = files[:: max(1, len(files) // QUICK_PHOTOS)][:QUICK_PHOTOS]
    return [_framed(cv2.cvtColor(cv2.imread(str(p)), cv2.COLOR_BGR2RGB)) for p in files]  # type: ignore[arg-type]


def _framed(photo: Picture) -> Picture:
    scale = max(WIDTH / photo.shape[1], HEIGHT / photo.shape[0])
    photo = cv2.resize(photo, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)  # type: ignore[assignment]
    top, left = (photo.shape[0] - HEIGHT) // 2, (photo.shape[1] - WIDTH) // 2
    return np.ascontiguousarray(photo[top : top + HEIGHT, left : left + WIDTH])


def filed(picture: Picture) -> Picture:
    _, encoded = cv2.imencode(".jpg", picture[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, QUALITY])
    return np.ascontiguousarray(cv2.imdecode(encoded, cv2.IMREAD_COLOR)[..., ::-1])  # type: ignore[index]


def cases(photos: list[Picture]) -> Iterator[Case]:
    for i, photo in enumerate(photos):
        for k, (kind, draw) in enumerate(KINDS.items()):
            mark = draw(photo.shape[:2], np.random.default_rng([SEED, i, k]))
            yield Case(kind, photo, mark, filed(mark.over(photo)))


def grown(mask: NDArray[np.bool_], by: int) -> NDArray[np.bool_]:
    return cv2.dilate(mask.view(np.uint8), np.ones((2 * by + 1,) * 2, np.uint8)).view(np.bool_)


def psnr(picture: NDArray[Any], truth: Picture, where: NDArray[np.bool_] | None = None) -> float:
    wrong = (picture.astype(np.float64) - truth) ** 2
    mean = wrong.mean() if where is None else wrong[where].mean()
    return float(10 * np.log10(255**2 / max(mean, 1e-9)))


def ssim(one: Picture, other: Picture) -> float:
    a, b = (cv2.cvtColor(p, cv2.COLOR_RGB2GRAY).astype(np.float64) for p in (one, other))

    def mean(plane: NDArray[Any]) -> NDArray[Any]:
        return cv2.GaussianBlur(plane, (11, 11), 1.5)

    ma, mb = mean(a), mean(b)
    va, vb, both = mean(a * a) - ma * ma, mean(b * b) - mb * mb, mean(a * b) - ma * mb
    c1, c2 = 6.5025, 58.5225
    return float((((2 * ma * mb + c1) * (2 * both + c2)) / ((ma * ma + mb * mb + c1) * (va + vb + c2))).mean())


def measure(case: Case, threads: int) -> dict[str, float]:
    began = time.perf_counter()
    detection = detect(case.marked, threads=threads)
    solved = solve(case.marked, detection)
    restored = solved.picture
    spent = time.perf_counter() - began
    there = case.mark.alpha > 0.02
    changed = np.abs(case.mark.over(case.clean).astype(int) - case.clean).max(2) >= 2
    whole, visible, inside = grown(there, 1), grown(there & changed, 1), grown(there, 2)
    # Automatic is what a user gets without choosing: what is too doubtful to be touched does not count as seen.
    seen = detection.at_least(MIN_SCORE).mask_tight
    telea = cv2.inpaint(case.marked, inside.view(np.uint8), 3, cv2.INPAINT_TELEA)
    filled = fill(case.marked.astype(np.float32), inside)
    oracle = (case.marked - 255 * case.mark.colour) / np.maximum(1 - case.mark.alpha, 0.02)[..., None]
    return {
        "recall": (seen & visible).sum() / max(1, visible.sum()),
        "precision": (seen & whole).sum() / seen.sum() if seen.any() else 1.0,
        "iou": (seen & whole).sum() / (seen | whole).sum(),
        "marked": psnr(case.marked, case.clean, inside),
        "telea": psnr(telea, case.clean, inside),
        "filled": psnr(filled, case.clean, inside),
        "ours": psnr(restored, case.clean, inside),
        "oracle": psnr(np.clip(oracle, 0, 255), case.clean, inside),
        "psnr": psnr(restored, case.clean),
        "ssim": ssim(restored, case.clean),
        "s_mp": spent / (case.clean.shape[0] * case.clean.shape[1] / 1e6),
        "score": detection.score,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=Path, default=Path("../shared/photos"))
    parser.add_argument("--quick", action="store_true", help="four photographs instead of all")
    parser.add_argument("--json", action="store_true", help="print one flat JSON object last")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    photos = photographs(args.photos, quick=args.quick)
    detect(photos[0], threads=args.threads)  # loads the model
    rows: dict[str, list[dict[str, float]]] = {kind: [] for kind in KINDS}
    for case in cases(photos):
        rows[case.kind].append(measure(case, args.threads))
    means = {k: {name: float(np.mean([r[name] for r in rs])) for name in rs[0]} for k, rs in rows.items()}
    touched, clean_times, clean_scores = [], [], []
    for photo in photos:
        clean, began = filed(photo), time.perf_counter()
        detection = detect(clean, threads=args.threads)
        clean_times.append((time.perf_counter() - began) / (clean.shape[0] * clean.shape[1] / 1e6))
        touched.append(float((solve(clean, detection).picture != clean).any(2).mean() * 100))
        clean_scores.append(detection.score)
    _show(means, touched, clean_scores)
    if args.json:
        print(json.dumps(_figures(means, touched, clean_times)))


def _figures(means: dict[str, dict[str, float]], touched: list[float], clean: list[float]) -> dict[str, float]:
    def over_all(name: str) -> float:
        return float(np.mean([m[name] for m in means.values()]))

    figures = {
        "recall": over_all("recall"),
        "precision": over_all("precision"),
        "iou": over_all("iou"),
        "clean_touched": float(np.mean(touched)),
        "tiled": means["tiled"]["ours"],
        "large_text": means["large_text"]["ours"],
        "logo_semi": means["logo_semi"]["ours"],
        "opaque_gap": means["logo_opaque"]["filled"] - means["logo_opaque"]["ours"],
        "worst_gain_db": min(m["ours"] - m["telea"] for m in means.values()),
        "psnr": over_all("psnr"),
        "ssim": over_all("ssim"),
        "s_mp": over_all("s_mp"),
        "s_mp_clean": float(np.mean(clean)),
    }
    return {name: round(value, 4) for name, value in figures.items()}


def _show(means: dict[str, dict[str, float]], touched: list[float], scores: list[float]) -> None:
    names = list(next(iter(means.values())))
    table = Table("kind", *names, box=None, header_style="bold")
    for kind, figures in means.items():
        table.add_row(kind, *(f"{figures[name]:.{3 if figures[name] < 2 else 1}f}" for name in names))
    console.print(table)
    console.print(f"clean: touched {np.mean(touched):.2f} % (worst {max(touched):.2f} %), score {np.mean(scores):.2f}")


if __name__ == "__main__":
    main()
