"""``python -m training.pack``: everything training reads, in one folder small enough to be carried to a GPU."""

import argparse
import io
import json
from pathlib import Path

import numpy as np

from training import emblems, lettering
from training.photographs import Photograph, repository_pictures, training_photographs

# How often a crop is taken from one, beside a photograph.
WEIGHTS = {"photo": 1.0, "refiner": 1.0, "plain": 0.1, "screen": 0.1, "text": 0.5}
QUALITY = {"photo": 78, "refiner": 78, "plain": 82, "screen": 82, "text": 78}


def pack_photographs(photographs: list[Photograph], out: Path) -> None:
    listed = []
    with (out / "photographs.bin").open("wb") as file:
        for photograph in photographs:
            encoded = io.BytesIO()
            photograph.image.save(encoded, "JPEG", quality=QUALITY[photograph.role], optimize=True)
            listed.append(
                {
                    "name": photograph.name,
                    "licence": photograph.licence,
                    "role": photograph.role,
                    "weight": WEIGHTS[photograph.role],
                    "offset": file.tell(),
                    "length": file.write(encoded.getvalue()),
                }
            )
    (out / "photographs.json").write_text(json.dumps(listed, indent=1, ensure_ascii=False))


def pack_marks(fonts: list[Path], pictures: list[Path], out: Path, *, texts: int, logos: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    faces = lettering.find_faces(fonts)
    bitmaps = lettering.draw_many(faces, texts, rng)
    np.savez_compressed(
        out / "marks.npz",
        widths=np.array([b.shape[1] for b in bitmaps], np.int32),
        ink=np.concatenate([b.ravel() for b in bitmaps]),
        emblems=emblems.draw_many(faces, pictures, logos, rng),
    )
    print(f"{len(faces)} faces, {len(bitmaps)} texts, {logos} emblems")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--photos", type=Path, required=True, help="the shared folder, with manifest.json")
    parser.add_argument("--cache", type=Path, required=True, help="where fetched packages are kept")
    parser.add_argument("--fonts", type=Path, nargs="+", required=True)
    parser.add_argument("--pictures", type=Path, help="a folder of clip art, PNG files with transparent ground")
    parser.add_argument("--mirrors", type=Path, help="git directories to read repositories from: OWNER+NAME/repo")
    parser.add_argument("--texts", type=int, default=2800)
    parser.add_argument("--logos", type=int, default=1700)
    parser.add_argument("--seed", type=int, default=6)
    parser.add_argument("--out", type=Path, default=Path("training-data"))
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    photographs = [*training_photographs(args.photos, args.cache), *repository_pictures(args.mirrors)]
    pack_photographs(photographs, args.out)
    pictures = sorted(args.pictures.rglob("*.png")) if args.pictures else []
    pack_marks(args.fonts, pictures, args.out, texts=args.texts, logos=args.logos, seed=args.seed)
    print(f"{sum(f.stat().st_size for f in args.out.iterdir()) / 2**20:.1f} MiB in {args.out}")


if __name__ == "__main__":
    main()
