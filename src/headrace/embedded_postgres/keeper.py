"""The keeper: a small process of its own that owns the server as long as anybody uses it.

It makes the cluster if there is none, starts the server or adopts a running one, restarts it when it dies, and stops it
when the last user is gone. It needs no message for that: users share a lock, and when the keeper gets it exclusively,
no user is left. It imports the standard library and this package only.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import time
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import chain, repeat
from pathlib import Path
from types import FrameType
from typing import NoReturn

from headrace.embedded_postgres import account as accounts
from headrace.embedded_postgres import binaries as installations
from headrace.embedded_postgres import cluster, files, flocks, postmaster, state
from headrace.embedded_postgres.account import Account
from headrace.embedded_postgres.binaries import Binaries
from headrace.embedded_postgres.errors import DidNotStart, PortTaken, StillBusy, WasKilled, pack
from headrace.embedded_postgres.model import Launch, Layout, Phase, State
from headrace.errors import HeadraceError

_POLL = 0.1
# A test whether a lock is held takes it for a moment; see flocks.is_held.
_LOCK_WITHIN = 2.0
_RESTART_PAUSES = (0.0, 0.2, 0.5, 1.0, 2.0)
_MAX_PAUSE_SECONDS = 5.0
_ATTEMPTS = 5


class Keeper:
    """Keeps one server. ``run`` returns when the server is stopped."""

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._layout = Layout(Path(launch.home))
        self._asked_to_stop = False
        self._child: subprocess.Popen[bytes] | None = None
        self._pid = 0
        self._port = 0
        self._version = ""
        self._users = flocks.open_lock(self._layout.users_lock)
        self._lock = flocks.open_lock(self._layout.keeper_lock)
        self._woken, self._wake = os.pipe()
        for end in (self._woken, self._wake):
            os.set_blocking(end, False)

    def run(self) -> None:
        """Start the server, report it to the process that started us, and stay until it has no users."""
        if not flocks.lock(self._lock, within=_LOCK_WITHIN):
            # The starter of the other keeper was killed before that one was visible: it serves as well as we.
            tell({"overtaken": True})
            return
        self._listen_to_signals()
        before = state.read(self._layout)
        self._version = before.version if before else ""
        self._say(Phase.STARTING)
        try:
            self._bring_up()
        except BaseException:
            if self._child is not None:
                postmaster.stop(self._layout, self._child)
            raise
        tell({"ready": {"port": self._port, "version": self._version}})
        hang_up()
        try:
            while self._is_needed():
                if not self._is_up():
                    self._bring_back()
                self._pause(_POLL)
        finally:
            self._wind_up()

    def _listen_to_signals(self) -> None:
        def stop(_signal: int, _frame: FrameType | None) -> None:
            self._asked_to_stop = True

        signal.pthread_sigmask(signal.SIG_SETMASK, ())  # whatever the thread that started us had blocked
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)

        def nothing(_signal: int, _frame: FrameType | None) -> None:
            pass

        signal.signal(signal.SIGTERM, stop)
        signal.signal(signal.SIGCHLD, nothing)  # only to wake up
        for ignored in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
            # The terminal's Ctrl-C is for the user, who needs the server to the end. Not SIG_IGN: the
            # server would inherit that, and lose a stop in its first moments.
            signal.signal(ignored, nothing)

    def _pause(self, seconds: float) -> None:
        """Sleep, but wake up for a signal."""
        if select.select([self._woken], [], [], seconds)[0]:
            with contextlib.suppress(BlockingIOError):
                os.read(self._woken, 512)

    def _is_needed(self) -> bool:
        """Whether anybody still uses the server. Once it says no it stays at no: the users' lock is then ours."""
        if self._asked_to_stop or not self._still_ours():
            return False
        return not flocks.try_lock(self._users)

    def _still_ours(self) -> bool:
        """Whether the folder is still the same: it may have been removed under us."""
        try:
            return self._layout.keeper_lock.stat().st_ino == os.fstat(self._lock).st_ino
        except OSError:
            return False

    def _is_up(self) -> bool:
        if self._child is not None:
            return self._child.poll() is None
        return postmaster.find(self._layout) is not None

    def _bring_up(self) -> None:
        """Adopt a running server, or make missing files and start it."""
        if self._adopt():
            return
        with self._server_lock() as lock:
            major = cluster.data_major(self._layout)
            binaries, account = self._choose(major)
            if major is None:
                tell({"report": f"creating the database in {self._layout.home} (PostgreSQL {binaries.version})"})
                cluster.make(self._layout, binaries, account, settings=self._launch.settings, keep_open=lock)
            else:
                accounts.take_over(self._layout.cluster, account)
                postmaster.clear_stale_files(self._layout)
                if not self._layout.credentials.exists():
                    cluster.replace_credentials(self._layout, binaries, account, keep_open=lock)
        self._start_on_a_port(binaries, account)

    def _adopt(self) -> bool:
        """Take over a server whose keeper was killed."""
        pid_file = postmaster.find(self._layout)
        while pid_file and not pid_file.ready and self._is_needed():
            self._pause(_POLL)
            pid_file = postmaster.find(self._layout)
        if pid_file is None:
            return False
        self._pid, self._port = pid_file.pid, pid_file.port
        self._version = self._version or str(cluster.data_major(self._layout))
        log("server.adopted", pid=pid_file.pid, port=pid_file.port)
        self._say(Phase.READY)
        return True

    def _choose(self, major: int | None) -> tuple[Binaries, Account | None]:
        """Choose the programs to run, and their account."""
        folders = [Path(folder) for folder in self._launch.binaries]
        binaries = installations.choose(folders, data_major=major, prefer_first=self._launch.prefer_first)
        account = accounts.choose(self._layout, run_as=self._launch.run_as)
        if account is not None:
            programs = [binaries.bin / "postgres", binaries.bin / "initdb"]
            account = accounts.with_reach(account, home=self._layout.home, programs=programs)
        return binaries, account

    @contextlib.contextmanager
    def _server_lock(self) -> Iterator[int]:
        """Hold the server lock: nothing else touches the data, and what we start with it inherits it."""
        lock = flocks.open_lock(self._layout.server_lock)
        try:
            if not flocks.lock(lock, within=_LOCK_WITHIN):
                postmaster.kill_orphans(self._layout)
                if not flocks.lock(lock, within=_LOCK_WITHIN):
                    raise StillBusy(
                        f"processes of an earlier server still hold {self._layout.home}: end them and start again"
                    )
            yield lock
        finally:
            os.close(lock)

    def _start_on_a_port(self, binaries: Binaries, account: Account | None) -> None:
        requested = self._launch.port
        for attempt in range(_ATTEMPTS):
            self._port = postmaster.choose_port(self._layout, requested=requested)
            cluster.write_configuration(self._layout, port=self._port, settings=self._launch.settings)
            tell({"report": f"starting PostgreSQL {binaries.version} on port {self._port}"})
            try:
                self._start(binaries, account)
                break
            except PortTaken:
                # Another process took it between our check and the server's bind. Only a requested port is an error.
                if requested is not None or attempt == _ATTEMPTS - 1:
                    raise postmaster.port_taken(self._port) from None
            except WasKilled as exc:
                log("server.killed", error=exc.message)
                if attempt == _ATTEMPTS - 1:
                    raise
                postmaster.kill_orphans(self._layout, self._child)
        files.write(self._layout.kept, f"{self._port}\n")
        self._say(Phase.READY)

    def _start(self, binaries: Binaries, account: Account | None) -> None:
        with self._server_lock() as lock:
            postmaster.clear_stale_files(self._layout)
            self._child = postmaster.start(self._layout, binaries, account, lock=lock)
        self._pid, self._version = self._child.pid, binaries.version
        if postmaster.wait_until_ready(self._layout, self._child, go_on=self._is_needed) is None:
            raise DidNotStart("the start was interrupted: start again")
        log("server.started", pid=self._pid, port=self._port, version=self._version)

    def _bring_back(self) -> None:
        """Start the server again after it died, on the same port, until it is up or has no users.

        Never gives up while there are users: a full disk may be emptied, and no other process would start it.
        """
        log("server.died", pid=self._pid, status=self._child.returncode if self._child else "unknown")
        self._say(Phase.RESTARTING)
        for pause in chain(_RESTART_PAUSES, repeat(_MAX_PAUSE_SECONDS)):
            until = time.monotonic() + pause
            while self._is_needed() and time.monotonic() < until:
                self._pause(_POLL)
            if not self._is_needed():
                return
            try:
                postmaster.kill_orphans(self._layout, self._child)
                self._start(*self._choose(cluster.data_major(self._layout)))
            except (HeadraceError, OSError) as exc:
                log("server.restart_failed", error=str(exc))
                self._say(Phase.RESTARTING, note=str(exc))
            else:
                self._say(Phase.READY)
                return

    def _wind_up(self) -> None:
        if not self._still_ours():
            log("server.abandoned", pid=self._pid)
            postmaster.abandon(self._layout, self._pid)
            return
        began = time.monotonic()
        gone = postmaster.stop(self._layout, self._child)
        log("server.stopped", gone=gone, seconds=round(time.monotonic() - began, 2))
        self._say(Phase.STOPPED)

    def _say(self, phase: Phase, *, note: str = "") -> None:
        # Never a reason to fail: on a full disk the server may well continue.
        with contextlib.suppress(OSError):
            state.write(self._layout, State(phase, self._port, self._version, note))


