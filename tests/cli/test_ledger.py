"""``headrace ledger`` and ``headrace usage``: what an operator asks of the books."""

import asyncio
import json
from collections.abc import Callable

import pytest

from headrace.database import Database, DatabaseConfig
from tests.billing.stand import grant_alone
from tests.cli.conftest import Call, Place
from tests.e2e.program import Done
from tests.edge.stand import user

Headrace = Callable[..., Done]


@pytest.fixture
def headrace(call: Call, migrated: Place) -> Headrace:
    return lambda *words: call(*words, settings=migrated.settings)


async def prepare(url: str) -> str:
    async with await Database.connect(DatabaseConfig(url, role="test")) as db:
        return await grant_alone(db, await user(db, "bea"), 10)


async def harm(url: str) -> None:
    async with await Database.connect(DatabaseConfig(url, role="test")) as db:
        await db.fetch_alone("UPDATE headrace.entitlements SET quota_left = 1")


def test_adjust_list_and_verify(headrace: Headrace, migrated: Place) -> None:  # W-10, W-11
    quota = asyncio.run(prepare(migrated.app_url))
    words = ("ledger", "adjust", quota, "--units", "5", "--reason", "the outage", "--key", "monday")
    assert headrace(*words).out == f"{quota}: 15 of 15 units are left\n"
    assert headrace(*words).out == f"{quota}: 15 of 15 units are left\n"  # the same key changes nothing
    refused = headrace("ledger", "adjust", quota, "--units", "-16", "--reason", "a mistake")
    assert refused.code == 4
    assert "Only 15 of the 15 units are left" in refused.err
    reused = headrace("ledger", "adjust", quota, "--units", "6", "--reason", "the outage", "--key", "monday")
    assert (reused.code, "used for another request" in reused.err) == (2, True)

    entries = json.loads(headrace("ledger", "list", "--user", "bea", "--json").out)
    assert [(entry["source"], entry["units"]) for entry in entries] == [
        ("MANUAL_ADJUST", 5),
        ("SUBSCRIPTION_GRANT", 10),
    ]
    assert "the outage" in headrace("ledger", "list").out
    [shown] = json.loads(headrace("ledger", "entitlements", "--json").out)
    assert (shown["id"], shown["quota_left"]) == (quota, 15)

    clean = headrace("ledger", "verify")
    assert (clean.code, "2 entries and 1 entitlements" in clean.out, "all of it adds up" in clean.out) == (
        0,
        True,
        True,
    )
    asyncio.run(harm(migrated.app_url))
    broken = headrace("ledger", "verify")
    assert broken.code == 1
    assert f"quota_unexplained: {quota}" in broken.out
    assert json.loads(headrace("ledger", "verify", "--no-archives", "--json").out)["fault_count"] == 1
    looked = headrace("doctor", "--json")
    [finding] = [each for each in json.loads(looked.out) if each["check"] == "ledger"]
    assert (finding["verdict"], "1 things do not add up" in finding["message"]) == ("bad", True)


def test_usage_of_somebody(headrace: Headrace, migrated: Place) -> None:
    asyncio.run(prepare(migrated.app_url))
    assert "10 of 10 units are left and 0 held, until" in headrace("usage", "balance", "bea").out
    assert json.loads(headrace("usage", "balance", "bea", "--json").out)["left"] == 10
    assert len(json.loads(headrace("usage", "days", "bea", "--json").out)) == 30
    assert headrace("usage", "days", "bea", "--since", "yesterday").code == 2
    [charged] = json.loads(headrace("usage", "list", "bea", "--json").out)
    assert charged["source"] == "SUBSCRIPTION_GRANT"
    lines = headrace("usage", "export", "bea").out.splitlines()
    assert (len(lines), lines[0].split(",")[0]) == (2, "id")
    assert headrace("usage", "export", "bea", "--output", "usage.csv").code == 0
    assert headrace("usage", "balance", "nobody").code == 3
