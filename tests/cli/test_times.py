"""Times on a command line: read by one set of rules, whichever command takes them."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from headrace.cli.times import instant, instant_or_utc
from headrace.errors import Invalid
from tests.cli.conftest import Call

EIGHT = timezone(timedelta(hours=8))


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2026-03-01", datetime(2026, 3, 1, tzinfo=UTC)),
        ("20260301", datetime(2026, 3, 1, tzinfo=UTC)),
        ("2026-03-01T08:00", datetime(2026, 3, 1, 8, tzinfo=UTC)),
        ("2026-03-01 08:00:30", datetime(2026, 3, 1, 8, 0, 30, tzinfo=UTC)),
        ("2026-03-01T08:00:00Z", datetime(2026, 3, 1, 8, tzinfo=UTC)),
        ("2026-03-01T00:00+08:00", datetime(2026, 3, 1, tzinfo=EIGHT)),
        ("20260301T080000+0800", datetime(2026, 3, 1, 8, tzinfo=EIGHT)),
    ],
)
def test_a_time_is_what_it_says(text: str, at: datetime) -> None:
    assert instant_or_utc(text, "--since") == at


@pytest.mark.parametrize("zone", ["+08:00", "-05:00", "+0800", "+08", "Z", "z"])
@pytest.mark.parametrize("day", ["2026-11-15", "20261115"])
def test_a_date_with_a_zone_is_not_a_time_of_day(day: str, zone: str) -> None:
    for read in (instant, instant_or_utc):
        with pytest.raises(Invalid) as refused:
            read(f"{day}{zone}", "--since")
        assert refused.value.message == f"--since needs a time of day before the zone: {day}T00:00{zone}."


@pytest.mark.parametrize(
    "text",
    ["yesterday", "", "2026-11", "2026-11-15x08:00", "2026-W46-7+08:00", "2026-11-15T+08:00"],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(Invalid, match="takes a time like 2026-03-01T08:00:00Z"):
        instant_or_utc(text, "--since")


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (("audit", "list"), "--since"),
        (("audit", "export"), "--until"),
        (("executions", "list"), "--since"),
        (("executions", "list"), "--until"),
        (("cron", "@daily"), "--after"),
        (("submit", "greet"), "--run-at"),
        (("schedules", "create", "Once", "greet"), "--run-at"),
        (("schedules", "update", "sch_1"), "--run-at"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_every_command_reads_them_so(call: Call, words: tuple[str, ...], option: str) -> None:
    done = call(*words, option, "2026-11-15+08:00")
    assert (done.code, done.complaint) == (
        2,
        f"{option} needs a time of day before the zone: 2026-11-15T00:00+08:00.",
    )
