"""What of a failure's stack people see who do not run the workers: their own code's frames, without its folders."""

import re
import sysconfig
from pathlib import Path

_FRAME = re.compile(r'(?P<before>[ |+]*)File "(?P<file>[^"]*)", line (?P<line>\d+)(?P<rest>, in .*)?')
_HEADRACE = str(Path(__file__).parents[1])
_NOT_THEIRS = (_HEADRACE, sysconfig.get_path("stdlib"), "<frozen ")
# The worker may run on another machine, with another Python in another folder.
_PACKAGES = ("/site-packages/", "/dist-packages/", "/lib/python3.", "/src/headrace/")


def for_users(text: str | None) -> str | None:
    """The text with the handler's own frames alone, each file by its name: paths on the worker's machine and the code
    around the handler are for the operator."""
    if text is None or 'File "' not in text:
        return text
    kept: list[str] = []
    shown = True
    for line in text.splitlines():
        frame = _FRAME.fullmatch(line)
        if frame is not None:
            shown = not _is_foreign(frame["file"])
            if shown:
                name = Path(frame["file"]).name
                kept.append(f'{frame["before"]}File "{name}", line {frame["line"]}{frame["rest"] or ""}')
            continue
        # What follows a frame belongs to it as long as it is indented further than the frame itself.
        if not line.lstrip("|+ ").strip() or not re.match(r"[ |+]*    ", line):
            shown = True
        if shown:
            kept.append(line)
    return "\n".join(kept)


def _is_foreign(file: str) -> bool:
    return file.startswith(_NOT_THEIRS) or any(part in file for part in _PACKAGES)
