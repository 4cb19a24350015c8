"""LibreOffice, which turns presentations into other kinds of files.

LibreOffice is a large program that reads an untrusted file. It gets a folder with a copy of that file, and nothing
else: no other file, no network, no process, and limits of its own (``tasks.isolation.foreign``).
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from headrace.tasks.isolation.foreign import CANNOT_CONFINE

_TIMEOUT_S = 180
_PROGRAMS = ("soffice", "libreoffice")
_SEARCH_PATH = "/usr/bin:/usr/local/bin:/opt/libreoffice/program"
_RESTART_CODE = 81  # what LibreOffice says after it has made its profile; its launcher, left out here, obeys
# Hidden slides are slides: the pages have the slides' numbers.
_EXPORTS = {"pdf": 'pdf:impress_pdf_Export:{"ExportHiddenSlides":{"type":"boolean","value":"true"}}'}


class OfficeMissing(Exception):
    """LibreOffice is not installed."""


class OfficeUnconfined(OfficeMissing):
    """It is installed, but this system cannot keep it from other files and the network: it is not run."""


class OfficeFailed(Exception):
    """It could not convert the file."""


@contextmanager
def converted(source: str, ending: str, *, kind: str | None = None, within: str | None = None) -> Iterator[Path]:
    """The presentation in another format, as a temporary file; ``within`` is its folder,
    ``kind`` its kind where its name does not show it.

    Raises ``OfficeMissing`` and ``OfficeFailed``.
    """
    program = _program()
    with TemporaryDirectory(prefix="headrace-", dir=within) as folder:
        copy = Path(folder, f"given.{kind or Path(source).suffix[1:] or 'ppt'}")
        shutil.copyfile(source, copy)
        try:
            for _ in range(2):
                ended = _run(program, copy, ending, folder)
                if ended.returncode != _RESTART_CODE:
                    break
        except (subprocess.SubprocessError, OSError) as exc:
            raise OfficeFailed(f"could not be converted by LibreOffice: {type(exc).__name__}.") from exc
        if ended.returncode == CANNOT_CONFINE:
            raise OfficeUnconfined
        result = copy.with_suffix(f".{ending}")
        if result.is_symlink() or not result.is_file() or result.stat().st_size == 0:
            raise OfficeFailed("is nothing that LibreOffice can convert.")
        yield result


def _program() -> str:
    """LibreOffice itself: the launcher beside it wants its socket in a folder that everybody shares."""
    program = next((path for name in _PROGRAMS if (path := shutil.which(name, path=_SEARCH_PATH))), None)
    if program is None:
        raise OfficeMissing
    itself = Path(program).resolve().with_name("soffice.bin")
    return str(itself) if itself.is_file() else program


def _run(program: str, copy: Path, ending: str, folder: str) -> "subprocess.CompletedProcess[bytes]":
    # A profile of its own: the user's may be open in a window, and is private.
    command = [
        sys.executable, "-P", "-m", "headrace.tasks.isolation.foreign", folder,
        program, f"-env:UserInstallation={Path(folder, 'profile').as_uri()}", "--headless", "--norestore",
        "--convert-to", _EXPORTS.get(ending, ending), "--outdir", folder, str(copy),
    ]  # fmt: skip
    # Its socket lies there, too: by a short name, because names of sockets end after 108 characters.
    environment = {"HOME": folder, "TMPDIR": folder, "OSL_SOCKET_PATH": ".", "PATH": _SEARCH_PATH}
    if "PYTHONPATH" in os.environ:
        environment["PYTHONPATH"] = os.environ["PYTHONPATH"]
    return subprocess.run(  # noqa: S603
        command, timeout=_TIMEOUT_S, capture_output=True, cwd=folder, env=environment, check=False
    )
