"""Rate limits that hold over all processes, tell callers where they stand, and give way when the database is gone."""

import asyncio
import time
from datetime import timedelta

import pytest

from headrace import ids
from headrace.database import Database
from headrace.database_errors import DatabaseUnavailable
from headrace.edge import limits as gcra
from headrace.edge.limits import LimitConfig, Limiter, Refused, bucket_of
from tests.edge import stand

MINUTE = timedelta(minutes=1)
TIGHT = LimitConfig(per_minute=1, burst=3)  # slow enough that a slow test changes nothing


async def _go_back(db: Database, interval: str) -> None:
    """As if this much more time had passed."""
    async with db.transaction() as tx:
        await tx.execute(f"UPDATE headrace.rate_limits SET tat = tat - interval '{interval}'")


async def test_a_burst_goes_through_and_then_the_average_counts(db: Database) -> None:
    remaining = [(await gcra.take(db, "user:a", TIGHT)).remaining for _ in range(3)]
    assert remaining == [2, 1, 0]
    with pytest.raises(Refused) as refused:
        await gcra.take(db, "user:a", TIGHT)
    assert refused.value.retry_after is not None
    assert MINUTE * 0.5 < refused.value.retry_after <= MINUTE
    assert (await gcra.take(db, "user:b", TIGHT)).remaining == 2


async def test_a_refusal_costs_nothing(db: Database) -> None:
    for _ in range(3):
        await gcra.take(db, "user:a", TIGHT)
    for _ in range(5):
        with pytest.raises(Refused) as refused:
            await gcra.take(db, "user:a", TIGHT)
    assert refused.value.retry_after is not None
    assert refused.value.retry_after <= MINUTE


async def test_what_was_spent_comes_back_with_time(db: Database) -> None:
    for _ in range(3):
        await gcra.take(db, "user:a", TIGHT)
    await _go_back(db, "2 minutes")
    assert (await gcra.take(db, "user:a", TIGHT)).remaining == 1
    # Long ago is not more than full.
    await _go_back(db, "1 day")
    assert (await gcra.take(db, "user:a", TIGHT)).remaining == 2


async def test_only_callers_with_their_whole_allowance_are_forgotten(db: Database) -> None:
    await gcra.take(db, "user:old", TIGHT)
    await _go_back(db, "1 hour")
    await gcra.take(db, "user:new", TIGHT)
    async with db.transaction() as tx:
        assert await gcra.forget(tx, 10) == 1
        assert [row["bucket"] for row in await tx.fetch("SELECT bucket FROM headrace.rate_limits")] == ["user:new"]


async def test_two_processes_share_one_limit(db: Database) -> None:
    limits = LimitConfig(per_minute=1, burst=10)
    async with (
        stand.client(stand.app(db, limits=limits), **stand.AUTHORIZED) as one,
        stand.client(stand.app(db, limits=limits), **stand.AUTHORIZED) as other,
    ):
        answers = await asyncio.gather(*((one, other)[number % 2].get("/v1/me") for number in range(30)))
    passed = [answer for answer in answers if answer.status_code == 200]
    refused = [answer for answer in answers if answer.status_code == 429]
    assert (len(passed), len(refused)) == (10, 20)
    left = sorted(int(answer.headers["RateLimit-Remaining"]) for answer in passed)
    # Each counts from the start of its own transaction, and they commit in another order.
    assert all(abs(one - other) <= 1 for one, other in zip(left, range(10), strict=True)), left


async def test_the_answer_says_where_the_caller_stands(db: Database) -> None:
    async with stand.client(stand.app(db, limits=TIGHT), **stand.AUTHORIZED) as client:
        first = await client.get("/v1/me")
        for _ in range(3):
            last = await client.get("/v1/me")
    assert first.headers["RateLimit-Policy"] == '"default";q=3;w=180'
    assert first.headers["RateLimit"] == '"default";r=2;t=60'
    assert (first.headers["RateLimit-Limit"], first.headers["RateLimit-Remaining"]) == ("3", "2")
    assert (last.status_code, last.json()["code"]) == (429, "rate_limited")
    assert 30 < int(last.headers["Retry-After"]) <= 60
    assert last.headers["RateLimit-Remaining"] == "0"
    assert last.headers["RateLimit"].startswith('"default";r=0;t=')


