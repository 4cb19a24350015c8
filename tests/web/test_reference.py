"""The errors' page is made from the errors."""

import re

from headrace.errors import HeadraceError
from headrace.web.reference import errors_page


def test_every_error_is_on_the_page_once_with_its_status() -> None:
    page = errors_page()
    assert "| `not_found` | NotFound | 404 | There is no such thing here. |" in page
    assert "| `idempotency_key_reused` | Invalid | 422 |" in page
    assert "| `unauthenticated` | Unauthenticated | 401 | Log in or send an API key. |" in page
    assert "| `internal` |  | 500 |" in page
    codes = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    assert len(codes) == len(set(codes)), "two errors share a code"


def test_errors_of_the_machine_are_kept_apart() -> None:
    api, _, local = errors_page().partition("## Of the command line only")
    assert "`bad_settings`" in local
    assert "`bad_settings`" not in api


def test_errors_of_tests_are_not_the_products() -> None:
    class Made(HeadraceError):
        """Only here."""

        code = "made_by_a_test"

    assert Made.code not in errors_page()
