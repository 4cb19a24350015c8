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
            program, f"-env:UserInstallation={Path(folder, 'profile').as_uri()}", "--headless", "--norestore",
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
