"""What EXIF says that matters here."""

_ORIENTATION = 0x0112


def orientation_of(exif: bytes) -> int:
    """EXIF's number of how a picture is to be turned; 1, upright, where it says nothing sensible."""
    from PIL import Image

    if not exif:
        return 1
    read = Image.Exif()
    try:
        read.load(exif)
        value = read.get(_ORIENTATION, 1)
    except Exception:  # noqa: BLE001 - broken EXIF makes no broken picture, and Pillow raises various errors there
        return 1
    return value if isinstance(value, int) and 1 <= value <= 8 else 1
