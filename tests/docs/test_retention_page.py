"""The how-to on retention lists the schedules that ship."""

import re
from pathlib import Path

from headrace.admin.maintenance import schedules_of
from headrace.assembly.retention import ROWS

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "retention.md"


def test_every_schedule_that_ships_is_in_the_table() -> None:
    """Those of assets, notifications, subscriptions and payments were missing."""
    listed = re.findall(r"^\| `([^`]+)` \|", PAGE.read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(spec.name.removeprefix("headrace: ") for spec in schedules_of(ROWS))
