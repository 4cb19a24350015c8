"""Small pictures of results."""

import os

from headrace.assets.inspection import previews
from headrace.assets.inspection.model import Format
from headrace.assets.inspection.source import Source

PREVIEW_SIDE_PX = 1024


def write_preview(path: str, kind: str, target: str) -> None:
    """Write a WebP of the file; a sheet with the kind's name on it where nothing can be drawn."""
    source = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    output = os.open(target, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        previews.write(Source(source), Format(kind), output, PREVIEW_SIDE_PX)
    finally:
        os.close(source)
        os.close(output)
