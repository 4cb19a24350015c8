"""The keeper: a small process of its own that owns the server as long as anybody uses it.

It makes the cluster if there is none, starts the server or adopts one that runs, starts it again when it dies, and
stops it when the last user is gone. It needs no message for that: users hold a shared lock, and when the keeper can
have it alone, nobody is left. It imports the standard library and this package only, and stays at a few megabytes.
"""

import contextlib
import errno
import json
import os
import select
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import NoReturn

from headrace.embedded import account as accounts
from headrace.embedded import binaries as installations
from headrace.embedded import cluster, files, flocks, postmaster, state
from headrace.embedded.account import Account
from headrace.embedded.binaries import Binaries
from headrace.embedded.errors import DidNotStart, PortTaken, StillBusy, pack
from headrace.embedded.model import Launch, Layout, Phase, State
from headrace.errors import HeadraceError

_POLL = 0.1
# Whoever asks whether a lock is held holds it for a moment; see flocks.is_held.
_LOCK_WITHIN = 2.0
_RESTART_PAUSES = (0.0, 0.2, 0.5, 1.0, 2.0, 5.0)
_LOG_LIMIT = 1_000_000


class Keeper:
    """Keeps one server. ``run`` returns when the server is stopped."""

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._layout = Layout(Path(launch.home))
        self._asked_to_stop = False
        self._child: subprocess.Popen[bytes] | None = None
        self._port = 0
        self._version = ""
        self._account: Account | None = None
        self._binaries: Binaries | None = None
        self._users = flocks.open_lock(self._layout.users_lock)
        self._lock = flocks.open_lock(self._layout.keeper_lock)
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def run(self) -> None:
        """Bring the server up, say so to whoever started us, and stay until nobody needs it."""
        if not flocks.lock(self._lock, within=_LOCK_WITHIN):
            raise StillBusy("another keeper is at work on this folder: try again")
        self._listen_to_signals()
        self._say(Phase.STARTING)
        try:
            self._bring_up()
        except BaseException:
            postmaster.stop(self._layout, self._child)
            raise
        self._tell({"ready": {"port": self._port, "version": self._version}})
        os.close(1)
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

        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, stop)
        signal.signal(signal.SIGCHLD, lambda _signal, _frame: None)  # only to wake up
        for ignored in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
            # The terminal's Ctrl-C is for the user; the server is needed until the user has finished.
            signal.signal(ignored, signal.SIG_IGN)

    def _pause(self, seconds: float) -> None:
        """Sleep, but wake up for a signal."""
        if select.select([self._wake_read], [], [], seconds)[0]:
            with contextlib.suppress(BlockingIOError):
                os.read(self._wake_read, 512)

    def _is_needed(self) -> bool:
        """Whether anybody still uses the server. Once this says no it stays no: the users' lock is ours."""
        if self._asked_to_stop or not self._still_ours():
            return False
        return not flocks.try_lock(self._users)

    def _still_ours(self) -> bool:
        """Whether the folder is still the one that we keep: somebody may have removed it under us."""
        try:
            return os.stat(self._layout.keeper_lock).st_ino == os.fstat(self._lock).st_ino
        except OSError:
            return False

    def _is_up(self) -> bool:
        if self._child is not None:
            return self._child.poll() is None
        return flocks.is_held(self._layout.server_lock) and postmaster.find(self._layout) is not None

    def _bring_up(self) -> None:
        """Adopt the server that runs, or make what is missing and start it."""
        adopted = self._adopt()
        if adopted:
            return
        lock = self._take_server_lock()
        major = cluster.data_major(self._layout)
        self._choose(major)
        assert self._binaries is not None
        if major is None:
            self._tell(
                {"report": f"creating the database in {self._layout.home} (PostgreSQL {self._version})"}
            )
            cluster.make(
                self._layout, self._binaries, self._account, settings=self._launch.settings, keep_open=lock
            )
        else:
            accounts.take_over(self._layout.cluster, self._account)
            postmaster.clear_stale_pid_file(self._layout)
            if not self._layout.credentials.exists():
                cluster.replace_credentials(self._layout, self._binaries, self._account, keep_open=lock)
        self._start_on_a_port(lock)

    def _adopt(self) -> bool:
        """Take over a server whose keeper was killed."""
        if not flocks.is_held(self._layout.server_lock):
            return False
        found = postmaster.find(self._layout)
        while found and not found.ready and not self._asked_to_stop:
            time.sleep(_POLL)
            found = postmaster.find(self._layout)
        if found is None:
            return False
        before = state.read(self._layout)
        self._port = found.port
        self._version = before.version if before else str(cluster.data_major(self._layout))
        self._choose(cluster.data_major(self._layout))
        self._log("keeper.adopted", pid=found.pid, port=found.port)
        self._say(Phase.READY)
        return True

    def _choose(self, major: int | None) -> None:
        folders = [Path(folder) for folder in self._launch.binaries]
        self._binaries = installations.choose(
            folders, data_major=major, prefer_first=self._launch.prefer_first
        )
        self._version = self._binaries.version
        chosen = accounts.choose(self._layout, run_as=self._launch.run_as)
        if chosen is not None:
            programs = [self._binaries.bin / "postgres", self._binaries.bin / "initdb"]
            chosen = accounts.with_reach(chosen, home=self._layout.home, programs=programs)
        self._account = chosen

    def _take_server_lock(self) -> int:
        lock = flocks.open_lock(self._layout.server_lock)
        if not flocks.lock(lock, within=_LOCK_WITHIN):
            postmaster.kill_orphans(self._layout)
            if not flocks.lock(lock, within=_LOCK_WITHIN):
                raise StillBusy(
                    f"processes of an earlier server still hold {self._layout.home}: end them and start again"
                )
        return lock

    def _start_on_a_port(self, lock: int) -> None:
        for attempt in range(5):
            self._port = postmaster.choose_port(self._layout, asked=self._launch.port)
            cluster.write_configuration(self._layout, port=self._port, settings=self._launch.settings)
            self._tell({"report": f"starting PostgreSQL {self._version} on port {self._port}"})
            try:
                self._start(lock)
            except PortTaken:
                # Somebody took it between our look and the server's: only a port that was asked for is an error.
                if self._launch.port is not None:
                    raise postmaster.port_taken(self._launch.port) from None
                if attempt == 4:
                    raise
                self._layout.kept.unlink(missing_ok=True)
                lock = self._take_server_lock()
                continue
            break
        files.write(self._layout.kept, f"{self._port}\n")
        self._say(Phase.READY)

    def _start(self, lock: int) -> None:
        assert self._binaries is not None
        self._child = postmaster.start(self._layout, self._binaries, self._account, lock=lock)
        ready = postmaster.wait_until_ready(self._layout, self._child, go_on=lambda: not self._asked_to_stop)
        if ready is None:
            raise DidNotStart("the start was interrupted: start again")
        self._log("server.started", pid=self._child.pid, port=self._port, version=self._version)

    def _bring_back(self) -> None:
        """Start the server again after it died, on the same port, until it is up or nobody needs it.

        Never gives up while there are users: a full disk may be emptied, and nobody else would start it.
        """
        self._log("server.died", status=self._child.returncode if self._child else "unknown")
        for attempt in range(sys.maxsize):
            self._say(Phase.RESTARTING)
            pause = _RESTART_PAUSES[min(attempt, len(_RESTART_PAUSES) - 1)]
            until = time.monotonic() + pause
            while time.monotonic() < until:
                if not self._is_needed():
                    return
                self._pause(_POLL)
            if not self._is_needed():
                return
            try:
                postmaster.kill_orphans(self._layout, self._child)
                lock = self._take_server_lock()
                postmaster.clear_stale_pid_file(self._layout)
                self._start(lock)
            except (HeadraceError, OSError) as exc:
                self._log("server.restart_failed", error=str(exc))
                self._say(Phase.RESTARTING, note=str(exc))
                continue
            self._say(Phase.READY)
            return

    def _wind_up(self) -> None:
        began = time.monotonic()
        gone = postmaster.stop(self._layout, self._child)
        self._log("server.stopped", clean=gone, seconds=f"{time.monotonic() - began:.2f}")
        if self._still_ours():
            self._say(Phase.STOPPED)

    def _say(self, phase: Phase, *, note: str = "") -> None:
        # Never a reason to fail: on a full disk the server may well go on.
        with contextlib.suppress(OSError):
            state.write(self._layout, State(phase, self._port, self._version, note))

    def _tell(self, message: dict[str, object]) -> None:
        tell(message)

    def _log(self, event: str, **fields: object) -> None:
        log(event, **fields)


def tell(message: dict[str, object]) -> None:
    """Say something to the process that started us, if it still listens."""
    with contextlib.suppress(OSError):
        os.write(1, (json.dumps(message) + "\n").encode())


def log(event: str, **fields: object) -> None:
    """Write one line to the keeper's log, which is our standard error."""
    words = " ".join(
        f"{key}={value!r}" if isinstance(value, str) else f"{key}={value}" for key, value in fields.items()
    )
    with contextlib.suppress(OSError):
        os.write(2, f"{datetime.now(UTC).isoformat(timespec='milliseconds')} {event} {words}\n".encode())


def main(argv: list[str]) -> NoReturn:
    """Become a process of its own, and keep the server that the first argument describes."""
    if os.fork() != 0:
        os._exit(0)  # so that nobody has a child that it does not know of
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
    except Exception as exc:
        import traceback

        log("keeper.broke", trace=traceback.format_exc())
        tell({"error": pack(DidNotStart(f"the keeper of the embedded PostgreSQL broke: {exc!r}"))})
    os._exit(status)
