"""PostgreSQL's client programs, psql and pg_dump: found in the wheel, in the configured folder or in the PATH."""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

from headrace.embedded_postgres import binaries
from headrace.embedded_postgres.errors import BinariesMissing


def find_for(url: str, name: str, configured: Path | None) -> Path:
    """The program of this name that fits the server best: of its own major version, else the newest."""
    status, version, _ = read(find("psql", configured), url, ["-XAtc", "SHOW server_version_num"])
    return find(name, configured, major=int(version) // 10_000 if status == 0 else None)


def find(name: str, configured: Path | None, *, major: int | None = None) -> Path:
    """One of this major version, else the newest: a newer one talks to older servers, and not the other way round."""
    programs = [(version, program) for program in _candidates(name, configured) if (version := _version_of(program))]
    if not programs:
        raise BinariesMissing(
            f"{name} is not here: install PostgreSQL's client programs, or name their folder in"
            " HEADRACE_POSTGRES_BINARIES"
        )
    return max(programs, key=lambda each: (each[0][0] == major, each))[1]


def _candidates(name: str, configured: Path | None) -> Iterator[Path]:
    folders: list[Path] = []
    try:
        folders += binaries.list_folders(configured)
    except BinariesMissing:
        if configured is not None:
            folders += [configured, configured / "bin"]
    # Debian's programs in the PATH choose a version by themselves: the real ones lie here.
    for pattern in binaries.SYSTEM_FOLDERS:
        folders += Path("/").glob(pattern.lstrip("/"))
    for folder in folders:
        if (folder / name).is_file():
            yield folder / name
    if in_path := shutil.which(name):
        yield Path(in_path)


def _version_of(program: Path) -> tuple[int, ...]:
    try:
        ran = subprocess.run([program, "-V"], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    except OSError:
        return ()
    match = re.search(r"\) (\d+)(?:\.(\d+))?", ran.stdout)
    return tuple(int(part or 0) for part in match.groups()) if match else ()


def _without_password(url: str) -> tuple[str, dict[str, str]]:
    """The address for a command line, which everybody on the machine can read, and the environment with the rest."""
    parts = urlsplit(url)
    variables = {**os.environ, "PGAPPNAME": "headrace database"}
    if parts.password is not None:
        host = parts.netloc.rpartition("@")[2]
        variables["PGPASSWORD"] = unquote(parts.password)
        parts = parts._replace(netloc=f"{parts.username or ''}@{host}")
    return urlunsplit(parts), variables


def run(program: Path, url: str, words: Sequence[str]) -> int:
    """Run it in this terminal, and give its exit status. Ctrl-C is the program's."""
    address, variables = _without_password(url)
    former = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return subprocess.run(
            [program, f"--dbname={address}", *words],
            env=variables,
            check=False,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        ).returncode
    finally:
        signal.signal(signal.SIGINT, former)


def read(program: Path, url: str, words: Sequence[str]) -> tuple[int, str, str]:
    """Run it to its end; gives its exit status and its output."""
    address, variables = _without_password(url)
    ran = subprocess.run(
        [program, f"--dbname={address}", *words],
        env=variables,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    return ran.returncode, ran.stdout, ran.stderr
