"""Fetches the pictures of ``benchmarks.eye_wild`` from the public repositories that ``eye_wild.json`` names.

    python -m benchmarks.eye_wild_pictures [--to FOLDER] [--mirrors FOLDER]

Each is named by its blob, so that everybody measures the same bytes. They stay out of this repository: the licences of
most say nothing of single pictures. ``--mirrors`` names a folder of git directories (OWNER+NAME/repo) to read instead.
"""

import argparse
import hashlib
import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

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
        with tempfile.TemporaryDirectory() as folder:
            repository = _repository(name, Path(folder), mirrors)
            for target, blob in wanted:
                content = _git(repository, "cat-file", "blob", blob)
                # A blob's name is the hash of its content: what came is what was named.
                if hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest() != blob:
                    raise ValueError(f"{name} holds something else as {blob}")
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
                written += 1
    return written


def _repository(name: str, folder: Path, mirrors: Path | None) -> Path:
    if mirrors is not None:
        kept = mirrors / name.replace("/", "+") / "repo"
        return kept / ".git" if (kept / ".git").is_dir() else kept
    # Blobs come one by one, when they are asked for.
    address = f"https://github.com/{name}.git"
    command = ["git", "clone", "--quiet", "--bare", "--filter=blob:none", address, str(folder / "repo")]
    subprocess.run(command, check=True)
    return folder / "repo"


def _git(repository: Path, *words: str) -> bytes:
    return subprocess.run(["git", "-C", str(repository), *words], check=True, capture_output=True).stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", type=Path, default=FOLDER)
    parser.add_argument("--mirrors", type=Path)
    args = parser.parse_args()
    print(f"{fetch(args.to, args.mirrors)} pictures written to {args.to}")


if __name__ == "__main__":
    main()
