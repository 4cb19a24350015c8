"""A `headrace up` with the program of chaos on a PostgreSQL of its own, left alone."""

import socket
from collections.abc import Mapping
from pathlib import Path

import psutil

from tests.chaos.program import ADDRESS, JOURNAL
from tests.chaos.site import SETTINGS
from tests.e2e.program import Program
from tests.races.engine_stand import ROOT, Mortal

# What chaos makes short so that a kill is soon noticed is left as it is delivered.
_AS_DELIVERED = (
    "HEADRACE_WORKER_LEASE",
    "HEADRACE_WORKER_POLL_INTERVAL",
    "HEADRACE_SCHEDULER_POLL_INTERVAL",
    "HEADRACE_AUDIT_SEAL_INTERVAL",
)


class Undisturbed:
    """The site that load is sent to; see ``tests.chaos.load.Target``."""

    def __init__(self, mortal: Mortal, logs: Path, home: Path, more: Mapping[str, str]) -> None:
        self.mortal = mortal
        self.files = home / "files"
        self.journal = logs / "journal"
        self.journal.touch()
        self._log = logs / "up.log"
        self.settings = {
            **{name: value for name, value in SETTINGS.items() if name not in _AS_DELIVERED},
            **more,
            "HEADRACE_DATABASE_URL": mortal.url,
            "HEADRACE_DATABASE_OWNER_URL": mortal.superuser_url,
            "HEADRACE_FILES_URL": str(self.files),
            "HEADRACE_DATA_DIR": str(home / "data"),
            "HEADRACE_REMOVAL_PROCESSES": "1",
            JOURNAL: str(self.journal),
            ADDRESS: mortal.url,
        }
        self.program: Program | None = None

    def start(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:  # `up` listens where it is told, on one that nobody has
            port = free.getsockname()[1]
        words = ("up", "--app", "tests.chaos.program:registry", "--port", str(port))
        self.program = Program(*words, folder=ROOT, settings=self.settings)
        self.program.until_ready()

    @property
    def up(self) -> Program:
        assert self.program is not None
        return self.program

    def end(self) -> int:
        code = self.up.stop()
        self._log.write_text(self.up.out + self.up.err)
        self.up.close()
        return code

    def complaints(self) -> list[str]:
        """Lines of the log at the level of an error."""
        return [line for line in self._log.read_text().splitlines() if '"level": "error"' in line]

    def apis(self) -> Mapping[str, Program]:
        return {self.up.url(within=0): self.up} if self.up.running else {}

    def spring(self, step: str, url: str) -> None:
        """Nobody waits for it here."""

    def databases(self) -> list[str]:
        return [self.mortal.url]

    def processes(self) -> dict[str, list[psutil.Process]]:
        """`up` itself, the worker of the program, their other children, and PostgreSQL."""
        up, postmaster = self.up.process_info, psutil.Process(self.mortal.pid)
        workers = [child for child in up.children() if "worker" in _words(child)]
        children = [child for child in up.children(recursive=True) if child not in workers]
        return {
            "up": [up],
            "worker": workers,
            "children": children,
            "PostgreSQL": [postmaster, *postmaster.children(recursive=True)],
        }


def _words(process: psutil.Process) -> list[str]:
    """Its command line; nothing of one that has just ended."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []
