"""The guardian: a tiny process that outlives a killed worker just long enough to kill its children's subprocesses.

The kernel kills a child together with its worker, but not the programs that the child started: they would continue
to write into the folders of a task that another worker has claimed by then. The guardian knows the process groups, and
kills them at the end of its standard input, which comes when the worker is gone, for any reason.

Its file is run by an interpreter without site-packages, which takes 10 ms and a few MB.
"""

import asyncio
import contextlib
import subprocess
import sys
import time
from pathlib import Path

from headrace import logs
from headrace.tasks.isolation.environment import clean_environment

log = logs.get(__name__)

_PROCESS = str(Path(__file__).with_name("guardian_process.py"))


class Guardian:
    """The worker's side: it starts the process with the first group, and restarts it if it was killed."""

    def __init__(self) -> None:
        self._groups: set[int] = set()
        self._process: subprocess.Popen[bytes] | None = None

    def watch(self, group: int) -> None:
        """Put a group on the list. Without a guardian the worker continues: it only matters if the worker is killed."""
        self._groups.add(group)
        if self._process is not None and _write(self._process, f"+{group}\n"):
            return
        self._end()
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own file and our own interpreter
                [sys.executable, "-I", "-S", _PROCESS],
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                env=clean_environment(),
            )
        except OSError as exc:
            log.warning("isolation.no_guardian", error=str(exc))
            return
        _write(self._process, "".join(f"+{each}\n" for each in self._groups))

    def forget(self, group: int) -> None:
        """Call it before the group's leader is waited for: until then its process id cannot be reused."""
        self._groups.discard(group)
        if self._process is not None:
            _write(self._process, f"-{group}\n")

    async def close(self) -> None:
        """Let it go; it needs a few milliseconds."""
        if self._process is not None:
            _hang_up(self._process)
            deadline = time.monotonic() + 2
            while self._process.poll() is None and time.monotonic() < deadline:  # noqa: ASYNC110 - no event tells of it
                await asyncio.sleep(0.005)
            self._end()

    def _end(self) -> None:
        if self._process is not None:
            _hang_up(self._process)
            self._process.kill()
            self._process.wait()
            self._process = None


def _write(process: "subprocess.Popen[bytes]", lines: str) -> bool:
    assert process.stdin is not None
    try:
        process.stdin.write(lines.encode())
    except OSError:
        return False
    return True


def _hang_up(process: "subprocess.Popen[bytes]") -> None:
    assert process.stdin is not None
    with contextlib.suppress(OSError):
        process.stdin.close()
