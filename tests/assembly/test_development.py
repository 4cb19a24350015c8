"""What `headrace up` allows on a machine of one's own, and nowhere else."""

from typing import Any

import pytest

from headrace import settings
from headrace.assembly.development import for_development

HERE = {"api_host": "127.0.0.1"}


@pytest.mark.parametrize(
    ("given", "registration"),
    [
        (HERE, "open"),
        ({"api_host": "localhost"}, "open"),
        ({"api_host": "::1"}, "open"),
        ({**HERE, "registration": "closed"}, "closed"),
        ({"api_host": "0.0.0.0"}, "closed"),
        ({"api_host": "192.0.2.7"}, "closed"),
        ({"api_host": "192.0.2.7", "registration": "open"}, "open"),
        ({**HERE, "api_public_url": "https://work.example"}, "closed"),  # a proxy lets others in
        ({**HERE, "api_trusted_proxies": ["10.0.0.0/8"]}, "closed"),
    ],
)
def test_up_opens_registration_on_this_machine_alone(given: dict[str, Any], registration: str) -> None:
    assert settings.load().registration == "closed"
    chosen = for_development(settings.load(**given))
    assert (chosen.registration, chosen.webhook_local_targets) == (registration, given == HERE or _is_here(given))


def _is_here(given: dict[str, Any]) -> bool:
    return given["api_host"] in {"127.0.0.1", "localhost", "::1"} and len(given.keys() - {"registration"}) == 1
