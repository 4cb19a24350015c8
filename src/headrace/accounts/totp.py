"""Time-based one-time passwords (RFC 6238) as authenticator apps make them: SHA-1, six digits, 30 seconds."""

import base64
import hmac
import secrets
from urllib.parse import quote, urlencode

STEP_SECONDS = 30
DIGITS = 6
SECRET_BYTES = 20
# One step before and after the present one: clocks of phones differ, and a code takes time to be typed.
_SLACK_STEPS = 1


def new_secret() -> bytes:
    return secrets.token_bytes(SECRET_BYTES)


def text_of(secret: bytes) -> str:
    """The secret in Base32, to be typed into an app."""
    return base64.b32encode(secret).decode()


def uri_of(secret: bytes, *, account: str, issuer: str) -> str:
    """The address that apps read from a QR code."""
    params = urlencode({"secret": text_of(secret), "issuer": issuer}, quote_via=quote)
    return f"otpauth://totp/{quote(issuer)}:{quote(account)}?{params}"


def code_of(secret: bytes, step: int) -> str:
    digest = hmac.digest(secret, step.to_bytes(8, "big"), "sha1")
    offset = digest[-1] & 0x0F
    number = int.from_bytes(digest[offset : offset + 4], "big") & 0x7FFFFFFF
    return str(number % 10**DIGITS).zfill(DIGITS)


def step_of(at: float) -> int:
    return int(at // STEP_SECONDS)


def matching_step(secret: bytes, code: str, *, at: float, after: int) -> int | None:
    """The step of this code, if it is near ``at`` and later than the step ``after``."""
    present = step_of(at)
    typed = code.encode(errors="surrogatepass")
    matching = [
        step
        for step in range(present - _SLACK_STEPS, present + _SLACK_STEPS + 1)
        if hmac.compare_digest(code_of(secret, step).encode(), typed) and step > after
    ]
    return matching[0] if matching else None
