"""Recognising the processes of one cluster.

By their titles, since every user can read a command line, but not the working directory of
another user's process, in most containers not even as root. The postmaster has the cluster's name among its
arguments and its children have it in their title; a process that reuses a dead one's id has neither.
"""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

from headrace.embedded_postgres.model import Layout


def is_ours(layout: Layout, pid: int) -> bool:
    """Whether the process is one of this cluster's: its postmaster, a child of that, or an initdb at work for it."""
    return pid > 0 and _belongs(layout, _command(pid))


def exists(pid: int) -> bool:
    """Whether there is such a process, be it one that ended and was never reaped."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def runs_postgres(pid: int) -> bool:
    """Whether the process is any PostgreSQL server."""
    command = _command(pid)
    return bool(command) and (Path(command[0]).name == "postgres" or command[0].startswith("postgres:"))


def kill_all(layout: Layout) -> None:
    """Kill whatever still runs for the cluster: orphans that did not notice the end of their postmaster."""
    for pid, command in _all():
        if _belongs(layout, command):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def _belongs(layout: Layout, command: list[str]) -> bool:
    if not command:
        return False
    if command[0].startswith("postgres:"):
        return f" {layout.name}: " in command[0]
    if Path(command[0]).name not in ("postgres", "initdb"):
        return False
    return f"--cluster_name={layout.name}" in command or any(word.startswith(f"{layout.home}/") for word in command[1:])


if sys.platform == "linux":

    def _command(pid: int) -> list[str]:
        """Give the words of a process's command line; none when there is no such process or it is a zombie."""
        try:
            raw = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            return []
        text = os.fsdecode(raw.rstrip(b"\0"))
        return text.split("\0") if text else []

    def _all() -> list[tuple[int, list[str]]]:
        pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
        return [(pid, _command(pid)) for pid in pids]

else:

    def _command(pid: int) -> list[str]:
        found = [command for each, command in _ask_ps("-p", str(pid)) if each == pid]
        return found[0] if found else []

    def _all() -> list[tuple[int, list[str]]]:
        return _ask_ps("-ax")

    def _ask_ps(*which: str) -> list[tuple[int, list[str]]]:
        # ps joins the words by spaces, so a path with a space falls apart; the cluster's name has none.
        listing = subprocess.run(
            ["ps", "-ww", *which, "-o", "pid=,command="], capture_output=True, text=True, check=False
        ).stdout
        rows = [line.strip().partition(" ") for line in listing.splitlines() if line.strip()]
        return [
            (int(pid), [command] if command.startswith("postgres:") else command.split(" ")) for pid, _, command in rows
        ]
