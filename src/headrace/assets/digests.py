"""The SHA-256 that a client announces: RFC 9530's ``Content-Digest``, or plain hex."""

import base64
import binascii
import re

from headrace.assets.errors import DigestInvalid

_HEX = re.compile(r"[0-9a-fA-F]{64}")
_MEMBER = re.compile(r"\s*([a-z0-9*_.-]+)=:([A-Za-z0-9+/=]*):\s*")


def announced(content_digest: str | None, sha256: str | None) -> str | None:
    """The digest as lower-case hex, whichever way it was sent; None if it was not. Two that differ are refused."""
    digests = {each for each in (_of_header(content_digest), _of_hex(sha256)) if each is not None}
    if len(digests) > 1:
        raise DigestInvalid("Content-Digest and sha256 say different things.")
    return digests.pop() if digests else None


def _of_hex(text: str | None) -> str | None:
    if text is None:
        return None
    if not _HEX.fullmatch(text):
        raise DigestInvalid
    return text.lower()


def _of_header(text: str | None) -> str | None:
    """Of the algorithms that the header names the one we know; the others are the sender's business."""
    if text is None:
        return None
    encoded = None
    for member in text.split(","):
        match = _MEMBER.fullmatch(member)
        if match is None:
            raise DigestInvalid
        if match[1] == "sha-256":
            encoded = match[2]
    if encoded is None:
        return None
    try:
        raw = base64.b64decode(encoded, validate=True)
    except binascii.Error:
        raise DigestInvalid from None
    if len(raw) != 32:
        raise DigestInvalid
    return raw.hex()
