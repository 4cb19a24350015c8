"""Session tokens, API keys and tokens of links: 256 random bits, stored only as hashes."""

import base64
import hashlib
import hmac
import secrets

SESSION = "hrs_"
API_KEY = "hrk_"
LINK = "hrl_"


def new(prefix: str) -> str:
    """A new secret; the prefix identifies its kind to people, programs and secret scanners."""
    return prefix + secrets.token_urlsafe(32)


def digest(token: str) -> bytes:
    """The stored digest. No salt or work factor is needed for 256 random bits."""
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()


def csrf_key(secret: bytes) -> bytes:
    """The key for ``csrf``, from the deployment's secret."""
    return hmac.digest(secret, b"headrace/csrf", "sha256")


def csrf(key: bytes, session_id: str) -> str:
    """The CSRF token of a session: our pages read it from the cookie, a foreign page cannot compute it."""
    return base64.urlsafe_b64encode(hmac.digest(key, session_id.encode(), "sha256")).rstrip(b"=").decode()


def same(text: str | None, expected: str) -> bool:
    return text is not None and hmac.compare_digest(text.encode(errors="surrogatepass"), expected.encode())
