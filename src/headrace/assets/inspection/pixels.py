"""Decoding one picture with Pillow, by the one reader that its kind calls for."""

from typing import Any

from headrace.assets.inspection.errors import FileDamaged, FileTruncated
from headrace.assets.inspection.source import Source


def decode(source: Source, *kinds: str) -> Any:
    """The first frame with its pixels. Sizes were checked before: Pillow's own alarm is off, see ``handlers``."""
    from PIL import Image

    try:
        picture = Image.open(source.open(), formats=kinds)
        picture.load()
    except MemoryError:
        raise
    except (OSError, EOFError, SyntaxError, ValueError) as exc:
        raise FileTruncated if "truncated" in str(exc) else FileDamaged from exc
    return picture
