"""``headrace webhooks``: from a shell, as the product itself. W-13."""

import json
from collections.abc import Callable

import pytest

from tests.cli.conftest import Call, Place
from tests.e2e.program import Done

Headrace = Callable[..., Done]


@pytest.fixture
def headrace(call: Call, migrated: Place) -> Headrace:
    return lambda *words, **more: call(*words, settings={**migrated.settings, **more})


def test_the_life_of_an_endpoint(headrace: Headrace) -> None:
    made = json.loads(headrace("webhooks", "create", "https://example.com/hooks", "--event", "task.*", "--json").out)
    assert made["secret"].startswith("whsec_")
    shown = headrace("webhooks", "show", made["id"])
    assert made["secret"] not in shown.out
    assert "https://example.com/hooks" in headrace("webhooks", "list").out
    rotated = headrace("webhooks", "rotate-secret", made["id"]).out.strip()
    assert rotated.startswith("whsec_")
    assert json.loads(headrace("webhooks", "pause", made["id"], "--json").out)["status"] == "PAUSED"
    refused = headrace("webhooks", "test", made["id"])
    assert (refused.code, "resume it first" in refused.err) == (4, True)
    assert json.loads(headrace("webhooks", "resume", made["id"], "--json").out)["status"] == "ACTIVE"
    delivery = headrace("webhooks", "test", made["id"]).out.strip()
    assert delivery in headrace("webhooks", "deliveries").out
    assert "webhook.test" in headrace("webhooks", "delivery", delivery).out
    assert json.loads(headrace("webhooks", "stats", made["id"], "--json").out)["waiting"] == 1
    assert headrace("webhooks", "resend-failed", made["id"]).out == "0 deliveries queued\n"
    assert headrace("webhooks", "rotate-keys").out == "0 endpoints encrypted under the present key\n"
    new = {"HEADRACE_WEBHOOK_KEY": "n" * 40}
    lost = headrace("webhooks", "rotate-keys", **new)
    assert (lost.code, "a key that is no longer configured" in lost.err) == (4, True)
    assert headrace("webhooks", "delete", made["id"], "--yes").out == f"{made['id']} deleted\n"
    assert headrace("webhooks", "show", made["id"]).code == 3


def test_a_bad_address_is_refused_in_a_line(headrace: Headrace) -> None:
    for url in ("http://10.0.0.1/", "https://169.254.169.254/", "ftp://example.com"):
        refused = headrace("webhooks", "create", url)
        assert (refused.code, "Webhooks are not sent to this URL" in refused.err) == (2, True)
    unknown = headrace("webhooks", "create", "https://example.com/", "--event", "task.suceeded")
    assert (unknown.code, "did you mean task.succeeded?" in unknown.err) == (2, True)
