"""When expressions are due: daylight saving in five zones, leap days, and 10,000 expressions against two others."""

import random
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

import pytest
from croniter import croniter  # type: ignore[import-untyped]

from headrace.schedules.cron import check_due, cron_of
from headrace.schedules.due import Rhythm
from headrace.schedules.errors import CronInvalid, CronNeverDue, TimezoneUnknown

# expression, zone, from (UTC), the next due times on the wall clock of the zone with its offset
DAYLIGHT_SAVING = [
    # Berlin: on 29 March 2:00 becomes 3:00, on 25 October 3:00 becomes 2:00.
    ("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00", "03-29 03:00 +0200, 03-30 02:30 +0200"),
    ("0,30 2 * * *", "Europe/Berlin", "2026-03-28T12:00", "03-29 03:00 +0200, 03-30 02:00 +0200"),
    ("*/20 2 * * *", "Europe/Berlin", "2026-03-28T12:00", "03-29 03:00 +0200, 03-30 02:00 +0200"),
    ("0 2,3 * * *", "Europe/Berlin", "2026-03-28T12:00", "03-29 03:00 +0200, 03-30 02:00 +0200, 03-30 03:00 +0200"),
    ("0 */2 * * *", "Europe/Berlin", "2026-03-28T22:30", "03-29 00:00 +0100, 03-29 03:00 +0200, 03-29 04:00 +0200"),
    ("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00", "10-25 02:30 +0200, 10-26 02:30 +0100"),
    ("*/30 2 * * *", "Europe/Berlin", "2026-10-24T12:00", "10-25 02:00 +0200, 10-25 02:30 +0200, 10-26 02:00 +0100"),
    ("0 * * * *", "Europe/Berlin", "2026-03-28T23:30", "03-29 01:00 +0100, 03-29 03:00 +0200, 03-29 04:00 +0200"),
    ("0 * * * *", "Europe/Berlin", "2026-10-24T23:30", "10-25 02:00 +0200, 10-25 02:00 +0100, 10-25 03:00 +0100"),
    ("*/30 * * * *", "Europe/Berlin", "2026-10-25T00:10", "10-25 02:30 +0200, 10-25 02:00 +0100, 10-25 02:30 +0100"),
    # made in the second pass of the hour: the first one is over
    ("30 2 * * *", "Europe/Berlin", "2026-10-25T01:10", "10-26 02:30 +0100"),
    # New York: on 8 March 2:00 becomes 3:00, on 1 November 2:00 becomes 1:00.
    ("30 2 * * *", "America/New_York", "2026-03-07T12:00", "03-08 03:00 -0400, 03-09 02:30 -0400"),
    ("30 1 * * *", "America/New_York", "2026-10-31T12:00", "11-01 01:30 -0400, 11-02 01:30 -0500"),
    ("15 * * * *", "America/New_York", "2026-11-01T04:30", "11-01 01:15 -0400, 11-01 01:15 -0500, 11-01 02:15 -0500"),
    # Lord Howe: by half an hour. On 4 October 2:00 becomes 2:30, on 5 April 2:00 becomes 1:30.
    ("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00", "10-04 02:30 +1100, 10-05 02:15 +1100"),
    ("15 * * * *", "Australia/Lord_Howe", "2026-10-03T14:00", "10-04 01:15 +1030, 10-04 03:15 +1100"),
    ("45 1 * * *", "Australia/Lord_Howe", "2026-04-04T12:00", "04-05 01:45 +1100, 04-06 01:45 +1030"),
    (
        "45 * * * *",
        "Australia/Lord_Howe",
        "2026-04-04T14:00",
        "04-05 01:45 +1100, 04-05 01:45 +1030, 04-05 02:45 +1030",
    ),
    # São Paulo, until 2019: at midnight. On 4 November 2018 0:00 became 1:00, on 18 February 0:00 became 23:00.
    ("0 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00", "11-04 01:00 -0200, 11-05 00:00 -0200"),
    ("30 23 * * *", "America/Sao_Paulo", "2018-02-17T12:00", "02-17 23:30 -0200, 02-18 23:30 -0300"),
    ("0 0 * * *", "America/Sao_Paulo", "2018-02-17T12:00", "02-18 00:00 -0300, 02-19 00:00 -0300"),
    ("@hourly", "America/Sao_Paulo", "2018-02-18T00:30", "02-17 23:00 -0200, 02-17 23:00 -0300, 02-18 00:00 -0300"),
    # Shanghai: none of this since 1991.
    ("30 2 * * *", "Asia/Shanghai", "2026-03-28T12:00", "03-29 02:30 +0800, 03-30 02:30 +0800"),
    ("30 2 * * *", "Asia/Shanghai", "2026-10-24T12:00", "10-25 02:30 +0800, 10-26 02:30 +0800"),
]


