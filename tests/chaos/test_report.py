"""A run of chaos that judged nothing has not passed, and one slow invariant does not end it."""

from datetime import timedelta

import pytest

from headrace.database import Database, DatabaseConfig
from tests.attack import invariants
from tests.attack.model import Invariant
from tests.chaos import reading
from tests.chaos.faults import Planned
from tests.chaos.load import Promises
from tests.chaos.report import Report

JUDGED = {"tasks": 3, "units": 5, "deliveries": 7, "files": 2, "removals": 1, "orders": 1}


def report(**judged: int) -> Report:
    made = Report(7, 60, Promises(), judged={**JUDGED, **judged})
    made.fault(Planned(1, "kill worker", 1), "process 17")
    return made


def test_the_report_says_how_much_was_judged() -> None:
    assert report().all_broken == []
    assert "judged: 1 faults, 3 tasks, 5 units, 7 deliveries, 2 files, 1 removals, 1 orders" in report().text()


@pytest.mark.parametrize("name", JUDGED)
def test_nothing_to_judge_is_a_failure(name: str) -> None:
    """Invariants over empty tables held in every run of chaos: money, webhooks and files were never tried."""
    assert report(**{name: 0}).all_broken == [f"there were no {name} to judge"]


def test_faults_that_came_to_nothing_do_not_count() -> None:
    idle = Report(7, 60, Promises(), judged=JUDGED)
    idle.fault(Planned(1, "kill worker", 1), "nobody there")
    assert idle.all_broken == ["there were no faults to judge"]


@pytest.mark.long
async def test_an_invariant_that_takes_too_long_is_reported_and_the_others_are_read(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = Invariant("this is slow", (), "SELECT pg_sleep(60)")
    wrong = Invariant("this is wrong", (), "SELECT 1 AS one")
    monkeypatch.setattr(invariants, "ALL", [slow, wrong])
    monkeypatch.setattr(reading, "OWN", {each.holds: each.sql for each in (slow, wrong)})
    async with await Database.connect(DatabaseConfig(database_url, statement_timeout=timedelta(seconds=2))) as db:
        for found in (await invariants.broken(db, at_rest=True), await reading.own_broken(db)):
            assert [each.holds for each in found] == ["this is slow", "this is wrong"]
            assert "not read" in str(found[0])
