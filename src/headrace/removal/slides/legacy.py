"""Presentations of the old kind (.ppt), which LibreOffice turns into the new kind and back.

LibreOffice is a large program that reads a stranger's file. It is given a folder with a copy of that file, and nothing
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

from headrace.removal.errors import ConverterMissing, DocumentUnreadable
from headrace.tasks.isolation.foreign import CANNOT_CONFINE

_SECONDS = 180
_PROGRAMS = ("soffice", "libreoffice")
_PLACES = "/usr/bin:/usr/local/bin:/opt/libreoffice/program"
_BEGIN_AGAIN = 81  # what LibreOffice says after it has made its profile; its launcher, left out here, obeys


@contextmanager
def converted(source: str, ending: str, *, within: str | None = None) -> Iterator[Path]:
    """The presentation in another format, as a file that vanishes afterwards; ``within`` is where it lies meanwhile.

    Raises ``ConverterMissing`` and ``DocumentUnreadable``.
    """
    program = _program()
    with TemporaryDirectory(prefix="headrace-", dir=within) as folder:
        given = Path(folder, f"given{Path(source).suffix or '.ppt'}")
        shutil.copyfile(source, given)
        try:
            for _ in range(2):
                ended = _run(program, given, ending, folder)
                if ended.returncode != _BEGIN_AGAIN:
                    break
        except (subprocess.SubprocessError, OSError) as exc:
            raise DocumentUnreadable(f"{source} could not be converted by LibreOffice: {type(exc).__name__}.") from exc
        if ended.returncode == CANNOT_CONFINE:
            raise ConverterMissing(
                "Old slides (.ppt) need LibreOffice, and this system cannot keep it from other files and the network "
                "(that takes Landlock: Linux 5.19 or later): save them as .pptx."
            )
        result = given.with_suffix(f".{ending}")
        if result.is_symlink() or not result.is_file() or result.stat().st_size == 0:
            raise DocumentUnreadable(f"{source} is nothing that LibreOffice can convert.")
        yield result


def _program() -> str:
    """LibreOffice itself: the launcher beside it wants its socket in a folder that everybody shares."""
    found = next((path for name in _PROGRAMS if (path := shutil.which(name, path=_PLACES))), None)
    if found is None:
        raise ConverterMissing
    itself = Path(found).resolve().with_name("soffice.bin")
    return str(itself) if itself.is_file() else found


def _run(program: str, given: Path, ending: str, folder: str) -> "subprocess.CompletedProcess[bytes]":
    # A profile of its own: the user's may be open in a window, and is nobody's business here.
    command = [
        sys.executable, "-P", "-m", "headrace.tasks.isolation.foreign", folder,
        program, f"-env:UserInstallation={Path(folder, 'profile').as_uri()}", "--headless", "--norestore",
        "--convert-to", ending, "--outdir", folder, str(given),
    ]  # fmt: skip
    # Its socket lies there, too: by a short name, because names of sockets end after 108 characters.
    environment = {"HOME": folder, "TMPDIR": folder, "OSL_SOCKET_PATH": ".", "PATH": _PLACES}
    if "PYTHONPATH" in os.environ:
        environment["PYTHONPATH"] = os.environ["PYTHONPATH"]
    return subprocess.run(  # noqa: S603
        command, timeout=_SECONDS, capture_output=True, cwd=folder, env=environment, check=False
    )
