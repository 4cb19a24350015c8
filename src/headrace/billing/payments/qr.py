"""The code that a payer scans, as a picture."""

from io import BytesIO

from headrace.extras import load

_SCALE = 8  # pixels for each little square: large enough for any telephone
_BORDER = 4  # squares of white around it, as the standard wants


def qr_png(text: str) -> bytes:
    """This text as a QR code, in PNG."""
    segno = load("segno", extra="payments")
    picture = BytesIO()
    segno.make(text, error="m", micro=False).save(picture, kind="png", scale=_SCALE, border=_BORDER)
    return picture.getvalue()
