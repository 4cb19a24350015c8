"""Secrets that we hand out and keep only as hashes: session tokens and API keys, 256 random bits each."""

import base64
import hashlib
import hmac
import secrets

SESSION = "hrs_"
API_KEY = "hrk_"


def new(prefix: str) -> str:
    """A fresh secret; the prefix tells people, programs and secret scanners what they have found."""
    return prefix + secrets.token_urlsafe(32)


def digest(token: str) -> bytes:
    """What is stored and looked up. No salt and no work factor: nobody guesses 256 bits."""
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()


def csrf_key(secret: bytes) -> bytes:
    """The key for ``csrf``, from the deployment's secret."""
    return hmac.digest(secret, b"headrace/csrf", "sha256")


def csrf(key: bytes, session_id: str) -> str:
    """The CSRF token of a session: whoever can read our cookies has it, a foreign page cannot make it."""
    return base64.urlsafe_b64encode(hmac.digest(key, session_id.encode(), "sha256")).rstrip(b"=").decode()


def same(given: str | None, expected: str) -> bool:
    return given is not None and hmac.compare_digest(given.encode(errors="surrogatepass"), expected.encode())
