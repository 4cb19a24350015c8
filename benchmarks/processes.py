"""Processes that a benchmark starts: connected to nothing yet, they work from ``go`` on and end with the block."""

import subprocess
import sys
from typing import Self


class Worker:
    """``python -m benchmarks.drainer WHO …``, ready to begin."""

    def __init__(self, who: str, *arguments: str) -> None:
        self._command = [sys.executable, "-m", "benchmarks.drainer", who, *arguments]

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.line()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()

    def go(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()

    def line(self) -> str:
        """What it says next."""
        assert self._process.stdout is not None
        said = self._process.stdout.readline()
        if not said:
            raise RuntimeError(f"{' '.join(self._command)} has ended; it says above why")
        return said

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None