async def test_errors_carry_the_limit_too(db: Database) -> None:
    async with stand.client(stand.app(db), **stand.AUTHORIZED) as client:
        for path in ("/v1/failing/conflict", "/v1/failing/unforeseen"):
            assert "RateLimit" in (await client.get(path)).headers


async def test_users_do_not_share_and_addresses_do(db: Database) -> None:
    app = stand.app(db, limits=LimitConfig(per_minute=1, burst=1))
    async with stand.client(app) as client:
        for user in (ids.new("u"), ids.new("u")):
            assert (await client.get("/v1/me", headers={"Authorization": f"Bearer {user}"})).status_code == 200
        assert (await client.post("/v1/echo", json={"name": "a"})).status_code == 200
        assert (await client.post("/v1/echo", json={"name": "a"})).status_code == 429
    async with stand.client(app, peer="198.51.100.1") as elsewhere:
        assert (await elsewhere.post("/v1/echo", json={"name": "a"})).status_code == 200


async def test_guessing_tokens_counts_against_the_address(db: Database) -> None:
    async with stand.client(stand.app(db, limits=LimitConfig(per_minute=1, burst=2))) as client:
        answers = [await client.get("/v1/me", headers={"Authorization": f"Bearer {number}"}) for number in range(3)]
    assert [answer.status_code for answer in answers] == [401, 401, 429]


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
async def test_probes_are_not_counted(db: Database, path: str) -> None:
    async with stand.client(stand.app(db, limits=LimitConfig(per_minute=1, burst=1))) as client:
        answers = [await client.get(path) for _ in range(3)]
    assert {answer.status_code for answer in answers} == {200}
    assert not any("RateLimit" in answer.headers for answer in answers)


async def test_pages_are_counted_by_address(db: Database) -> None:
    async with stand.client(stand.app(db, limits=LimitConfig(per_minute=1, burst=3))) as client:
        statuses = [(await client.get(path)).status_code for path in ("/", "/docs", "/openapi.json", "/docs")]
    assert statuses == [200, 200, 200, 429]


async def test_a_flood_does_not_reach_the_database(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    limiter = Limiter(db, TIGHT)
    calls = 0
    take = gcra.take

    async def counted(db: Database, bucket: str, config: LimitConfig) -> gcra.Allowance:
        nonlocal calls
        calls += 1
        return await take(db, bucket, config)

    monkeypatch.setattr(gcra, "take", counted)
    for _ in range(3):
        await limiter.check("user:a")
    for _ in range(50):
        with pytest.raises(Refused) as refused:
            await limiter.check("user:a")
    assert calls == 4
    assert refused.value.retry_after is not None
    # A refusal that is remembered ends when it said it would.
    clock = time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: clock() + 61)
    with pytest.raises(Refused):
        await limiter.check("user:a")
    assert calls == 5


async def test_without_a_database_the_request_fails_for_its_own_reason(db: Database) -> None:
    app = stand.app(db)
    await db.close()
    async with stand.client(app) as client:
        assert (await client.post("/v1/echo", json={"name": "a"})).status_code == 200
        needs_it = await client.get("/v1/echo/word")
    assert (needs_it.status_code, needs_it.json()["code"]) == (503, DatabaseUnavailable.code)
    assert "Retry-After" in needs_it.headers


@pytest.mark.parametrize(
    ("user_id", "client_ip", "bucket"),
    [
        ("u_1", "192.0.2.1", "user:u_1"),
        (None, "192.0.2.1", "address:192.0.2.1"),
        (None, "2001:db8:1:2:3:4:5:6", "address:2001:db8:1:2::/64"),
        (None, "2001:db8:1:2:ffff::1", "address:2001:db8:1:2::/64"),
        (None, None, "address:unknown"),
    ],
)
def test_who_is_counted(user_id: str | None, client_ip: str | None, bucket: str) -> None:
    assert bucket_of(user_id=user_id, client_ip=client_ip) == bucket


def test_a_limit_that_lets_nobody_through_is_a_mistake() -> None:
    with pytest.raises(ValueError):
        LimitConfig(per_minute=0)
