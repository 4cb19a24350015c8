"""Optional libraries, the package's extras, imported on first use; and imports without garbage collection."""

import gc
import importlib
import importlib.util
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from headrace.errors import Unavailable

_CLONE = Path(__file__).parent.parent.parent
_BY_SETUP = ("archive", "removal")

NEEDED_BY = {
    "server": "the API, `headrace up`, webhooks, passwords, files in a bucket, metrics on a port",
    "embedded": "PostgreSQL of `headrace up`",
    "files": "file type detection and previews",
    "payments": "WeChat Pay",
    "removal": "`headrace detect` and `headrace remove`, and workers for watermark removal",
    "archive": "archives of old months",
    "nats": "events to NATS JetStream",
    "aws": "credentials of AWS profiles and roles for a bucket",
}
# The modules of the extra `server`; the other extras are loaded by name where they are needed.
_SERVER = frozenset(
    {
        "argon2",
        "cryptography",
        "fastapi",
        "multipart",
        "obstore",
        "prometheus_client",
        "standardwebhooks",
        "starlette",
        "uvicorn",
    }
)


class ExtraMissing(Unavailable):
    """This needs libraries that are not installed."""

    code = "extra_missing"


def load(name: str, *, extra: str) -> Any:
    """Import the module, or raise an error with the install command. Untyped: some have no types."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as exc:
        raise _missing(name, extra) from exc


def explain(error: ModuleNotFoundError) -> ExtraMissing | None:
    """The extra that has the missing module; None for a module of another program."""
    name = (error.name or "").partition(".")[0]
    return _missing(name, "server") if name in _SERVER else None


def is_installed(name: str) -> bool:
    """Whether the module can be imported."""
    return importlib.util.find_spec(name) is not None


def remedy(extra: str) -> str:
    """A command that installs an extra's libraries; Headrace itself is on no package index."""
    if extra in _BY_SETUP and (_CLONE / "scripts" / "setup").is_file():
        return f"`scripts/setup {extra}`"
    import importlib.metadata  # slow to import, and rarely needed

    try:
        asked = importlib.metadata.requires("headrace") or []
    except importlib.metadata.PackageNotFoundError:
        asked = []
    mark = re.compile(rf"""\s*;.*\bextra\s*==\s*['"]{extra}['"]""")
    wanted = [mark.split(line)[0] for line in asked if mark.search(line)]
    return f"`pip install {shlex.join(wanted or [f'headrace[{extra}]'])}`"


def _missing(name: str, extra: str) -> ExtraMissing:
    return ExtraMissing(
        f"This needs {name.partition('.')[0]} of the extra `{extra}` ({NEEDED_BY[extra]}), which is not installed: "
        f"run {remedy(extra)}."
    )


@contextmanager
def gc_paused_while_importing() -> Iterator[None]:
    """Loaded modules stay until exit: garbage collection among them takes a third of a command's time, while they are
    loaded and when the process ends."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        _freeze_once()
        if was_enabled:
            gc.enable()


@cache
def _freeze_once() -> None:
    gc.freeze()
