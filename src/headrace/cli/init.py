"""``headrace init``: a small project of one's own, typed and tested, to begin with."""

import keyword
import re
import sys
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from headrace import __version__
from headrace.cli.output import out
from headrace.errors import Conflict, Invalid

# Where each file of the starter goes.
_FILES = {
    "pyproject.toml": "pyproject.toml",
    "README.md": "README.md",
    "gitignore": ".gitignore",
    "conftest.py": "conftest.py",
    "__init__.py": "{package}/__init__.py",
    "tasks.py": "{package}/tasks.py",
    "test_tasks.py": "tests/test_tasks.py",
}
_NAME = re.compile(r"[a-z][a-z0-9_-]*")


class AlreadyThere(Conflict):
    """There are files in the way: name another folder."""

    code = "already_there"


Folder = Annotated[Path, typer.Argument(metavar="[DIR]", help="Where; made if need be. This folder by default.")]
Name = Annotated[str | None, typer.Option(help="What the project is called; by default as the folder is.")]


def init(folder: Folder = Path(), name: Name = None) -> None:
    """Write a small project of your own: a typed task, its tests, and how to run both. Overwrites nothing."""
    called = name or folder.resolve().name.lower()
    package = _package(called)
    targets = {source: folder / place.format(package=package) for source, place in _FILES.items()}
    if there := [str(target) for target in targets.values() if target.exists()]:
        raise AlreadyThere(f"{', '.join(there)} would be overwritten: name a folder without it, `headrace init DIR`.")
    try:
        for source, target in targets.items():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(_filled(source, called, package))
    except OSError as exc:
        raise Invalid(f"{exc.filename or folder} cannot be written: {exc.strerror}.") from exc
    go = "" if folder.resolve() == Path.cwd() else f"cd {folder} && "
    out.print("\n".join(str(target) for target in targets.values()))
    out.print(f"\nNow: {go}headrace up --app {package}.tasks:registry")


def _package(name: str) -> str:
    package = name.replace("-", "_")
    if not _NAME.fullmatch(name) or keyword.iskeyword(package):
        raise Invalid(f"{name!r} is no name for a project: give one of letters, digits, - and _ with --name.")
    if package in sys.stdlib_module_names or package in ("headrace", "tests"):
        raise Invalid(f"A module {package} would hide another of that name: give the project another with --name.")
    return package


def _filled(source: str, name: str, package: str) -> str:
    text = (files("headrace.cli") / "starter" / f"{source}.txt").read_text()
    for word, value in {"name": name, "package": package, "version": __version__}.items():
        text = text.replace(f"{{{word}}}", value)
    return text
