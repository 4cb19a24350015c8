"""Months as people count them, and what a plan's features come to."""

from datetime import UTC, datetime, timedelta

import pytest

from headrace.billing.features import Features, MeteredMedia, Quality, features_of, prices, read_features
from headrace.billing.granting import grant
from headrace.billing.periods import add_months, calendar_month, period_end
from headrace.billing.plans.model import FREE_PLAN
from headrace.database import Tx
from tests.migrations.rows import USER, insert


def day(month: int, date: int, year: int = 2026) -> datetime:
    return datetime(year, month, date, 8, 30, tzinfo=UTC)


def test_a_short_month_shortens_nothing_after_it() -> None:
    ends, start = [], day(1, 31)
    for _ in range(4):
        start = period_end(day(1, 31), start)
        ends.append((start.month, start.day))
    assert ends == [(2, 28), (3, 31), (4, 30), (5, 31)]
    assert add_months(day(12, 31), 2) == day(2, 28, 2027)
    assert add_months(day(1, 31, 2028), 1) == day(2, 29, 2028)


def test_calendar_months_are_utc() -> None:
    start, end = calendar_month(datetime.fromisoformat("2026-12-31T23:30:00-05:00"))
    assert (start.isoformat(), end.isoformat()) == ("2027-01-01T00:00:00+00:00", "2027-02-01T00:00:00+00:00")


@pytest.mark.parametrize(
    ("media", "quality", "size", "units"),
    [
        (MeteredMedia.IMAGE, Quality.HIGH, {}, 1),
        (MeteredMedia.PDF, Quality.STANDARD, {"pages": 12}, 12),
        (MeteredMedia.PPT, Quality.HIGH, {"pages": 3}, 3),
        (MeteredMedia.VIDEO, Quality.STANDARD, {"seconds": 0.5}, 1),
        (MeteredMedia.VIDEO, Quality.STANDARD, {"seconds": 10}, 1),
        (MeteredMedia.VIDEO, Quality.STANDARD, {"seconds": 10.01}, 2),
        (MeteredMedia.VIDEO, Quality.HIGH, {"seconds": 25}, 6),
        (MeteredMedia.IMAGE, Quality.STANDARD, {"pixels": 24_000_000}, 1),
        (MeteredMedia.IMAGE, Quality.STANDARD, {"pixels": 100_000_000}, 4),
        # Twenty photographs as one APNG cost one unit.
        (MeteredMedia.IMAGE, Quality.STANDARD, {"frames": 20, "pixels": 12_000_000}, 10),
        (MeteredMedia.IMAGE, Quality.STANDARD, {"frames": 20, "pixels": 640 * 480}, 2),
        (MeteredMedia.VIDEO, Quality.STANDARD, {"seconds": 10, "frames": 300, "pixels": 1920 * 1080}, 1),
        (MeteredMedia.VIDEO, Quality.STANDARD, {"seconds": 10, "frames": 300, "pixels": 3840 * 2160}, 4),
    ],
)
def test_what_files_cost_by_default(media: MeteredMedia, quality: Quality, size: dict[str, int], units: int) -> None:
    assert Features().units_for(media, quality, **size) == units


def test_a_plan_states_prices_by_frames_and_pixels() -> None:
    stated = prices([{"feature": "units", "media_type": "VIDEO", "quality": "HIGH", "units": 5, "per_seconds": 60}])
    assert [each for each in stated if each["media_type"] in ("IMAGE", "VIDEO")] == [
        {"feature": "units", "media_type": "IMAGE", "units": 1, "per_frames": 10, "per_pixels": 25_000_000},
        {"feature": "units", "media_type": "VIDEO", "quality": "STANDARD", "units": 1, "per_seconds": 10,
         "per_pixels": 2_500_000},
        {"feature": "units", "media_type": "VIDEO", "quality": "HIGH", "units": 5, "per_seconds": 60,
         "per_pixels": 2_500_000},
    ]  # fmt: skip
    assert {each["media_type"]: each.get("per_pages") for each in stated}["PDF"] == 1


def test_of_several_plans_the_best_counts() -> None:
    plain = read_features([{"feature": "concurrency", "tasks": 9}, {"feature": "of a newer release"}])
    videos = read_features(
        [
            {"feature": "units", "media_type": "VIDEO", "units": 1, "per_seconds": 60},
            {"feature": "max_file_bytes", "bytes": 7},
            {"feature": "max_file_bytes", "media_type": "PDF", "bytes": 1 << 40},
        ]
    )
    both = Features((plain, videos))
    assert both.units_for(MeteredMedia.VIDEO, Quality.HIGH, seconds=61) == 2
    pictures = read_features(
        [{"feature": "units", "media_type": "IMAGE", "units": 2, "per_frames": 5, "per_pixels": 9}]
    )
    assert Features((pictures,)).units_for(MeteredMedia.IMAGE, frames=6, pixels=4) == 6
    assert (both.concurrency, both.max_file_bytes(MeteredMedia.PDF), both.max_file_bytes(MeteredMedia.IMAGE)) == (
        9,
        1 << 40,
        50 << 20,
    )


def test_what_no_plan_says_is_as_in_the_settings_and_no_limit_is_the_best() -> None:
    said = read_features(
        [{"feature": "stored_bytes", "bytes": 50}, {"feature": "retention_days", "of": "results", "days": 9}]
    )
    one, both = Features((said,)), Features(((), said))
    assert (one.stored_bytes(99), both.stored_bytes(9), both.stored_bytes(99), both.stored_bytes(None)) == (
        50, 50, 99, None,
    )  # fmt: skip
    week = timedelta(days=7)
    assert (one.retention("results", week), both.retention("results", week)) == (timedelta(days=9),) * 2
    assert (both.retention("originals", week), both.retention("results", None)) == (week, None)


async def test_granted_twice_it_is_one_grant(tx: Tx) -> None:  # W-10, W-15
    await insert(tx, "users")
    await tx.execute("UPDATE headrace.plans SET features_json = $1", [{"feature": "concurrency", "tasks": 5}])
    period = {"period_start": day(1, 1), "period_end": day(2, 1)}
    of = {"user_id": USER, "plan_id": FREE_PLAN, "subscription_id": None}
    grants = [await grant(tx, **of, units=units, **period) for units in (20, 99)]  # type: ignore[arg-type]
    assert grants[0] == grants[1]
    assert grants[0].quota_left == 20
    ledger = await tx.fetch("SELECT * FROM headrace.usage_ledger WHERE user_id = $1", USER)
    assert [(row["direction"], row["status"], row["source"], row["consume_unit"]) for row in ledger] == [
        ("CREDIT", "COMMITTED", "SUBSCRIPTION_GRANT", 20)
    ]
    await tx.execute("UPDATE headrace.plans SET features_json = '[]'")
    assert (await features_of(tx, USER, now=day(1, 15))).concurrency == 5, "as it was granted"
    assert (await features_of(tx, USER, now=day(2, 1))).concurrency == 2, "only within its period"
