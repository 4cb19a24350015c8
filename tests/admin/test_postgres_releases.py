"""`headrace doctor` names a newer minor release of the server's PostgreSQL."""

import pytest

from headrace.admin.postgres_releases import NEWEST_MINOR, newer_minor
from headrace.migrations import runner


@pytest.mark.parametrize(
    ("version_num", "expected"),
    [
        (180_004, f"18.{NEWEST_MINOR[18]}"),
        (180_000 + NEWEST_MINOR[18], None),
        (180_000 + NEWEST_MINOR[18] + 1, None),  # this Headrace is the older one
        (150_001, f"15.{NEWEST_MINOR[15]}"),
        (190_000, None),  # a major version of later
    ],
)
def test_only_a_server_that_is_behind_gets_a_newer_release(version_num: int, expected: str | None) -> None:
    assert newer_minor(version_num) == expected


def test_every_supported_major_version_is_listed() -> None:
    assert min(NEWEST_MINOR) == runner.OLDEST_SERVER
