"""A file that a child was handed open: the one thing it can read."""

import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from headrace.assets.inspection.errors import InspectionMemory

_HEAD = 4096


class Source:
    """The bytes of one file. There is one place in it for all readers: use one of ``open`` at a time."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.size = os.fstat(descriptor).st_size
        self.head = self.read_at(0, _HEAD)

    def read_at(self, offset: int, count: int) -> bytes:
        """Up to ``count`` bytes from there; fewer at the end."""
        parts = []
        while count > 0 and (part := os.pread(self.descriptor, count, offset)):
            parts.append(part)
            offset, count = offset + len(part), count - len(part)
        return b"".join(parts)

    def tail(self, count: int) -> bytes:
        return self.read_at(max(0, self.size - count), count)

    def open(self) -> BinaryIO:
        """A file from the beginning, for libraries that want one."""
        self.rewind()
        return os.fdopen(self.descriptor, "rb", closefd=False)

    def rewind(self) -> None:
        """Back to the beginning, for libraries that take the descriptor itself."""
        os.lseek(self.descriptor, 0, os.SEEK_SET)

    @contextmanager
    def mapped(self) -> Iterator[mmap.mmap]:
        """All of it as one piece, which counts as memory: not for videos."""
        try:
            data = mmap.mmap(self.descriptor, 0, access=mmap.ACCESS_READ)
        except OSError as exc:
            raise InspectionMemory from exc
        with data:
            yield data
