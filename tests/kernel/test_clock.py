"""The database's clock: links, tokens and signatures do not depend on the host that made them."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo

import pytest

from headrace import clock
from headrace.assets import links
from headrace.assets.links import Grant, Target
from headrace.database import Database, DatabaseConfig
from headrace.webhooks.secrets import Secret
from headrace.webhooks.signing import Signer


@pytest.fixture(autouse=True)
def unmeasured() -> Iterator[None]:
    before = clock._measured
    clock._measured = None
    yield
    clock._measured = before


def differ_by(skew: timedelta) -> None:
    clock.measure(datetime.now(UTC) + skew, asked_at=clock.ticks())


@pytest.mark.parametrize("minutes", [5, -5])
def test_a_link_of_a_host_whose_clock_is_minutes_off_is_good_on_another(minutes: int) -> None:
    """The other host's clock is right, and so is the database's; a link of 120 s was answered with 404."""
    made = clock.now()
    differ_by(timedelta(minutes=minutes))  # this host sees the database's clock that far from its own
    grant = Grant(Target.CONTENT, "ast_1", (made + timedelta(minutes=minutes, seconds=120)).replace(microsecond=0))
    token = links.seal(b"key", grant)
    assert links.unseal(b"key", token).id == "ast_1"


def test_a_webhook_is_stamped_with_the_databases_time() -> None:
    differ_by(timedelta(minutes=5))
    stamp = Signer([Secret(b"x" * 32)]).headers("evt_1", "{}")["webhook-timestamp"]
    assert abs(int(stamp) - (datetime.now(UTC) + timedelta(minutes=5)).timestamp()) < 60


def test_a_step_of_the_local_clock_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    differ_by(timedelta(minutes=5))
    before = clock.now()

    class Stepped(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> "Stepped":
            return cls(2001, 1, 1, tzinfo=tz)

    monkeypatch.setattr(clock, "datetime", Stepped)
    assert timedelta(0) <= clock.now() - before < timedelta(minutes=1)


def test_clocks_that_agree_are_not_rounded_by_a_round_trip() -> None:
    differ_by(timedelta(milliseconds=5))
    assert clock._measured is None


async def test_each_new_connection_reads_the_databases_clock(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[datetime] = []
    monkeypatch.setattr(clock, "measure", lambda theirs, **_: measured.append(theirs))
    async with await Database.connect(DatabaseConfig(database_url)):
        assert len(measured) == 1