@pytest.mark.parametrize(("expression", "zone", "start", "expected"), DAYLIGHT_SAVING)
def test_daylight_saving_neither_skips_nor_doubles(
    expression: str, zone: str, start: str, expected: str
) -> None:  # S-03
    cron = cron_of(expression, zone)
    times = expected.split(", ")
    found = islice(cron.times_after(datetime.fromisoformat(start).replace(tzinfo=UTC)), len(times))
    assert [f"{at.astimezone(cron.zone):%m-%d %H:%M %z}" for at in found] == times


@pytest.mark.parametrize(
    ("expression", "start", "expected"),
    [
        ("0 0 29 2 *", "2026-03-01", "2028-02-29"),
        ("0 0 29 2 *", "2096-03-01", "2104-02-29"),  # 2100 is none
        ("0 0 L * *", "2027-02-01", "2027-02-28"),
        ("0 0 1 JAN,jul *", "2026-03-01", "2026-07-01"),
        ("0 0 * * SUN", "2026-03-02", "2026-03-08"),
        ("0 0 * * 7", "2026-03-02", "2026-03-08"),
        ("0 0 * * mon-fri", "2026-03-06", "2026-03-09"),
        ("0 0 13 * FRI", "2026-03-01", "2026-03-06"),  # one of both, as cron always had it
        ("0 0 * * mon-1/2", "2026-03-03", "2026-03-09"),
        ("0 0 5-05/2 * *", "2026-03-05", "2026-04-05"),
        ("0 0 1 Mar-3/2 *", "2026-03-02", "2027-03-01"),
        ("@weekly", "2026-03-02", "2026-03-08"),
        ("@monthly", "2026-03-02", "2026-04-01"),
        ("@Yearly", "2026-03-02", "2027-01-01"),
    ],
)
def test_days(expression: str, start: str, expected: str) -> None:
    at = cron_of(expression).after(datetime.fromisoformat(start).replace(tzinfo=UTC))
    assert at is not None
    assert at.date().isoformat() == expected


@pytest.mark.parametrize(
    "wrong",
    ["", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 8", "@sometimes",
     "*/0 * * * *", "5-1 * * * *", "a * * * *", "0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 * * MON#6", "- * * * *",
     "* * ٣ * *", "5-5/0 * * * *", "5-5/x * * * *", "5-5/2/2 * * * *", "5-5/ * * * *", "99-99/2 * * * *"],
)  # fmt: skip
def test_what_is_no_expression_is_refused(wrong: str) -> None:
    with pytest.raises(CronInvalid):
        cron_of(wrong)


def test_what_is_not_due_in_five_years_is_refused() -> None:
    # A fifth Monday in February comes with a leap year that begins on the right day: 2044.
    with pytest.raises(CronNeverDue):
        Rhythm(cron="0 0 * 2 MON#5").first(datetime(2026, 3, 1, tzinfo=UTC))
    assert check_due(cron_of("0 0 * 2 MON#5"), datetime(2042, 1, 1, tzinfo=UTC)).year == 2044


@pytest.mark.parametrize("zone", ["", "Nowhere/Land", "../etc/passwd", "/etc/localtime", "Europe", "x" * 300])
def test_what_is_no_zone_is_refused(zone: str) -> None:
    with pytest.raises(TimezoneUnknown):
        cron_of("0 0 * * *", zone)


# -- against independent calculations

RANGES = ((0, 59), (0, 23), (1, 28), (1, 12), (0, 6))


