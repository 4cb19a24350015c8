"""Presentations of the old kind (.ppt), which LibreOffice turns into the new kind and back."""

from pathlib import Path

from headrace.assets.inspection import office
from headrace.removal.errors import ConverterMissing, DocumentEncrypted, DocumentUnreadable

CONVERTED = "converted by LibreOffice: look whether the layout is as it was"
_MAX_BYTES = 1 << 30


def require_slides(path: str) -> None:
    """The names of its streams tell what an old container holds."""
    with Path(path).open("rb") as file:
        content = file.read(_MAX_BYTES)
    if "EncryptedPackage".encode("utf-16-le") in content:
        raise DocumentEncrypted(
            f"{path} is encrypted: save it without a password first; its kind cannot be opened here."
        )
    if "PowerPoint Document".encode("utf-16-le") not in content:
        raise DocumentUnreadable(f"{path} is an Office file, but no presentation.")


def convert(source: str, result: str) -> None:
    """Write the presentation in the format of the result's ending. What LibreOffice needs lies beside the result.

    Raises ``ConverterMissing`` and ``DocumentUnreadable``.
    """
    target = Path(result)
    try:
        with office.converted(source, target.suffix[1:], within=str(target.parent)) as made:
            made.rename(target)
    except office.OfficeUnconfined as exc:
        raise ConverterMissing(
            "Old slides (.ppt) need LibreOffice, and this system cannot keep it from other files and the network "
            "(that takes Landlock: Linux 5.19 or later): save them as .pptx."
        ) from exc
    except office.OfficeMissing as exc:
        raise ConverterMissing from exc
    except office.OfficeFailed as exc:
        raise DocumentUnreadable(f"{source} {exc}") from exc
