"""The statement that finds the user of a request counts it against the user's rate limit as well."""

from datetime import timedelta
from urllib.parse import urlsplit

import pytest

from headrace.access import Count, Credentials
from headrace.accounts import api_keys, login
from headrace.accounts.errors import CsrfFailed
from headrace.accounts.service import Accounts
from headrace.audit import Who
from headrace.database import Database, DatabaseConfig
from headrace.edge.limits import LimitConfig, Refused, allowance_of, bucket_of, take
from headrace.errors import Unauthenticated
from tests.accounts.conftest import PASSWORD, LogIn, MakeUser
from tests.conftest import TestServer

TWO = LimitConfig(per_minute=1, burst=2)


@pytest.fixture(params=["session", "key"])
async def bearer(
    request: pytest.FixtureRequest, db: Database, accounts: Accounts, make_user: MakeUser, log_in: LogIn, who: Who
) -> str:
    await make_user("ada")
    if request.param == "session":
        return (await login.log_in(db, accounts, who, username="ada", password=PASSWORD)).token
    caller = await log_in("ada")
    async with db.transaction() as tx:
        return (await api_keys.create_api_key(tx, caller, name="k", scopes={"tasks:read"})).key


async def test_requests_count_until_the_window_is_used_up(
    db: Database, accounts: Accounts, bearer: str, who: Who
) -> None:
    credentials = Credentials(bearer, None, None, TWO.rate)
    left = []
    for _ in range(2):
        caller = await accounts.authenticate(db, who, credentials, False)
        assert caller.count is not None
        left.append(allowance_of(caller.count, TWO).remaining)
    assert left == [1, 0]
    caller = await accounts.authenticate(db, who, credentials, False)
    assert caller.count is not None
    with pytest.raises(Refused) as refused:
        allowance_of(caller.count, TWO)
    assert refused.value.retry_after is not None
    assert timedelta(seconds=55) < refused.value.retry_after <= timedelta(minutes=1)
    with pytest.raises(Refused):  # one window for both ways to count
        await take(db, bucket_of(user_id=caller.user_id, client_ip=None), TWO)


async def test_without_a_limit_nothing_is_counted(db: Database, accounts: Accounts, bearer: str, who: Who) -> None:
    assert (await accounts.authenticate(db, who, Credentials(bearer, None, None), False)).count is None
    assert await db.fetch_alone("SELECT FROM headrace.rate_limits WHERE bucket LIKE 'user:%'") == []


async def test_wrong_credentials_count_no_user(db: Database, accounts: Accounts, bearer: str, who: Who) -> None:
    with pytest.raises(Unauthenticated):
        await accounts.authenticate(db, who, Credentials(f"{bearer}x", None, None, TWO.rate), False)
    assert await db.fetch_alone("SELECT FROM headrace.rate_limits WHERE bucket LIKE 'user:%'") == []


async def test_a_request_goes_on_when_its_count_cannot_be_had(
    db: Database, accounts: Accounts, bearer: str, who: Who
) -> None:
    config = DatabaseConfig(db.config.url, statement_timeout=timedelta(milliseconds=300))
    async with await Database.connect(config) as hurried, db.transaction() as tx:
        await tx.execute("LOCK TABLE headrace.rate_limits IN EXCLUSIVE MODE")
        caller = await accounts.authenticate(hurried, who, Credentials(bearer, None, None, TWO.rate), False)
    assert caller.count == Count(known=False)


@pytest.mark.parametrize("code", ["53100", "25006"], ids=["the disk is full", "the server only reads"])
async def test_a_request_goes_on_when_counts_cannot_be_written(
    db: Database, accounts: Accounts, bearer: str, who: Who, server: TestServer, database_url: str, code: str
) -> None:
    database = urlsplit(database_url).path.removeprefix("/")
    await server.run(
        "CREATE FUNCTION headrace.refuse() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '{code}'; END $$",
        database=database,
    )
    await server.run(
        "CREATE TRIGGER refuse BEFORE INSERT ON headrace.rate_limits FOR EACH ROW EXECUTE FUNCTION headrace.refuse()",
        database=database,
    )
    caller = await accounts.authenticate(db, who, Credentials(bearer, None, None, TWO.rate), False)
    assert caller.count == Count(known=False)
    with pytest.raises(Unauthenticated):
        await accounts.authenticate(db, who, Credentials(f"{bearer}x", None, None, TWO.rate), False)


async def test_a_request_with_a_foreign_cookie_counts_no_user(
    db: Database, accounts: Accounts, make_user: MakeUser, who: Who
) -> None:
    """A page that has the cookie sent could use up the user's requests."""
    await make_user("ada")
    cookie = (await login.log_in(db, accounts, who, username="ada", password=PASSWORD)).token
    with pytest.raises(CsrfFailed):
        await accounts.authenticate(db, who, Credentials(None, cookie, "wrong", TWO.rate), True)
    assert await db.fetch_alone("SELECT FROM headrace.rate_limits WHERE bucket LIKE 'user:%'") == []
