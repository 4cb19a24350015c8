"""Locks on files that vanish with the process that holds them, however it ends.

They are flock(2) locks: they belong to the open file, so a child that inherits the descriptor holds the lock too, and
the kernel lets go when the last holder is gone. No process id is stored anywhere that could be stale or recycled.
"""

import fcntl
import os
import time
from pathlib import Path

from headrace.embedded_postgres import files

_PAUSE_SECONDS = 0.01


def open_lock(path: Path) -> int:
    """Open the lock file, made if it is not there; nothing is locked yet."""
    return files.open_own(path, os.O_RDWR)


def try_lock(fd: int, *, shared: bool = False) -> bool:
    """Take the lock if it is free; a lock that this descriptor held before is lost when it is not."""
    try:
        fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def unlock(fd: int) -> None:
    """Let go of the lock, for every holder of this open file."""
    fcntl.flock(fd, fcntl.LOCK_UN)


def lock(fd: int, *, within: float, shared: bool = False) -> bool:
    """Take the lock, waiting for it up to ``within`` seconds.

    Polls instead of blocking, so that Ctrl-C and the deadline both work in any thread.
    """
    deadline = time.monotonic() + within
    while not try_lock(fd, shared=shared):
        if time.monotonic() >= deadline:
            return False
        time.sleep(_PAUSE_SECONDS)
    return True


def is_held(path: Path) -> bool:
    """Whether a process holds the lock exclusively.

    The test itself takes the lock for a moment; a process that takes such a lock in earnest must therefore retry for
    longer than a moment.
    """
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        return not try_lock(fd, shared=True)
    finally:
        os.close(fd)


def wait_until_free(path: Path, *, within: float) -> bool:
    """Wait until no process holds the lock exclusively; False when that takes too long."""
    deadline = time.monotonic() + within
    while is_held(path):
        if time.monotonic() >= deadline:
            return False
        time.sleep(_PAUSE_SECONDS)
    return True
