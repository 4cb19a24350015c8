"""Logins with a second factor."""

from datetime import UTC, datetime, timedelta

import httpx2
import pytest

from headrace.access import Caller, Role
from headrace.accounts import login, second_factor, totp
from headrace.accounts.errors import (
    AccountSuspended,
    LoginPaused,
    SecondFactorNeeded,
    SecondFactorOff,
    SecondFactorOn,
    WrongCode,
    WrongPassword,
)
from headrace.accounts.model import LoggedIn
from headrace.accounts.service import Accounts
from headrace.audit import Who
from headrace.database import Database
from tests.accounts.conftest import PASSWORD, LogIn, MakeUser, events, everything_in
from tests.accounts.test_routes import bearer, client_of, make_app

AT = datetime.now(UTC).replace(microsecond=0)


def code_at(secret: str, at: datetime) -> str:
    import base64

    return totp.code_of(base64.b32decode(secret), totp.step_of(at.timestamp()))


async def turn_on(db: Database, accounts: Accounts, caller: Caller) -> tuple[str, list[str]]:
    """The secret and the recovery codes; the code of ``AT`` is used."""
    made = await second_factor.begin(db, accounts, caller, password=PASSWORD)
    codes = await second_factor.enable(db, accounts, caller, code=code_at(made.secret, AT), now=AT)
    return made.secret, list(codes)


async def enter(
    db: Database, accounts: Accounts, who: Who, code: str | None, *, later: int = 0, password: str = PASSWORD
) -> LoggedIn:
    now = AT + timedelta(seconds=later)
    return await login.log_in(db, accounts, who, username="ada", password=password, code=code, now=now)


@pytest.mark.parametrize(
    ("at", "code"),
    [(59, "287082"), (1111111109, "081804"), (1234567890, "005924"), (2000000000, "279037"), (20000000000, "353130")],
)
def test_codes_are_those_of_the_standard(at: int, code: str) -> None:  # RFC 6238, appendix B, the last six digits
    assert totp.code_of(b"12345678901234567890", totp.step_of(at)) == code


async def test_a_login_asks_for_the_code(
    db: Database, accounts: Accounts, make_user: MakeUser, log_in: LogIn, who: Who
) -> None:
    await make_user()
    secret, _ = await turn_on(db, accounts, await log_in())
    with pytest.raises(SecondFactorNeeded):
        await enter(db, accounts, who, None, later=60)
    with pytest.raises(WrongCode):
        await enter(db, accounts, who, "000000" if code_at(secret, AT) != "000000" else "111111", later=60)
    logged_in = await enter(db, accounts, who, code_at(secret, AT + timedelta(seconds=60)), later=60)
    assert logged_in.user.second_factor_at is not None
    trail = await everything_in(db)
    assert secret not in trail
    reasons = [event["data"].get("reason") for event in await events(db, "login")]
    assert reasons == [None, "wrong_code", None]


async def test_a_code_is_accepted_once(
    db: Database, accounts: Accounts, make_user: MakeUser, log_in: LogIn, who: Who
) -> None:
    await make_user()
    secret, _ = await turn_on(db, accounts, await log_in())
    with pytest.raises(WrongCode):
        await enter(db, accounts, who, code_at(secret, AT))
    code = code_at(secret, AT + timedelta(seconds=60))
    await enter(db, accounts, who, code, later=60)
    with pytest.raises(WrongCode):
        await enter(db, accounts, who, code, later=60)


async def test_a_waiting_deletion_leaves_the_code_for_the_login_that_keeps_the_account(
    db: Database, accounts: Accounts, make_user: MakeUser, log_in: LogIn, who: Who
) -> None:
    user = await make_user()
    secret, _ = await turn_on(db, accounts, await log_in())
    async with db.transaction() as tx:
        await tx.execute("UPDATE headrace.users SET status = 'SUSPENDED' WHERE id = $1", user.id)
    code = code_at(secret, AT + timedelta(seconds=60))
    with pytest.raises(AccountSuspended):
        await enter(db, accounts, who, code, later=60)
    async with db.transaction() as tx:
        await tx.execute("UPDATE headrace.users SET status = 'ACTIVE' WHERE id = $1", user.id)
    assert (await enter(db, accounts, who, code, later=60)).user.id == user.id


async def test_a_recovery_code_replaces_the_app_once(
    db: Database, accounts: Accounts, make_user: MakeUser, log_in: LogIn, who: Who
) -> None:
    await make_user()
    caller = await log_in()
    _, codes = await turn_on(db, accounts, caller)
    assert len(set(codes)) == second_factor.RECOVERY_CODES
    await enter(db, accounts, who, codes[0].upper().replace("-", " "))
    with pytest.raises(WrongCode):
        await enter(db, accounts, who, codes[0])
    async with db.transaction() as tx:
        assert (await second_factor.get_status(tx, caller)).recovery_codes == second_factor.RECOVERY_CODES - 1
    stored = await db.fetch_alone("SELECT code_hash FROM headrace.recovery_codes")
    assert not any(code.replace("-", "").encode() in bytes(row["code_hash"]) for row in stored for code in codes)
    fresh = await second_factor.new_recovery_codes(db, accounts, caller, password=PASSWORD, code=codes[1])
    with pytest.raises(WrongCode):
        await enter(db, accounts, who, codes[2])
    await enter(db, accounts, who, fresh[0])


