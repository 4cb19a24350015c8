"""Processes that a benchmark starts: connected to nothing yet, they work from ``go`` on and end with the block."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Self


class Worker:
    """``python -m benchmarks.drainer WHO …``, ready to begin."""

    def __init__(self, who: str, *arguments: str) -> None:
        self._command: Sequence[str] = [sys.executable, "-m", "benchmarks.drainer", who, *arguments]
        self._environment: Mapping[str, str] = {}

    @classmethod
    def running(cls, command: Sequence[str], *, environment: Mapping[str, str] | None = None) -> Self:
        """Another program that says ``ready`` and works from ``go`` on."""
        worker = cls("")
        worker._command, worker._environment = command, environment or {}
        return worker

    def __enter__(self) -> Self:
        environment = {**os.environ, **self._environment}
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self.line()
        return self

    @property
    def pid(self) -> int:
        return self._process.pid

    def close(self) -> None:
        """Tell it to end; its last lines can still be read."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def __exit__(self, *_: object) -> None:
        self.close()
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
