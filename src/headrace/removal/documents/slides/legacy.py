"""Presentations of the old kind (.ppt), which LibreOffice turns into the new kind and back."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headrace.assets.inspection import office
from headrace.removal.errors import ConverterMissing, DocumentUnreadable


@contextmanager
def converted(source: str, ending: str, *, within: str | None = None) -> Iterator[Path]:
    """The presentation in another format, as a file that vanishes afterwards; ``within`` is where it lies meanwhile.

    Raises ``ConverterMissing`` and ``DocumentUnreadable``.
    """
    try:
        with office.converted(source, ending, within=within) as made:
            yield made
    except office.OfficeUnconfined as exc:
        raise ConverterMissing(
            "Old slides (.ppt) need LibreOffice, and this system cannot keep it from other files and the network "
            "(that takes Landlock: Linux 5.19 or later): save them as .pptx."
        ) from exc
    except office.OfficeMissing as exc:
        raise ConverterMissing from exc
    except office.OfficeFailed as exc:
        raise DocumentUnreadable(f"{source} {exc}") from exc
