"""``python -m training.marks``: draw the texts and emblems that marks are made of, with every core of the machine."""

import argparse
import json
import os
from functools import partial
from multiprocessing import Pool
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from training import emblems, lettering
from training.lettering import Face

JOBS_PER_CORE = 3

Drawn = tuple[list[tuple[NDArray[np.uint8], int]], NDArray[np.uint8]]


def read_faces(folder: Path) -> dict[str, list[Face]]:
    """The faces that ``training.fonts`` wrote, by family."""
    families: dict[str, list[Face]] = {}
    for row in json.loads((folder / "faces.json").read_text()):
        families.setdefault(row["family"], []).append(Face(folder / row["file"], 0, frozenset(row["covers"])))
    return families


def draw(fonts: Path, out: Path, *, texts: int, logos: int, seed: int) -> None:
    """Write ``marks.npz``: widths, ink and kinds of the texts, and the emblems."""
    cores = os.cpu_count() or 1
    jobs = cores * JOBS_PER_CORE
    job = partial(_job, read_faces(fonts), -(-texts // jobs), -(-logos // jobs), seed)
    with Pool(cores) as pool:
        parts = pool.map(job, range(jobs), chunksize=1)
    bitmaps = [row for rows, _ in parts for row in rows]
    np.savez(
        out / "marks.npz",
        widths=np.array([bitmap.shape[1] for bitmap, _ in bitmaps], np.int32),
        ink=np.concatenate([bitmap.ravel() for bitmap, _ in bitmaps]),
        kinds=np.array([kind for _, kind in bitmaps], np.int8),
        emblems=np.concatenate([drawn for _, drawn in parts]),
    )


def _job(families: dict[str, list[Face]], texts: int, logos: int, seed: int, number: int) -> Drawn:
    rng = np.random.default_rng([seed, number])
    faces = [face for group in families.values() for face in group]
    return lettering.draw_many(families, texts, rng), emblems.draw_many(faces, [], logos, rng)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fonts", type=Path, required=True, help="what training.pack wrote: NNN.ttf and faces.json")
    parser.add_argument("--out", type=Path, default=Path("training-data"))
    parser.add_argument("--texts", type=int, default=9000)
    parser.add_argument("--logos", type=int, default=3800)
    parser.add_argument("--seed", type=int, default=11)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    draw(args.fonts, args.out, texts=args.texts, logos=args.logos, seed=args.seed)


if __name__ == "__main__":
    main()
