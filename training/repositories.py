"""Pictures in public repositories, each named by its blob: everybody gets the same bytes."""

import hashlib
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path


def blobs(name: str, wanted: Iterable[str], mirrors: Path | None = None) -> Iterator[bytes]:
    """The content of blobs of a repository (``owner/name``), in their order.

    ``mirrors`` is a folder of git directories (OWNER+NAME/repo) to read instead of the public address.
    """
    with tempfile.TemporaryDirectory() as folder:
        place = repository(name, Path(folder), mirrors)
        command = ["git", "-C", str(place), "cat-file", "--batch"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as reader:
            assert reader.stdin is not None
            assert reader.stdout is not None
            for blob in wanted:
                reader.stdin.write(blob.encode() + b"\n")
                reader.stdin.flush()
                _, kind, length = reader.stdout.readline().split()
                if kind != b"blob":
                    raise ValueError(f"{name} holds no file {blob}")
                content = reader.stdout.read(int(length))
                reader.stdout.read(1)
                # A blob's name is the hash of its content: what came is what was named.
                if hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest() != blob:
                    raise ValueError(f"{name} holds something else as {blob}")
                yield content


def repository(name: str, folder: Path, mirrors: Path | None) -> Path:
    """The git directory of a repository (``owner/name``); one that has to be fetched goes to ``folder``."""
    if mirrors is not None:
        kept = mirrors / name.replace("/", "+") / "repo"
        return kept / ".git" if (kept / ".git").is_dir() else kept
    # Blobs come one by one, when they are asked for.
    address = f"https://github.com/{name}.git"
    command = ["git", "clone", "--quiet", "--bare", "--filter=blob:none", address, str(folder / "repo")]
    subprocess.run(command, check=True)
    return folder / "repo"
