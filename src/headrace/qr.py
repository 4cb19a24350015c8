"""The QR code that a payer scans."""

from io import BytesIO

from headrace.extras import load

_SCALE = 8  # pixels per module: large enough for any phone
_BORDER = 4  # quiet zone in modules, as the standard requires


def qr_png(text: str) -> bytes:
    """This text as a QR code, in PNG."""
    segno = load("segno", extra="payments")
    picture = BytesIO()
    segno.make(text, error="m", micro=False).save(picture, kind="png", scale=_SCALE, border=_BORDER)
    return picture.getvalue()
