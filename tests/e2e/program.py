"""``headrace …`` as real processes, as a person in a terminal or a supervisor starts and ends them.

Each is the leader of a process group of its own, and signals go to processes that were started here and to no others.
"""

import os
import re
import signal
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx2
import psutil

from headrace.embedded_postgres.account import Account, become
from headrace.embedded_postgres.model import Layout

# Real Argon2id, as cheap as it gets, for tests that are not about passwords.
CHEAP = {"HEADRACE_ARGON2_TIME_COST": "1", "HEADRACE_ARGON2_MEMORY": "64KiB", "HEADRACE_ARGON2_PARALLELISM": "1"}
SECRET_KEY = {"HEADRACE_SECRET_KEY": "a secret of the tests, 32 characters or more"}
HEADRACE = (sys.executable, "-m", "headrace")

_GREETING = re.compile(r"^  API       (?P<url>http://\S+)/v1", re.MULTILINE)
# As text, and as a line of JSON.
_LISTENING = re.compile(r'^(?:\{"message": ")?(?:API|Headrace is running) at (?P<url>http://\S+)', re.MULTILINE)
_PASSWORD = re.compile(r"as (?P<name>\S+) with the password (?P<password>\S+) \(in \S+ until used\)")


def environment(settings: Mapping[str, str] | None = None) -> dict[str, str]:
    """Our environment without the settings of whoever runs the tests, and with these."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("HEADRACE_")}
    return {**ours, **(settings or {})}


def eventually(condition: Callable[[], object], *, within: float = 60) -> bool:
    """Wait for the condition; False when it takes too long."""
    deadline = time.monotonic() + within
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def patience(seconds: float) -> float:
    """What may be asked of a machine that does nothing else, stretched by what it has to do besides."""
    return seconds * max(1.0, 2 * os.getloadavg()[0] / (os.cpu_count() or 1))


@dataclass(frozen=True, slots=True)
class Done:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def complaint(self) -> str:
        """The one line that says what is wrong; there must be exactly one, and nothing that only we understand."""
        assert "Traceback" not in self.out + self.err, self.err
        assert "this should not have happened" not in self.err, self.err
        lines = [line for line in self.err.splitlines() if not line.startswith("· ")]
        assert len(lines) == 1, self.err
        assert lines[0].startswith("headrace: "), self.err
        return lines[0].removeprefix("headrace: ")


def run_program(
    *words: str, folder: Path, settings: Mapping[str, str] | None = None, stdin: str = "", within: float = 60
) -> Done:
    """Run a command to its end."""
    ran = subprocess.run(
        [*HEADRACE, *words],
        cwd=folder,
        env=environment(settings),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=within,
        check=False,
    )
    return Done(ran.returncode, ran.stdout, ran.stderr)


class Program:
    """A command that runs until it is stopped. ``variables`` are its whole environment, where ours is no good."""

    def __init__(
        self,
        *words: str,
        folder: Path,
        settings: Mapping[str, str] | None = None,
        variables: Mapping[str, str] | None = None,
        account: Account | None = None,
        command: Sequence[str] = HEADRACE,
    ) -> None:
        self.folder = folder
        self.began = time.monotonic()
        self._out, self._err = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        self.process = subprocess.Popen(
            [*command, *words],
            cwd=folder,
            env=environment(settings) if variables is None else variables,
            stdin=subprocess.DEVNULL,
            stdout=self._out,
            stderr=self._err,
            start_new_session=True,
            preexec_fn=become(account),
        )

    @property
    def out(self) -> str:
        return os.pread(self._out.fileno(), 1 << 24, 0).decode()

    @property
    def err(self) -> str:
        return os.pread(self._err.fileno(), 1 << 24, 0).decode()

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    @property
    def process_info(self) -> psutil.Process:
        return psutil.Process(self.process.pid)

    def url(self, *, within: float = 60) -> str:
        """Where it says that it listens; waits for it to say so."""

        def said() -> re.Match[str] | None:
            return _GREETING.search(self.out) or _LISTENING.search(self.err)

        eventually(lambda: said() or not self.running, within=within)
        found = said()
        assert found is not None, f"{self.process.returncode}: {self.out}{self.err}"
        return found["url"]

    def login(self) -> tuple[str, str]:
        """The name and the password that it greets with."""
        self.url()
        found = _PASSWORD.search(self.out)
        assert found is not None, self.out
        return found["name"], found["password"]

    def until_ready(self, *, within: float = 60) -> float:
        """Wait until it can be sent requests; gives the seconds since it was started."""
        url = self.url(within=within)
        assert eventually(lambda: is_ready(url) or not self.running, within=within), self.err
        assert self.running, self.err
        return time.monotonic() - self.began

    def press_ctrl_c(self) -> None:
        """What a terminal does: SIGINT for the whole group."""
        if self.running:
            os.killpg(self.process.pid, signal.SIGINT)

    def stop(self, how: signal.Signals = signal.SIGINT, *, within: float = 60) -> int:
        """Stop it in order and give its exit code."""
        if how is signal.SIGINT:
            self.press_ctrl_c()
        else:
            self.process.send_signal(how)
        return self.process.wait(within)

    def kill(self) -> None:
        """End the one process at once, as the kernel does when memory runs out."""
        self.process.kill()
        self.process.wait(60)

    def close(self) -> None:
        if self.running:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(60)
        self._out.close()
        self._err.close()


# Asked again and again, and never by TLS: to read all certificates first takes longer than the answer.
_NO_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def is_ready(url: str) -> bool:
    try:
        return httpx2.get(f"{url}/readyz", timeout=5, verify=_NO_CERTIFICATES).status_code == 200
    except httpx2.TransportError:
        return False


def log_in(url: str, name: str, password: str) -> httpx2.Response:
    login = {"username": name, "password": password}
    return httpx2.post(f"{url}/v1/auth/login", json=login, timeout=60, verify=_NO_CERTIFICATES)


def layout_of(folder: Path) -> Layout:
    """The embedded server of the `headrace up` in this folder."""
    return Layout((folder / ".headrace").resolve())


def running_in(folder: Path) -> list[psutil.Process]:
    """The processes of the folder's PostgreSQL and its keeper, found by what their command lines say."""
    layout = layout_of(folder)
    return [each for each in psutil.process_iter() if _speaks_of(each, layout.name, f"{layout.home}")]


def _speaks_of(process: psutil.Process, *words: str) -> bool:
    try:
        line = " ".join(process.cmdline())
    except psutil.Error:
        return False
    return any(word in line for word in words)


def is_over(process: psutil.Process) -> bool:
    """Whether it ended, be it that nobody has reaped it: a container's first process may not."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def is_deserted(folder: Path, *, within: float = 60) -> bool:
    """Wait until nothing of the folder's server runs."""
    return eventually(lambda: not running_in(folder), within=within)


def postmaster_of(folder: Path) -> psutil.Process:
    pid = int((layout_of(folder).cluster / "postmaster.pid").read_text().splitlines()[0])
    found = psutil.Process(pid)
    assert _speaks_of(found, layout_of(folder).name), "not ours to kill"
    return found
