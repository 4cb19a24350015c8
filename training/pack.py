"""``python -m training.pack``: the pictures and fonts that training reads, in files small enough to carry to a GPU."""

import argparse
import io
import json
from collections.abc import Iterable
from pathlib import Path

from training.fonts import subset_fonts
from training.photographs import Photograph, refiner_photographs, repository_pictures

# How often a crop is taken from one, beside a photograph.
WEIGHTS = {"photo": 1.0, "refiner": 1.0, "text": 1.0}
QUALITY, SPEED = 45, 9  # of AVIF, half the size of WebP: crops are drawn, rescaled and saved once more anyway
MAX_PARCEL_BYTES = 34_000_000


def pack_photographs(photographs: Iterable[Photograph], out: Path, *, most: int = MAX_PARCEL_BYTES) -> int:
    """Write ``photographs-N.bin`` with a listing beside each; how many parcels there are."""
    parcels = 0
    listed: list[dict[str, object]] = []
    packed = io.BytesIO()

    def end_parcel() -> None:
        nonlocal parcels, packed, listed
        if listed:
            (out / f"photographs-{parcels}.bin").write_bytes(packed.getvalue())
            (out / f"photographs-{parcels}.json").write_text(json.dumps(listed, indent=1, ensure_ascii=False))
            parcels, packed, listed = parcels + 1, io.BytesIO(), []

    for photograph in photographs:
        encoded = io.BytesIO()
        photograph.image.save(encoded, "AVIF", quality=QUALITY, speed=SPEED)
        if packed.tell() + encoded.tell() > most:
            end_parcel()
        listed.append(
            {
                "name": photograph.name,
                "licence": photograph.licence,
                "role": photograph.role,
                "weight": WEIGHTS[photograph.role],
                "offset": packed.tell(),
                "length": packed.write(encoded.getvalue()),
            }
        )
    end_parcel()
    return parcels


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mirrors", type=Path, help="git directories to read repositories from: OWNER+NAME/repo")
    parser.add_argument("--cache", type=Path, help="where fetched packages are kept; with it the refiner's photographs")
    parser.add_argument("--fonts", type=Path, nargs="*", default=[])
    parser.add_argument("--out", type=Path, default=Path("training-data"))
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    if args.fonts:
        print(f"{subset_fonts(args.fonts, args.out / 'fonts')} faces")
    pictures = repository_pictures(args.mirrors) if args.cache is None else refiner_photographs(args.cache)
    print(f"{pack_photographs(pictures, args.out)} parcels")
    print(f"{sum(f.stat().st_size for f in args.out.rglob('*') if f.is_file()) / 2**20:.1f} MiB in {args.out}")


if __name__ == "__main__":
    main()
