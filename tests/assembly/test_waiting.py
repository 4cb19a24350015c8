"""A role that starts while the database is away or overloaded waits for it."""

import pytest

from headrace.assembly import waiting
from headrace.database_errors import DatabaseBusy, DatabaseUnavailable
from headrace.errors import HeadraceError


async def test_a_start_waits_for_a_database_that_is_away_or_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "_FIRST_PAUSE_S", 0.001)
    failures: list[HeadraceError] = [DatabaseUnavailable(), DatabaseBusy()]
    notes: list[str] = []

    async def ask() -> str:
        if failures:
            raise failures.pop()
        return "here"

    assert await waiting.until_reachable(ask, notify=notes.append) == "here"
    assert len(notes) == 1
