"""What a child prints: handed on to the worker's standard error in whole lines, its last part kept for a crash."""

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable

from headrace import logs

KEPT = 8 * 1024
_CHUNK = 64 * 1024

Forward = Callable[[bytes], object]


def to_stderr(lines: bytes) -> None:
    """Write to the worker's standard error, wherever that goes now."""
    text = lines.decode("utf-8", "replace")
    with contextlib.suppress(OSError, ValueError):  # closed: no reader is left
        if logs.json_alone():
            logs.write_foreign(text)
            return
        sys.stderr.write(text)
        sys.stderr.flush()


class Output:
    """The reading end of a child's standard output and error."""

    def __init__(self, forward: Forward) -> None:
        self._forward = forward
        self._loop = asyncio.get_running_loop()
        self._source, self.sink = os.pipe()
        self._open = True
        self._kept = bytearray()
        self._line = bytearray()  # not yet ended: two children's lines shall not mix
        os.set_blocking(self._source, False)
        self._loop.add_reader(self._source, self._read)

    def close_sink(self) -> None:
        """Call it when the child has its copy: the end of file appears only when no other process holds it."""
        if self.sink >= 0:
            os.close(self.sink)
            self.sink = -1

    def restart(self) -> None:
        """Discard the kept output: it belongs to the previous task."""
        self._kept.clear()

    def last_lines(self, most: int = 30) -> str:
        """The last output, up to 8 KB."""
        self._drain()
        return "\n".join(self._kept.decode("utf-8", "replace").rstrip().split("\n")[-most:])

    def close(self) -> None:
        self.close_sink()
        self._drain()
        self._stop()

    def _drain(self) -> None:
        for _ in range(64):  # a pipe holds less; a process that still writes must not block us
            if not self._read():
                return

    def _read(self) -> bool:
        """Read what has arrived, a bounded piece; False when nothing is left for now."""
        if not self._open:
            return False
        try:
            piece = os.read(self._source, _CHUNK)
        except BlockingIOError:
            return False
        if not piece:
            self._stop()
            return False
        self._kept += piece
        del self._kept[:-KEPT]
        self._line += piece
        end = self._line.rfind(b"\n") + 1
        if not end and len(self._line) > KEPT:
            end = len(self._line)
        if end:
            self._forward(bytes(self._line[:end]))
            del self._line[:end]
        return True

    def _stop(self) -> None:
        if self._open:
            self._open = False
            self._loop.remove_reader(self._source)
            os.close(self._source)
            if self._line:
                self._forward(bytes(self._line) + b"\n")
                self._line.clear()
