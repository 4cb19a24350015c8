"""The folder of the tests' PostgreSQL: in memory while tests run, on the disk in between.

A database for each test is a copy of 700 files, which takes a disk's file system five times as long. What is in memory
goes with the last test process; on the disk remains a cluster with a migrated template, so that the next run starts at
once. Runs that are killed leave their folder in memory, and the next one uses and removes it.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_MEMORY = Path("/dev/shm")
_DISK = Path("/tmp")
_NEEDED = 2 * 1024**3


@contextmanager
def in_memory(kept: Path) -> Iterator[Path]:
    """A folder in memory that holds what ``kept`` does, or ``kept`` itself where there is no memory to be had.

    Any number of processes may use it at once.
    """
    if room() != _MEMORY:
        yield kept
        return
    folder = _MEMORY / f"headrace-tests-{hashlib.sha256(os.fsencode(kept)).hexdigest()[:12]}"
    kept.parent.mkdir(parents=True, exist_ok=True)
    with kept.with_suffix(".users").open("w") as users:
        with _alone(kept):
            if not folder.exists() and kept.exists():
                _copy(kept, folder)
            fcntl.flock(users, fcntl.LOCK_SH)
        try:
            yield folder
        finally:
            with _alone(kept):
                if _is_last(users.fileno()) and folder.exists():
                    if not _same_template(folder, kept):
                        shutil.rmtree(kept, ignore_errors=True)
                        _copy(folder, kept)
                    shutil.rmtree(folder)


@contextmanager
def _alone(kept: Path) -> Iterator[None]:
    """Coming and going, one after the other."""
    with kept.with_suffix(".turn").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        yield


def room() -> Path:
    """Where tests may put clusters of some 50 MB: in memory if there is enough of it."""
    try:
        roomy = os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > _NEEDED
        return _MEMORY if roomy and not os.statvfs(_MEMORY).f_flag & os.ST_NOEXEC else _DISK
    except OSError:
        return _DISK


def _copy(source: Path, target: Path) -> None:
    # A copy that was interrupted must not look like one; and the cluster may belong to another account than we.
    draft = target.with_suffix(".copying")
    shutil.rmtree(draft, ignore_errors=True)
    subprocess.run(["cp", "-a", source, draft], check=True)
    draft.rename(target)


def _is_last(users: int) -> bool:
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def note_template(folder: Path, name: str) -> None:
    (folder / "template").write_text(name)


def _same_template(folder: Path, kept: Path) -> bool:
    try:
        return (folder / "template").read_text() == (kept / "template").read_text()
    except OSError:
        return False
