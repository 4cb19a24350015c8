"""Presentations of the old kind (.ppt), which LibreOffice turns into the new kind and back."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from headrace.removal.errors import ConverterMissing, DocumentUnreadable

_SECONDS = 180
_PROGRAMS = ("soffice", "libreoffice")
_PLACES = "/usr/bin:/usr/local/bin:/opt/libreoffice/program:/Applications/LibreOffice.app/Contents/MacOS"


def _without_network() -> list[str]:
    """What a command starts with so that it has no network, where this kernel lets everybody give theirs up.

    A presentation may name pictures elsewhere, and LibreOffice fetches them. It cannot simply be kept from sockets, as
    the rest of the child is: it talks to itself through one.
    """
    program = shutil.which("unshare", path=_PLACES)
    if program is None:
        return []
    prefix = [program, "--map-root-user", "--net"]
    tried = subprocess.run([*prefix, "true"], capture_output=True, timeout=_SECONDS, check=False)  # noqa: S603
    return prefix if tried.returncode == 0 else []


@contextmanager
def converted(source: str, ending: str) -> Iterator[Path]:
    """The presentation in another format, as a file that vanishes afterwards.

    Raises ``ConverterMissing`` and ``DocumentUnreadable``.
    """
    program = next((found for name in _PROGRAMS if (found := shutil.which(name, path=_PLACES))), None)
    if program is None:
        raise ConverterMissing
    with TemporaryDirectory(prefix="headrace-") as folder:
        # A profile of its own: the user's may be open in a window, and is nobody's business here.
        command = [
            *_without_network(), program, f"-env:UserInstallation={Path(folder, 'profile').as_uri()}",
            "--headless", "--norestore",
            "--convert-to", ending, "--outdir", folder, str(Path(source).resolve()),
        ]  # fmt: skip
        try:
            subprocess.run(  # noqa: S603
                command,
                check=True,
                timeout=_SECONDS,
                capture_output=True,
                cwd=folder,
                env={"HOME": folder, "PATH": _PLACES},
            )
        except (subprocess.SubprocessError, OSError) as exc:
            raise DocumentUnreadable(f"{source} could not be converted by LibreOffice: {type(exc).__name__}.") from exc
        result = Path(folder, f"{Path(source).stem}.{ending}")
        if not result.is_file() or result.stat().st_size == 0:
            raise DocumentUnreadable(f"{source} is nothing that LibreOffice can convert.")
        yield result
