"""WeChat Pay's side of the cryptography: verifies merchants, signs answers, encrypts notices."""

import re
import secrets
import time
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from functools import cache

import orjson
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from headrace.billing.payments.local.keys import LocalKeys
from headrace.billing.payments.platform_keys import SIGNATURE_TYPE

_SCHEME = f"{SIGNATURE_TYPE} "
_FIELD = re.compile(r'(\w+)="([^"]*)"')
_WINDOW_S = 300


class Signer:
    """Signs and verifies with the local keys."""

    def __init__(self, keys: LocalKeys) -> None:
        self.keys = keys
        self._platform = _load(keys.platform_key)
        self._merchant = _load(keys.merchant_key).public_key()

    def is_merchants(self, authorization: str, method: str, target: str, body: bytes) -> bool:
        """Whether our merchant signed this request recently."""
        if not authorization.startswith(_SCHEME):
            return False
        headers = dict(_FIELD.findall(authorization))
        stamp = headers.get("timestamp", "")
        if (headers.get("mchid"), headers.get("serial_no")) != (self.keys.mch_id, self.keys.merchant_serial):
            return False
        if not stamp.isdecimal() or abs(time.time() - int(stamp)) > _WINDOW_S:
            return False
        message = f"{method}\n{target}\n{stamp}\n{headers.get('nonce_str', '')}\n".encode() + body + b"\n"
        try:
            self._merchant.verify(b64decode(headers.get("signature", "")), message, PKCS1v15(), SHA256())
        except (InvalidSignature, Base64Error, ValueError):
            return False
        return True

    def headers(self, body: bytes, *, by_public_key: bool, at: int | None = None) -> dict[str, str]:
        """Signature headers of an answer or a notice, with the id of the public key or of the certificate."""
        stamp, nonce = str(int(time.time()) if at is None else at), secrets.token_hex(16)
        signature = self._platform.sign(f"{stamp}\n{nonce}\n".encode() + body + b"\n", PKCS1v15(), SHA256())
        return {
            "Wechatpay-Timestamp": stamp,
            "Wechatpay-Nonce": nonce,
            "Wechatpay-Signature": b64encode(signature).decode(),
            "Wechatpay-Serial": self.keys.public_key_id if by_public_key else self.keys.platform_serial,
            "Wechatpay-Signature-Type": SIGNATURE_TYPE,
        }

    def sealed(self, content: bytes, associated_data: str) -> dict[str, str]:
        """Encrypt with the merchant's APIv3 key."""
        nonce = secrets.token_hex(6)
        cipher = AESGCM(self.keys.api_v3_key.encode()).encrypt(nonce.encode(), content, associated_data.encode())
        return {
            "algorithm": "AEAD_AES_256_GCM",
            "nonce": nonce,
            "associated_data": associated_data,
            "ciphertext": b64encode(cipher).decode(),
        }

    def notice(self, event_type: str, resource: object, *, notice_id: str | None = None) -> bytes:
        """The body of a notice."""
        kind = "refund" if event_type.startswith("REFUND.") else "transaction"
        return orjson.dumps(
            {
                "id": notice_id or secrets.token_hex(16),
                "create_time": time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime()),
                "resource_type": "encrypt-resource",
                "event_type": event_type,
                "summary": event_type,
                "resource": {**self.sealed(orjson.dumps(resource), kind), "original_type": kind},
            }
        )


@cache
def _load(pem: str) -> RSAPrivateKey:  # which checks the primes
    key = load_pem_private_key(pem.encode(), password=None)
    assert isinstance(key, RSAPrivateKey)
    return key