async def test_guesses_of_the_code_are_paused_and_the_password_alone_clears_nothing(
    db: Database, accounts: Accounts, make_user: MakeUser, log_in: LogIn, who: Who
) -> None:
    await make_user()
    secret, _ = await turn_on(db, accounts, await log_in())
    for _ in range(4):
        with pytest.raises(WrongCode):
            await enter(db, accounts, who, "12345x")
        with pytest.raises(SecondFactorNeeded):
            await enter(db, accounts, who, None)
    with pytest.raises(WrongCode):
        await enter(db, accounts, who, "12345x")
    with pytest.raises(LoginPaused):
        await enter(db, accounts, who, code_at(secret, AT))


async def test_the_secret_is_stored_encrypted_and_bound_to_its_user(
    db: Database, accounts: Accounts, make_user: MakeUser, log_in: LogIn
) -> None:
    await make_user()
    secret, _ = await turn_on(db, accounts, await log_in())
    (row,) = await db.fetch_alone("SELECT * FROM headrace.second_factors")
    assert secret not in str(dict(row))
    assert len(row["sealed_secret"]) > 40


async def test_only_the_first_code_turns_it_on(
    db: Database, accounts: Accounts, make_user: MakeUser, log_in: LogIn, who: Who
) -> None:
    await make_user()
    caller = await log_in()
    with pytest.raises(WrongPassword):
        await second_factor.begin(db, accounts, caller, password="not it at all")
    made = await second_factor.begin(db, accounts, caller, password=PASSWORD)
    await enter(db, accounts, who, None)
    with pytest.raises(WrongCode):
        await second_factor.enable(db, accounts, caller, code="12345x")
    with pytest.raises(SecondFactorOff):
        await second_factor.disable(db, accounts, caller, password=PASSWORD, code="123456")
    await second_factor.enable(db, accounts, caller, code=code_at(made.secret, AT), now=AT)
    with pytest.raises(SecondFactorOn):
        await second_factor.begin(db, accounts, caller, password=PASSWORD)


async def test_it_is_turned_off_with_the_password_and_a_code(
    db: Database, accounts: Accounts, make_user: MakeUser, log_in: LogIn, who: Who
) -> None:
    await make_user()
    caller = await log_in()
    _, codes = await turn_on(db, accounts, caller)
    with pytest.raises(WrongCode):
        await second_factor.disable(db, accounts, caller, password=PASSWORD, code="12345x")
    await second_factor.disable(db, accounts, caller, password=PASSWORD, code=codes[0])
    await enter(db, accounts, who, None)
    assert await db.fetch_alone("SELECT 1 FROM headrace.recovery_codes") == []
    assert [event["action"] for event in await events(db) if (event["data"] or {}).get("factor")] == [
        "updated",
        "enabled",
        "disabled",
    ]


async def test_a_factor_turned_on_during_the_check_refuses_the_login(
    db: Database, accounts: Accounts, make_user: MakeUser, log_in: LogIn
) -> None:
    user = await make_user()
    await turn_on(db, accounts, await log_in())
    from headrace.accounts.store import users

    async with db.transaction() as tx:
        assert await users.record_login(tx, user) is None


async def test_an_administrator_turns_it_off_for_a_user(
    db: Database, accounts: Accounts, make_user: MakeUser, log_in: LogIn, who: Who
) -> None:
    user = await make_user()
    await make_user("root", role=Role.ADMIN)
    await turn_on(db, accounts, await log_in())
    async with client_of(make_app(db, accounts)) as client:
        admin = await bearer(client, "root")
        shown = (await client.get(f"/v1/admin/users/{user.id}", headers=admin)).json()
        assert shown["second_factor_at"] is not None
        for _ in range(2):
            reply = await client.delete(f"/v1/admin/users/{user.id}/second-factor", headers=admin)
            assert (reply.status_code, reply.json()["second_factor_at"]) == (200, None)
    await enter(db, accounts, who, None)


async def test_the_whole_way_over_http(db: Database, accounts: Accounts, make_user: MakeUser) -> None:
    await make_user()
    async with client_of(make_app(db, accounts)) as client:
        session = await bearer(client)
        made = (await client.post("/v1/me/second-factor", json={"password": PASSWORD}, headers=session)).json()
        assert made["qr_code"].startswith("data:image/png;base64,")
        assert f"secret={made['secret']}" in made["uri"]
        code = code_at(made["secret"], datetime.now(UTC))
        on = await client.post("/v1/me/second-factor/enable", json={"code": code}, headers=session)
        assert on.status_code == 200, on.text
        codes = on.json()["recovery_codes"]
        body = {"username": "ada", "password": PASSWORD}
        asked = await client.post("/v1/auth/login", json=body)
        assert (asked.status_code, asked.json()["code"]) == (401, "second_factor_needed")
        assert (await client.post("/v1/auth/login", json={**body, "code": codes[0]})).status_code == 200
        status: httpx2.Response = await client.get("/v1/me/second-factor", headers=session)
        assert status.json()["recovery_codes"] == second_factor.RECOVERY_CODES - 1
        off = {"password": PASSWORD, "code": codes[1]}
        assert (await client.post("/v1/me/second-factor/disable", json=off, headers=session)).status_code == 204
        assert (await client.post("/v1/auth/login", json=body)).status_code == 200
