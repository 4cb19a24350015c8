"""Fetches the pictures of ``benchmarks.eye_wild`` from the public repositories that ``eye_wild.json`` names.

    python -m benchmarks.eye_wild_pictures [--to FOLDER] [--mirrors FOLDER]

Each is named by its blob, so that everybody measures the same bytes. They stay out of this repository: the licences of
most say nothing of single pictures. ``--mirrors`` names a folder of git directories (OWNER+NAME/repo) to read instead.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from training.repositories import blobs

LISTED = Path(__file__).with_name("eye_wild.json")
FOLDER = Path(".headrace/eye-wild")


def listed() -> list[dict[str, Any]]:
    """Every repository with its pictures: kind, path, blob."""
    sources: list[dict[str, Any]] = json.loads(LISTED.read_text())
    return sources


def fetch(to: Path, mirrors: Path | None) -> int:
    """Writes what is not there yet, as KIND/REPOSITORY-NUMBER.EXT; how many were written."""
    written = 0
    for source in listed():
        name = source["repository"]
        wanted = [
            (to / kind / f"{name.replace('/', '+')}-{i:03}{Path(path).suffix.lower()}", blob)
            for i, (kind, path, blob) in enumerate(source["pictures"])
        ]
        wanted = [(target, blob) for target, blob in wanted if not target.exists()]
        if not wanted:
            continue
        contents = blobs(name, [blob for _, blob in wanted], mirrors)
        for (target, _), content in zip(wanted, contents, strict=True):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            written += 1
    return written


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", type=Path, default=FOLDER)
    parser.add_argument("--mirrors", type=Path)
    args = parser.parse_args()
    print(f"{fetch(args.to, args.mirrors)} pictures written to {args.to}")


if __name__ == "__main__":
    main()
