"""The cryptography of WeChat Pay API v3: signed requests, and resources encrypted with the merchant's APIv3 key."""

import secrets
from base64 import b64decode, b64encode
from datetime import datetime

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_private_key

SCHEME = "WECHATPAY2-SHA256-RSA2048"


def load_private_key(pem: str) -> RSAPrivateKey:
    """Raises ``ValueError`` or ``TypeError`` for anything but an unencrypted RSA key."""
    text = pem.strip()
    if "-----BEGIN" not in text:  # the body alone, as some consoles export it
        text = f"-----BEGIN PRIVATE KEY-----\n{text}\n-----END PRIVATE KEY-----"
    key = load_pem_private_key(text.encode(), password=None)
    if not isinstance(key, RSAPrivateKey):
        raise TypeError("not an RSA key")
    return key


def sign(key: RSAPrivateKey, text: str) -> str:
    return b64encode(key.sign(text.encode(), PKCS1v15(), SHA256())).decode()


def authorization(
    key: RSAPrivateKey, *, mch_id: str, serial: str, method: str, path: str, body: str, now: datetime
) -> str:
    """The header of a signed request; ``path`` includes the query."""
    stamp, nonce = int(now.timestamp()), secrets.token_hex(16).upper()
    signature = sign(key, f"{method}\n{path}\n{stamp}\n{nonce}\n{body}\n")
    return (
        f'{SCHEME} mchid="{mch_id}",nonce_str="{nonce}",signature="{signature}",timestamp="{stamp}",'
        f'serial_no="{serial}"'
    )


def decrypt(api_v3_key: str, *, nonce: str, ciphertext: str, associated_data: str) -> bytes | None:
    """None if it was not encrypted with this key. Raises ``ValueError`` for malformed fields."""
    try:
        return AESGCM(api_v3_key.encode()).decrypt(nonce.encode(), b64decode(ciphertext), associated_data.encode())
    except InvalidTag:
        return None
