"""Signatures that the reference library and svix accept, and refuse when anything was changed. W-13."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import standardwebhooks
import svix

from headrace.webhooks.errors import SecretInvalid
from headrace.webhooks.secrets import Secret, make_secret, read_secret
from headrace.webhooks.signing import Signer

BODY = '{"type": "task.succeeded", "data": {"title": "图片 ✓"}}'
Verify = Callable[[str, str, dict[str, str]], Any]


def _reference(secret: str, body: str, headers: dict[str, str]) -> Any:
    return standardwebhooks.Webhook(secret).verify(body, headers)


def _svix(secret: str, body: str, headers: dict[str, str]) -> Any:
    return svix.Webhook(secret).verify(body, headers)


LIBRARIES = pytest.mark.parametrize("verify", [_reference, _svix])
REFUSED = (standardwebhooks.WebhookVerificationError, svix.webhooks.WebhookVerificationError)


def signed(*secrets: Secret, now: datetime | None = None) -> dict[str, str]:
    return Signer(secrets).headers("evt_1", BODY, now=now)


@LIBRARIES
def test_both_libraries_accept_it(verify: Verify) -> None:
    secret = make_secret()
    verify(secret.text, BODY, signed(secret))


@LIBRARIES
def test_while_a_secret_is_rotated_receivers_may_have_either(verify: Verify) -> None:
    """Both directions: the receiver that has the new one already, and the one that has the old one still."""
    old, new, other = make_secret(), make_secret(), make_secret()
    headers = signed(new, old)
    verify(new.text, BODY, headers)
    verify(old.text, BODY, headers)
    for wrong in (other.text, make_secret().text):
        with pytest.raises(REFUSED):
            verify(wrong, BODY, headers)
    with pytest.raises(REFUSED):
        verify(old.text, BODY, signed(new))  # the overlap is over


@LIBRARIES
def test_one_changed_byte_the_id_or_the_time_is_refused(verify: Verify) -> None:
    secret = make_secret()
    headers = signed(secret)
    first = "B" if headers["webhook-signature"].startswith("v1,A") else "A"
    changed = [
        (BODY.replace("succeeded", "Succeeded"), headers),
        (BODY + " ", headers),
        (BODY, {**headers, "webhook-id": "evt_2"}),
        (BODY, {**headers, "webhook-timestamp": str(int(headers["webhook-timestamp"]) + 1)}),
        (BODY, {**headers, "webhook-signature": f"v1,{first}{headers['webhook-signature'][4:]}"}),
        (BODY, {name: value for name, value in headers.items() if name != "webhook-id"}),
    ]
    for body, sent in changed:
        with pytest.raises(REFUSED):
            verify(secret.text, body, sent)


@LIBRARIES
def test_an_old_request_cannot_be_sent_again(verify: Verify) -> None:
    secret = make_secret()
    with pytest.raises(REFUSED):
        verify(secret.text, BODY, signed(secret, now=datetime.now(UTC) - timedelta(minutes=6)))


def test_a_secret_of_ones_own() -> None:
    mine = make_secret()
    assert read_secret(mine.text) == mine
    assert read_secret(mine.text.rstrip("=")) == mine
    assert mine.hint.startswith("…")
    assert len(mine.hint) == 5
    assert mine.text not in repr(mine)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "whsec_",
        "whsec_c2hvcnQ=",
        "secret",
        "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8G",
        "whsec_ä",
        "whsec_" + "A" * 200,
    ],
)
def test_what_is_no_secret_is_refused(text: str) -> None:
    with pytest.raises(SecretInvalid):
        read_secret(text)