def tell(message: dict[str, object]) -> None:
    """Say something to the process that started us, if it still listens: it reads our standard output."""
    with contextlib.suppress(OSError):
        os.write(1, (json.dumps(message) + "\n").encode())


def hang_up() -> None:
    """Say no more to the process that started us."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


def log(event: str, **fields: object) -> None:
    """Write one line to the keeper's log, which is our standard error."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    words = " ".join(f"{key}={json.dumps(value)}" for key, value in fields.items())
    with contextlib.suppress(OSError):
        os.write(2, f"{now} {event} {words}\n".encode())


def main(argv: list[str]) -> NoReturn:
    """Become a process of its own, and keep the server that the first argument describes."""
    if os.fork() != 0:
        os._exit(0)  # so that no process has a child that it does not know of
    launch = Launch(**json.loads(argv[1]))
    os.chdir("/")
    os.umask(0o077)
    status = 1
    try:
        with files.naming_the_folder(Path(launch.home)):
            Keeper(launch).run()
        status = 0
    except HeadraceError as exc:
        log("keeper.failed", code=exc.code, message=exc.message)
        tell({"error": pack(exc)})
    except Exception as exc:  # noqa: BLE001  # the edge of the process: recorded, and reported to the waiting process
        log("keeper.broke", trace=traceback.format_exc())
        tell({"error": pack(DidNotStart(f"the keeper of the embedded PostgreSQL broke ({exc!r}): see its log"))})
    os._exit(status)
