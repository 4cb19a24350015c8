"""Our signatures and decryption against WeChat Pay's own example and its documented formats."""

import re
from base64 import b64decode
from datetime import UTC, datetime

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from headrace.billing.payments import signing
from tests.web.world import merchant_keys

NOW = datetime(2026, 11, 19, 4, 0, tzinfo=UTC)


def test_the_example_of_the_vendor_is_decrypted() -> None:
    example = {
        "nonce": "wCq51qZv4Yfg",
        "ciphertext": "FsdXzxryWfKwvLJKf8LG/ToRPTRh8RN9wROC",
        "associated_data": "Dl56FrqWQJF1t9LtC3vEUsniZKvbqdR8",
    }
    assert signing.decrypt("testAPIv3Key0000", **example) == b"Hello World"
    assert signing.decrypt("testAPIv3Key0001", **example) is None
    assert signing.decrypt("testAPIv3Key0000", **example | {"associated_data": ""}) is None
    with pytest.raises(ValueError, match=r".*"):
        signing.decrypt("testAPIv3Key0000", **example | {"ciphertext": "a"})


def test_a_request_is_signed_as_documented() -> None:
    key = signing.load_private_key(merchant_keys().merchant_key)
    header = signing.authorization(
        key, mch_id="1900009191", serial="1DDE55AD", method="GET", path="/v3/certificates?a=1", body="", now=NOW
    )
    found = re.fullmatch(
        r'WECHATPAY2-SHA256-RSA2048 mchid="1900009191",nonce_str="([0-9A-F]{32})",signature="([^"]+)",'
        r'timestamp="1795060800",serial_no="1DDE55AD"',
        header,
    )
    assert found is not None, header
    signed = f"GET\n/v3/certificates?a=1\n1795060800\n{found[1]}\n\n".encode()
    key.public_key().verify(b64decode(found[2]), signed, PKCS1v15(), SHA256())
    with pytest.raises(InvalidSignature):
        key.public_key().verify(b64decode(found[2]), signed + b" ", PKCS1v15(), SHA256())


def test_a_key_without_its_frame_is_read_and_others_are_refused() -> None:
    pem = merchant_keys().merchant_key
    expected = load_pem_private_key(pem.encode(), password=None)
    assert isinstance(expected, RSAPrivateKey)
    body = "\n".join(line for line in pem.splitlines() if not line.startswith("-----"))
    assert signing.load_private_key(body).private_numbers() == expected.private_numbers()
    with pytest.raises(ValueError, match=r".*"):
        signing.load_private_key("no key")
