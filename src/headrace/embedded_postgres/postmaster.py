"""Starting, finding and stopping the server process.

The server lock shows whether any process of the server lives, never a process id: the postmaster inherits the
locked file and its children inherit it from there. Ids are used only to send signals, and only after a check of
the process.
"""

import contextlib
import errno
import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from typing import NamedTuple

from headrace.embedded_postgres import cluster, files, flocks, processes
from headrace.embedded_postgres.account import Account, become
from headrace.embedded_postgres.binaries import Binaries
from headrace.embedded_postgres.errors import DidNotStart, ForeignServer, PortTaken, WasKilled
from headrace.embedded_postgres.model import Layout

# A fast shutdown writes a checkpoint, which may take a while; to cut it short is safe, but the next start pays for it.
_FAST_WITHIN = 30.0
_IMMEDIATE_WITHIN = 5.0
_ORPHANS_WITHIN = 2.0
_PAUSE_SECONDS = 0.01


class Running(NamedTuple):
    """What postmaster.pid says of a server."""

    pid: int
    port: int
    ready: bool


def read_pid_file(layout: Layout) -> Running | None:
    """Read postmaster.pid; None when it is not there or is being written."""
    try:
        lines = (layout.cluster / "postmaster.pid").read_text(errors="replace").splitlines()
        return Running(int(lines[0]), int(lines[3]), len(lines) > 7 and lines[7].strip() == "ready")
    except (OSError, ValueError, IndexError):
        return None


def find(layout: Layout) -> Running | None:
    """Give the server of this cluster if one runs, whichever process started it for us."""
    if not flocks.is_held(layout.server_lock):
        return None
    pid_file = read_pid_file(layout)
    return pid_file if pid_file and processes.is_ours(layout, pid_file.pid) else None


def clear_stale_files(layout: Layout) -> None:
    """Remove the files by which a dead server would keep the next one from starting.

    PostgreSQL does so itself, unless the id in them belongs to a process of the same account. Two things give the id of
    a dead server back to life: a power cut, after which ids are given out from the beginning, and a container whose
    first process reaps no orphans. The caller holds the server lock, so no server of ours runs; one that a user
    started by hand does not hold it, and raises ForeignServer.
    """
    pid_file = read_pid_file(layout)
    if pid_file and (
        processes.is_ours(layout, pid_file.pid) or (processes.runs_postgres(pid_file.pid) and answers(pid_file.port))
    ):
        raise ForeignServer(
            f"a PostgreSQL that Headrace did not start runs on {layout.cluster} (process {pid_file.pid}): stop it with"
            f" `pg_ctl stop -D '{layout.cluster}'` and start again",
            pid=pid_file.pid,
        )
    stale = [*layout.cluster.glob(".s.PGSQL.*")]
    if pid_file and processes.exists(pid_file.pid):
        # Left alone otherwise: with it PostgreSQL also finds out whether old backends still use its shared memory.
        stale.append(layout.cluster / "postmaster.pid")
    for path in stale:
        path.unlink(missing_ok=True)


