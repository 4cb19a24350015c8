"""Keys that verify WeChat Pay's signatures: its public key or its certificates, by serial number."""

import asyncio
import time
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.x509 import load_pem_x509_certificate

from headrace import clock, logs
from headrace.errors import HeadraceError

log = logs.get(__name__)

SIGNATURE_TYPE = "WECHATPAY2-SHA256-RSA2048"
# Limits the fetches that invented serial numbers can cause.
_MIN_FETCH_INTERVAL_S = 60.0
_RETRY_PAUSE_S = 5.0

FetchCertificates = Callable[[], Awaitable[Mapping[str, str]]]
"""The certificates as PEM, by serial number."""


class PlatformKeys:
    """Keys of WeChat Pay. With a configured public key only that one is valid, otherwise the certificates."""

    def __init__(self, keys: Mapping[str, RSAPublicKey], fetch: FetchCertificates | None) -> None:
        self._keys: dict[str, tuple[RSAPublicKey, datetime | None]] = {name: (key, None) for name, key in keys.items()}
        self._fetch = fetch
        self._fetching = asyncio.Lock()
        self._fetch_after = 0.0

    async def verify(self, headers: Mapping[str, str], body: bytes) -> bool:
        """Whether the headers hold WeChat Pay's signature of this body."""
        if headers.get("wechatpay-signature-type", SIGNATURE_TYPE) != SIGNATURE_TYPE:
            return False
        key = await self._find(headers.get("wechatpay-serial", ""))
        if key is None:
            return False
        stamp, nonce = headers.get("wechatpay-timestamp", ""), headers.get("wechatpay-nonce", "")
        message = f"{stamp}\n{nonce}\n".encode() + body + b"\n"
        try:
            signature = b64decode(headers.get("wechatpay-signature", ""), validate=True)
            key.verify(signature, message, PKCS1v15(), SHA256())
        except (InvalidSignature, Base64Error, ValueError):
            return False
        return True

    async def _find(self, serial: str) -> RSAPublicKey | None:
        if (key := self._valid(serial)) is not None or self._fetch is None or not serial:
            return key
        async with self._fetching:  # concurrent callers wait for this fetch
            if (key := self._valid(serial)) is None and time.monotonic() >= self._fetch_after:
                await self._refresh(self._fetch)
                key = self._valid(serial)
        return key

    async def _refresh(self, fetch: FetchCertificates) -> None:
        try:
            fetched = await fetch()
        except HeadraceError as exc:  # the known certificates stay valid
            log.warning("wechatpay.certificates_not_fetched", error=exc.code)
            self._fetch_after = time.monotonic() + _RETRY_PAUSE_S
            return
        self._fetch_after = time.monotonic() + _MIN_FETCH_INTERVAL_S
        self._keys.update({name: read for name, pem in fetched.items() if (read := _read(pem)) is not None})

    def _valid(self, serial: str) -> RSAPublicKey | None:
        key, until = self._keys.get(serial, (None, None))
        return None if until is not None and until <= clock.now() else key


def _read(pem: str) -> tuple[RSAPublicKey, datetime] | None:
    certificate = load_pem_x509_certificate(pem.encode())
    key: Any = certificate.public_key()
    if not isinstance(key, RSAPublicKey) or certificate.not_valid_before_utc > clock.now():
        return None
    return key, certificate.not_valid_after_utc
