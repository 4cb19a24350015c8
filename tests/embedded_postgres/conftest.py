"""Folders for embedded servers, and users of them as processes that can be killed."""

import asyncio
import json
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import asyncpg
import pytest

from headrace.embedded_postgres import EmbeddedConfig, flocks, processes
from headrace.embedded_postgres import account as accounts
from headrace.embedded_postgres.account import Account
from headrace.embedded_postgres.errors import PrivilegesMissing
from headrace.embedded_postgres.model import Layout
from tests.clusters import copy_cluster, empty_cluster
from tests.memory import room

if sys.platform != "linux":
    collect_ignore_glob = ["test_*.py"]  # they look into /proc

# Nothing in these tests must survive a power cut.
QUICK = {"fsync": "off", "shared_buffers": "16MB", "max_connections": "30"}
IS_ROOT = os.geteuid() == 0
needs_root = pytest.mark.skipif(not IS_ROOT, reason="only root can hand the server over to another account")


class User:
    """A process that uses the server of a folder."""

    def __init__(self, home: Path, *, account: Account | None = None, **asked: object) -> None:
        asked = {"data_dir": str(home), "settings": QUICK, **asked}
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("user.py")), json.dumps(asked)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd="/",
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            preexec_fn=accounts.become(account),
        )
        self._said: dict[str, Any] | None = None

    @property
    def said(self) -> dict[str, Any]:
        """What the user said after attaching; waits for it."""
        if self._said is None:
            assert self.process.stdout is not None
            self._said = json.loads(self.process.stdout.readline())
        return self._said

    def close(self) -> None:
        self.process.communicate("close\n", timeout=60)
        assert self.process.returncode == 0

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=60)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


@pytest.fixture
def base() -> Iterator[Path]:
    """A folder that everyone may enter, removed at the end; its path is short, as sockets need it."""
    folder = Path(tempfile.mkdtemp(prefix="hr-", dir=room())).resolve()
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def home(base: Path) -> Iterator[Path]:
    """A data folder that is not there yet. Whatever the test did, nothing may run in it afterwards."""
    home = base / "postgres"
    yield home
    layout = Layout(home)
    left = None if is_over(layout, within=60) else running(layout)
    end(layout)
    assert left is None, f"still running: {left}"


@pytest.fixture
def fresh(home: Path) -> EmbeddedConfig:
    """A server that was never started."""
    return EmbeddedConfig(home, settings=QUICK)


@pytest.fixture
def made(home: Path) -> None:
    """The data folder is there already, from an earlier run."""
    copy_cluster(empty_cluster(), home)


@pytest.fixture
def config(made: None, fresh: EmbeddedConfig) -> EmbeddedConfig:
    """A server that ran before."""
    return fresh


@pytest.fixture
def layout(home: Path) -> Layout:
    return Layout(home)


@pytest.fixture
def user(home: Path) -> Iterator[Callable[..., User]]:
    """Makes users of the folder, and kills those that are left."""
    made: list[User] = []

    def make(**asked: Any) -> User:
        made.append(User(home, **asked))
        return made[-1]

    yield make
    for each in made:
        each.kill()


@pytest.fixture(scope="session")
def ordinary() -> Account | None:
    """An ordinary account for root to start users as; None for us when we are no root.

    Where it cannot reach this Python it may read and search everywhere, which does not let it write anywhere.
    """
    if not IS_ROOT:
        return None
    entry = pwd.getpwnam("nobody")
    nobody = Account(entry.pw_uid, entry.pw_gid, entry.pw_name)
    try:
        return accounts.with_reach(nobody, home=Path(__file__).parent, programs=[Path(sys.executable)])
    except PrivilegesMissing:
        pytest.skip("the account nobody cannot reach this checkout")


def ask(url: str, sql: str, *, within: float = 60) -> Any:
    """Run one statement and give its first value; tries again while the server is away."""

    async def once() -> Any:
        connection = await asyncpg.connect(url, timeout=5)
        try:
            return await connection.fetchval(sql)
        finally:
            await connection.close()

    deadline = time.monotonic() + within
    while True:
        try:
            return asyncio.run(once())
        except (OSError, asyncpg.CannotConnectNowError, asyncpg.ConnectionDoesNotExistError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def reserved_port() -> int:
    """A free port that the system gives to nobody who asks for any: it stays free while its server is down."""
    given_from = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    lowest = min(10_000, given_from - 1)
    while True:
        port = random.randint(lowest, given_from - 1)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


def running(layout: Layout) -> list[int]:
    """The ids of the cluster's processes and of its keeper."""
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [pid for pid in pids if processes.is_ours(layout, pid) or is_keeper(layout, pid)]


def is_keeper(layout: Layout, pid: int) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return b"-S" in words and any(f'"home": "{layout.home}"'.encode() in word for word in words)


def keeper_of(layout: Layout) -> int:
    found: list[int] = []

    def is_one() -> bool:
        # A child that it has just forked has its command line, too, until it becomes another program.
        found[:] = [pid for pid in running(layout) if is_keeper(layout, pid)]
        return len(found) == 1

    assert eventually(is_one), found
    return found[0]


def postmaster_of(layout: Layout) -> int:
    return int((layout.cluster / "postmaster.pid").read_text().splitlines()[0])


def eventually(condition: Callable[[], object], *, within: float = 60) -> bool:
    """Wait for the condition; False when it takes too long."""
    deadline = time.monotonic() + within
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def is_over(layout: Layout, *, within: float) -> bool:
    """Wait until nothing of the server runs."""
    return eventually(lambda: not running(layout), within=within)


def end(layout: Layout) -> None:
    for pid in running(layout):
        with suppress(ProcessLookupError):  # it went by itself, as its master did
            os.kill(pid, signal.SIGKILL)
    is_over(layout, within=60)
    if layout.home.exists():
        flocks.wait_until_free(layout.server_lock, within=60)
