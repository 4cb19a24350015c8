"""The file that a handler gives to ``context.save_result``: opened and checked here, stored elsewhere."""

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from headrace.tasks.errors import ResultFileUnreadable


class ResultStore(Protocol):
    """Where result files are kept."""

    async def save(
        self, task_id: str, user_id: str, file: int, *, name: str, mime_type: str | None
    ) -> Mapping[str, Any]:
        """Store a copy of an open file. The return value is JSON, for the follower that records the result."""

    async def discard(self, saved: Mapping[str, Any]) -> None:
        """Remove a file that was replaced before it was recorded."""


@contextmanager
def opened(path: str, *, within: Path | None = None) -> Iterator[int]:
    """A descriptor of a regular file; ``ResultFileUnreadable`` gives the fault.

    With ``within`` it must lie in that folder: the check is made on the open file, so that a link that is changed
    meanwhile leads nowhere else.
    """
    try:
        # Without O_NONBLOCK a pipe would wait for its writer.
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) and exc.strerror else str(exc)
        raise ResultFileUnreadable(f"save_result cannot read {path}: {reason}. Write the file first.") from exc
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise ResultFileUnreadable(f"save_result takes a file, and {path} is none: pack a folder into one file.")
        if within is not None and not _lies_in(file, within):
            raise ResultFileUnreadable(
                f"save_result cannot take {path}: with isolation='process' the file must be in context.scratch, "
                "and no link to another."
            )
        yield file
    finally:
        os.close(file)


def _lies_in(file: int, folder: Path) -> bool:
    try:
        place = Path(f"/proc/self/fd/{file}").readlink()
        return place.is_relative_to(folder.resolve(strict=True)) and os.fstat(file).st_nlink == 1
    except OSError:
        return False