def answers(port: int) -> bool:
    """Whether a process accepts connections on the port."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def choose_port(layout: Layout, *, requested: int | None) -> int:
    """Give the port that was asked for, or the one of last time, or any that is free.

    Raises PortTaken for a requested one.
    """
    if requested is not None:
        if not _is_free(requested):
            raise port_taken(requested)
        return requested
    with contextlib.suppress(OSError, ValueError):
        kept = int(layout.kept.read_text())
        if _is_free(kept):
            return kept
    # Below the range that systems give to outgoing connections, so that it is likely free the next time too.
    for port in random.sample(range(15_432, 32_000), 200):
        if _is_free(port):
            return port
    raise DidNotStart("no free port was pid_file between 15432 and 32000: name one that is free")


def port_taken(port: int) -> PortTaken:
    return PortTaken(
        f"port {port} is taken by another program: stop that program, name another port, or name none to have a"
        " free one chosen",
        port=port,
    )


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as PostgreSQL does
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as exc:
            if exc.errno in (errno.EADDRINUSE, errno.EACCES):
                return False
            raise
    return True


def start(layout: Layout, binaries: Binaries, account: Account | None, *, lock: int) -> subprocess.Popen[bytes]:
    """Start the server as our child, which shares the server lock from now on: ``lock``, which the caller closes."""
    log = files.open_own(layout.startup_log, os.O_WRONLY | os.O_TRUNC)
    try:
        return subprocess.Popen(
            [
                binaries.bin / "postgres",
                "-D",
                layout.cluster,
                f"--config_file={layout.conf}",
                f"--hba_file={layout.hba}",
                f"--cluster_name={layout.name}",
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=cluster.environment(),
            cwd="/",
            pass_fds=(lock,),
            preexec_fn=become(account),
            start_new_session=True,
        )
    finally:
        os.close(log)


def wait_until_ready(layout: Layout, child: subprocess.Popen[bytes], *, go_on: Callable[[], bool]) -> Running | None:
    """Wait until the server takes connections, however long its recovery takes; None when ``go_on`` says to stop.

    Raises DidNotStart, DiskFull or PortTaken with the last lines of its log when it ends instead.
    """
    began = time.time()
    while go_on():
        ended = child.poll() is not None
        pid_file = read_pid_file(layout)
        if not ended and pid_file and pid_file.pid == child.pid and pid_file.ready:
            return pid_file
        if ended:
            # Its log is written by a process of its own, which may outlive it by a moment.
            flocks.wait_until_free(layout.server_lock, within=_ORPHANS_WITHIN)
            output = files.tail(layout.startup_log, lines=20) + _own_log(layout, since=began)
            if any("could not bind" in line and "Address already in use" in line for line in output):
                raise PortTaken("the port was taken while the server started: start again")
            failure = cluster.failure(layout, output, "PostgreSQL did not start")
            if child.returncode == -signal.SIGKILL or any("terminated by signal 9" in line for line in output):
                raise WasKilled(failure.message)
            raise failure
        time.sleep(_PAUSE_SECONDS)
    return None


def _own_log(layout: Layout, *, since: float) -> list[str]:
    """Give what the server wrote to its log in its last start."""
    logs = [(path.stat().st_mtime, path) for path in (layout.cluster / "log").glob("*.log")]
    written, path = max(logs, default=(0.0, None))
    if path is None or written < since - 1:
        return []
    lines = files.tail(path, lines=60)
    starts = [number for number, line in enumerate(lines) if "starting PostgreSQL" in line]
    return lines[starts[-1] if starts else 0 :]


def stop(layout: Layout, child: subprocess.Popen[bytes] | None = None) -> bool:
    """Stop the server and all its processes; True when none is left.

    Requests a fast shutdown (open transactions are rolled back), then an immediate one, then kills. Does nothing
    when no process of ours runs. ``child`` is the server if it is ours to reap.
    """
    if not flocks.is_held(layout.server_lock):
        return _is_gone(layout, child, within=0)
    for sent, within in ((signal.SIGINT, _FAST_WITHIN), (signal.SIGQUIT, _IMMEDIATE_WITHIN)):
        pid = child.pid if child and child.poll() is None else None
        if pid is None:
            pid_file = read_pid_file(layout)
            pid = pid_file.pid if pid_file and processes.is_ours(layout, pid_file.pid) else None
        if pid is None:
            break
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, sent)
        if _is_gone(layout, child, within=within):
            return True
    return kill_orphans(layout, child)


def abandon(layout: Layout, pid: int) -> None:
    """Stop a server whose folder was removed, without reading the folder: a new one may exist there by now."""
    for sent in (signal.SIGQUIT, signal.SIGKILL):
        if not processes.is_ours(layout, pid):
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, sent)
        deadline = time.monotonic() + _IMMEDIATE_WITHIN
        while processes.is_ours(layout, pid) and time.monotonic() < deadline:
            time.sleep(_PAUSE_SECONDS)


def kill_orphans(layout: Layout, child: subprocess.Popen[bytes] | None = None) -> bool:
    """End what a dead postmaster left behind; True when nothing is left.

    Its children mostly notice by themselves. One in the middle of a long computation does not, and while it lives no
    new server can start on the data.
    """
    if _is_gone(layout, child, within=_ORPHANS_WITHIN):
        return True
    processes.kill_all(layout)
    return _is_gone(layout, child, within=_IMMEDIATE_WITHIN)


def _is_gone(layout: Layout, child: subprocess.Popen[bytes] | None, *, within: float) -> bool:
    free = flocks.wait_until_free(layout.server_lock, within=within)
    if free and child is not None:
        child.wait()
    return free