def random_field(rng: random.Random, low: int, high: int) -> str:
    match rng.randrange(8):
        case 0 | 1:
            return "*"
        case 2:
            return str(rng.randint(low, high))
        case 3:
            return f"*/{rng.randint(2, max(2, (high - low) // 2))}"
        case 4:
            first = rng.randint(low, high - 1)
            step = rng.choice(["", f"/{rng.randint(1, 5)}"])
            return f"{first}-{rng.randint(first + 1, high)}{step}"
        case 5:  # a range of one is that one, whatever the step
            only = rng.randint(low, high)
            return f"{only}-{only}/{rng.randint(1, 5)}"
        case 6:
            first = rng.randint(low, high)
            return f"{first}-{first}/{rng.randint(1, 5)},{rng.randint(low, high)}"
        case _:
            return ",".join(map(str, sorted(rng.sample(range(low, high + 1), 3))))


def random_expressions(seed: int, count: int) -> Iterator[str]:
    rng = random.Random(seed)
    for _ in range(count):
        fields = [random_field(rng, low, high) for low, high in RANGES]
        # A star with a step on days is read in two ways out there (Vixie and others); we do not take sides here.
        if fields[2].startswith("*/"):
            fields[2] = "*"
        if fields[4].startswith("*/"):
            fields[4] = "*"
        yield " ".join(fields)


def as_croniter_takes_it(expression: str) -> str:
    """The same without ranges of one, which cron takes for that one, and croniter for every value there is."""
    return re.sub(r"\b(\d+)-\1(/\d+)?\b", r"\1", expression)


@pytest.mark.parametrize("count", [1_000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_thousands_of_expressions_are_due_when_croniter_says(count: int) -> None:
    rng = random.Random(2)
    for expression in random_expressions(1, count):
        start = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=rng.randrange(4 * 365 * 24 * 3600))
        theirs = croniter(as_croniter_takes_it(expression), start).get_next(datetime)
        assert cron_of(expression).after(start) == theirs, expression


ZONES = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "Asia/Shanghai"]
CHANGES = {
    "Europe/Berlin": ["2026-03-28", "2026-10-24"],
    "America/New_York": ["2026-03-07", "2026-10-31"],
    "Australia/Lord_Howe": ["2026-04-04", "2026-10-03"],
    "America/Sao_Paulo": ["2018-02-17", "2018-11-03"],
    "Asia/Shanghai": ["2026-03-28", "1991-09-14"],
}


def walked(expression: str, zone: ZoneInfo, start: datetime, end: datetime) -> list[datetime]:
    """Every due time between these by brute force: minute after minute of real time, by the rules in words."""
    fits = croniter.expand(as_croniter_takes_it(expression))[0]
    minutes, hours = (
        set(range(limit)) if "*" in fits[index] else set(fits[index]) for index, limit in ((0, 60), (1, 24))
    )
    due = []
    before = start.astimezone(zone).replace(tzinfo=None) - timedelta(minutes=1)
    latest = before  # how far the wall clock has ever been
    at = start
    while at < end:
        wall = at.astimezone(zone).replace(tzinfo=None)
        if hours == set(range(24)):
            matches = wall.minute in minutes
        else:
            # All wall times that the clock has come to or jumped over with this minute, and not been at before.
            passed = [before + timedelta(minutes=n) for n in range(1, int((wall - before) / timedelta(minutes=1)) + 1)]
            matches = any(time > latest and time.minute in minutes and time.hour in hours for time in passed)
        if matches:
            due.append(at)
        latest = max(latest, wall)
        before = wall
        at += timedelta(minutes=1)
    return due


@pytest.mark.parametrize("zone", ZONES)
def test_days_of_change_are_due_when_a_walk_over_every_minute_says(zone: str) -> None:
    rng = random.Random(zone)
    for day in CHANGES[zone]:
        start = datetime.fromisoformat(day).replace(tzinfo=UTC)
        end = start + timedelta(days=2)
        for _ in range(12):
            expression = f"{random_field(rng, 0, 59)} {random_field(rng, 0, 23)} * * *"
            cron = cron_of(expression, zone)
            ours = []
            for at in cron.times_after(start - timedelta(seconds=1)):
                if at >= end:
                    break
                ours.append(at)
            assert ours == walked(expression, cron.zone, start, end), expression
