"""Attaching to the embedded server and letting go of it."""

import contextlib
import json
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Self

from headrace.embedded_postgres import binaries, cluster, files, flocks, postmaster, state
from headrace.embedded_postgres.errors import DidNotStart, RunsDifferently, StillBusy, WasKilled, unpack
from headrace.embedded_postgres.model import (
    APP,
    DATABASE,
    OWNER,
    SUPERUSER,
    EmbeddedConfig,
    Launch,
    Layout,
    Phase,
    State,
)
from headrace.errors import HeadraceError

# Recovery after a crash may take minutes on a large database; an error comes as soon as there is one.
_START_WITHIN = 600.0
_STOP_WITHIN = 60.0
_ANSWER_WITHIN = 15.0
_ATTEMPTS = 5
_PAUSE_SECONDS = 0.01
_WATCH_EVERY = 1.0
_LOG_LIMIT = 1_000_000

Report = Callable[[str], None]


def _silent(_line: str) -> None:
    pass


class Server:
    """A running server that this process is attached to; it runs at least until ``close``.

    A context manager. The addresses stay valid while attached, also over a crash of the server.
    """

    def __init__(self, config: EmbeddedConfig, layout: Layout, current: State, registration: int) -> None:
        self.port = current.port
        self.version = current.version
        self.socket_dir = layout.socket_dir()
        self._layout = layout
        self._words = cluster.read_credentials(layout)
        self._registration = registration
        self._process = os.getpid()
        self._closing = threading.Event()
        self._once = threading.Lock()
        self._watcher = threading.Thread(
            target=_watch, args=(config, layout, registration, self._closing), name="headrace-embedded", daemon=True
        )
        self._watcher.start()

    @property
    def app_url(self) -> str:
        """The address for everything that runs the product."""
        return self._url(APP, self._words.app, DATABASE)

    @property
    def owner_url(self) -> str:
        """The address for migrations: its role owns the database."""
        return self._url(OWNER, self._words.owner, DATABASE)

    @property
    def superuser_url(self) -> str:
        """The address for what only a superuser may do, such as making databases for tests."""
        return self._url(SUPERUSER, self._words.superuser, "postgres")

    @property
    def url_for_superuser(self) -> str:
        """The same in the product's own database."""
        return self._url(SUPERUSER, self._words.superuser, DATABASE)

    def _url(self, role: str, password: str, database: str) -> str:
        return f"postgresql://{role}:{password}@127.0.0.1:{self.port}/{database}"

    def close(self) -> None:
        """Detach from the server; the last user waits until all its processes have ended.

        Idempotent. Interrupted, it leaves the rest to the keeper, which stops the server anyway. Raises
        StillBusy when the server does not stop in time.
        """
        with self._once:
            if self._closing.is_set():
                return
            self._closing.set()
        try:
            # A forked child shares its parent's registration, and lets go of its share only.
            if os.getpid() == self._process:
                self._watcher.join()
                if _is_there(self._layout, self._registration):
                    _leave(self._layout, self._registration)
        finally:
            os.close(self._registration)

    detach = close

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def attach(config: EmbeddedConfig, *, report: Report = _silent) -> Server:
    """Attach to the server of the folder: make it if it is not there, start it if it does not run.

    Any number of processes may do so at once; each counts as a user until it closes or ends, however it ends.
    ``report`` receives a line about each step that takes time. Raises the errors of ``errors.py`` beside this file.
    """
    cluster.check_settings(config.settings)
    layout = Layout(config.data_dir.absolute().resolve())
    files.make_home(layout.home)
    with files.naming_the_folder(layout.home), _turn(layout, report):
        registration = _register(layout)
        try:
            current = _ensure_running(config, layout, report)
            if config.port is not None and config.port != current.port:
                raise RunsDifferently(
                    f"the embedded PostgreSQL already runs on port {current.port}, not {config.port}: stop the programs"
                    " that use it, or leave the port out",
                    port=current.port,
                )
            return Server(config, layout, current, registration)
        except BaseException:
            os.close(registration)
            raise


def is_made(config: EmbeddedConfig) -> bool:
    """Whether the folder has a database; if not, ``attach`` makes one."""
    layout = Layout(config.data_dir.absolute().resolve())
    with files.naming_the_folder(layout.home):
        return layout.cluster.exists()


def is_running(config: EmbeddedConfig) -> bool:
    """Whether the folder's server runs, for whomever."""
    layout = Layout(config.data_dir.absolute().resolve())
    return layout.keeper_lock.exists() and flocks.is_held(layout.keeper_lock)


@contextlib.contextmanager
def _turn(layout: Layout, report: Report = _silent) -> Iterator[None]:
    """Wait for our turn: attaching and detaching come one after the other."""
    lock = flocks.open_lock(layout.start_lock)
    try:
        if not flocks.lock(lock, within=0.5):
            report("waiting for another process that starts or stops PostgreSQL")
            if not flocks.lock(lock, within=_START_WITHIN):
                raise StillBusy(f"another process has been starting the server in {layout.home} for too long: end it")
        yield
    finally:
        os.close(lock)


def _register(layout: Layout) -> int:
    """Count as a user from now on; waits while a keeper stops the server for want of users."""
    registration = flocks.open_lock(layout.users_lock)
    if not flocks.lock(registration, shared=True, within=_STOP_WITHIN):
        os.close(registration)
        raise StillBusy(f"the server in {layout.home} takes too long to stop: see {layout.keeper_log}")
    return registration


def _is_there(layout: Layout, registration: int) -> bool:
    """Whether the folder is still the one we attached to. One that was removed has no server: its keeper ends it."""
    try:
        return layout.users_lock.stat().st_ino == os.fstat(registration).st_ino
    except OSError:
        return False


