"""Keys of a merchant and of the local WeChat Pay."""

import os
import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

_VALIDITY = timedelta(days=5 * 365)


@dataclass(frozen=True, slots=True)
class LocalKeys:
    """In PEM unless noted otherwise."""

    merchant_key: str = field(repr=False)
    merchant_serial: str
    platform_key: str = field(repr=False)
    platform_certificate: str
    api_v3_key: str = field(repr=False)
    mch_id: str = "1900000001"
    app_id: str = "wxlocal0000000001"
    public_key_id: str = "PUB_KEY_ID_0000000001"

    @property
    def platform_public_key(self) -> str:
        key = x509.load_pem_x509_certificate(self.platform_certificate.encode()).public_key()
        form = serialization.PublicFormat.SubjectPublicKeyInfo
        return key.public_bytes(serialization.Encoding.PEM, form).decode()

    @property
    def platform_serial(self) -> str:
        return f"{x509.load_pem_x509_certificate(self.platform_certificate.encode()).serial_number:X}"


_FILES = ("merchant_key", "merchant_serial", "platform_key", "platform_certificate", "api_v3_key")


def make_keys() -> LocalKeys:
    merchant, platform = _key(), _key()
    return LocalKeys(
        merchant_key=_private(merchant),
        merchant_serial=secrets.token_hex(20).upper(),
        platform_key=_private(platform),
        platform_certificate=_certificate(platform),
        api_v3_key=secrets.token_hex(16),
    )


def keys_in(folder: Path) -> LocalKeys:
    """Read the keys of this folder, or create them, so that earlier orders stay valid. Only the folder's owner can read
    them."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not all((folder / name).exists() for name in _FILES):
        made = make_keys()
        for name in (*_FILES, "platform_public_key"):
            _write(folder / name, getattr(made, name))
    return LocalKeys(**{name: (folder / name).read_text() for name in _FILES})


def _write(file: Path, content: str) -> None:
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as stream:
        stream.write(content)


def _key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def _private(key: rsa.RSAPrivateKey) -> str:
    form, none = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, form, none).decode()


def _certificate(key: rsa.RSAPrivateKey) -> str:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "WeChat Pay on this machine")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + _VALIDITY)
        .sign(key, hashes.SHA256())
    )
    return made.public_bytes(serialization.Encoding.PEM).decode()