def _leave(layout: Layout, registration: int) -> None:
    """Count as a user no more, and wait for the end if we were the last."""
    with _turn(layout):
        # An exclusive lock means that we were the last. Otherwise it is shared by other users, or held by a stopping
        # keeper, and a test from the other side tells which.
        last = flocks.try_lock(registration)
        stopping = not last and not flocks.try_lock(registration, shared=True)
        flocks.unlock(registration)
        if not (last or stopping):
            return
        if not flocks.wait_until_free(layout.keeper_lock, within=_STOP_WITHIN):
            raise StillBusy(f"the server in {layout.home} takes too long to stop: see {layout.keeper_log}")
        # Without a keeper (killed a moment ago) only we can do it.
        if not postmaster.stop(layout):
            raise StillBusy(f"processes of the server in {layout.home} do not end: see {layout.startup_log}")


def _ensure_running(config: EmbeddedConfig, layout: Layout, report: Report) -> State:
    """Wait for the server to take connections; without a keeper, start one."""
    deadline = time.monotonic() + _START_WITHIN
    unheard = 0.0
    attempts = _ATTEMPTS
    while time.monotonic() < deadline:
        if not flocks.is_held(layout.keeper_lock):
            try:
                return _start_keeper(config, layout, report)
            except WasKilled:
                attempts -= 1
                if attempts == 0:
                    raise
                continue
        current = state.read(layout)
        if current is None or current.phase is not Phase.READY:
            unheard = 0.0
        elif postmaster.answers(current.port):
            return current
        else:
            unheard = unheard or time.monotonic()
            if time.monotonic() - unheard > _ANSWER_WITHIN:
                raise RunsDifferently(
                    f"the server of {layout.home} runs, but port {current.port} does not answer from here: if it runs"
                    " in another container, stop it there or name another data folder",
                    port=current.port,
                )
        time.sleep(_PAUSE_SECONDS)
    current = state.read(layout)
    raise DidNotStart(
        f"PostgreSQL has not come back for too long{': ' + current.note if current and current.note else ''}: see"
        f" {layout.keeper_log}"
    )


def _start_keeper(config: EmbeddedConfig, layout: Layout, report: Report) -> State:
    """Start a keeper and listen to it until the server is up or it says why not."""
    launch = Launch(
        home=str(layout.home),
        binaries=[str(folder) for folder in binaries.list_folders(config.binaries)],
        prefer_first=config.binaries is not None,
        port=config.port,
        run_as=config.run_as,
        settings=dict(config.settings),
    )
    reading, writing = os.pipe()
    try:
        log = _open_log(layout)
        try:
            # -I and -S: neither the caller's environment nor its site-packages have a say in the keeper.
            subprocess.run(
                [
                    sys.executable,
                    "-I",
                    "-S",
                    Path(__file__).with_name("__main__.py"),
                    json.dumps(asdict(launch)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=writing,
                stderr=log,
                env=cluster.environment(),
                start_new_session=True,
                check=False,
            )
        finally:
            os.close(log)
            os.close(writing)
        return _listen(reading, layout, report)
    finally:
        os.close(reading)


def _open_log(layout: Layout) -> int:
    """Open the keeper's log; a long one is rotated, so that there are never more than two files of it."""
    with contextlib.suppress(FileNotFoundError):
        if layout.keeper_log.stat().st_size > _LOG_LIMIT:
            layout.keeper_log.rename(layout.keeper_log.with_suffix(".log.1"))
    return files.open_own(layout.keeper_log, os.O_WRONLY | os.O_APPEND)


def _listen(reading: int, layout: Layout, report: Report) -> State:
    """Listen to the keeper's lines until it says that the server is up; after an error, until it has ended."""
    deadline = time.monotonic() + _START_WITHIN
    heard = b""
    failed: HeadraceError | None = None
    poll = select.poll()  # select() would break in a process with more than a thousand open files
    poll.register(reading, select.POLLIN)
    while (left := deadline - time.monotonic()) > 0:
        if not poll.poll(left * 1000):
            break
        more = os.read(reading, 65_536)
        if not more:
            if failed:
                raise failed
            last = " | ".join(files.tail(layout.keeper_log, lines=3))
            raise WasKilled(f"the keeper of the embedded PostgreSQL ended ({last}): see {layout.keeper_log}")
        heard += more
        *lines, heard = heard.split(b"\n")
        for line in lines:
            message = json.loads(line)
            if "report" in message:
                report(message["report"])
            if "error" in message:
                failed = unpack(message["error"])
            if "overtaken" in message:
                failed = WasKilled("another keeper was faster: start again")
            if "ready" in message:
                return State(Phase.READY, message["ready"]["port"], message["ready"]["version"])
    raise DidNotStart(f"PostgreSQL was not ready after {_START_WITHIN:.0f} seconds: see {layout.keeper_log}")


def _watch(config: EmbeddedConfig, layout: Layout, registration: int, closing: threading.Event) -> None:
    """Start a new keeper when ours was killed: without one the server would outlive its users.

    Runs in a thread of each user. A keeper that was asked to stop leaves a note that it meant it.
    """
    while not closing.wait(_WATCH_EVERY):
        with contextlib.suppress(Exception):
            if flocks.is_held(layout.keeper_lock) or not _is_there(layout, registration):
                continue
            current = state.read(layout)
            if current is None or current.phase is Phase.STOPPED:
                continue
            lock = flocks.open_lock(layout.start_lock)
            try:
                # Another user holds the lock: that one restarts the keeper.
                if flocks.try_lock(lock) and not flocks.is_held(layout.keeper_lock):
                    _start_keeper(config, layout, _silent)
            finally:
                os.close(lock)
