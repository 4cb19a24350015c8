import asyncio
from dataclasses import replace

import pytest

from headrace.access import Caller, Credentials, PreconditionFailed, Role
from headrace.accounts import login, model, password_change
from headrace.accounts.errors import InvalidPassword, LoginPaused, NoPassword, SessionNeeded, WrongPassword
from headrace.accounts.service import Accounts
from headrace.audit import Who
from headrace.database import Database
from headrace.errors import Unauthenticated
from tests.accounts.conftest import PASSWORD, LogIn, MakeUser, events

NEW = "a new long phrase"


async def change(
    db: Database, accounts: Accounts, caller: Caller, current: str = PASSWORD, new: str = NEW
) -> model.User:
    return await password_change.change_password(db, accounts, caller, current=current, new=new)


async def test_a_wrong_current_password_changes_nothing_and_is_audited(
    db: Database, accounts: Accounts, make_user: MakeUser, log_in: LogIn
) -> None:
    await make_user()
    caller = await log_in()
    with pytest.raises(WrongPassword):
        await change(db, accounts, caller, current="not it at all")
    await log_in()
    assert [event["data"].get("purpose") for event in await events(db, "login")] == [None, "change", None]


async def test_guesses_with_a_stolen_session_are_paused(
    db: Database, accounts: Accounts, make_user: MakeUser, log_in: LogIn
) -> None:
    await make_user()
    caller = await log_in()
    for _ in range(5):
        with pytest.raises(WrongPassword):
            await change(db, accounts, caller, current="not it at all")
    with pytest.raises(LoginPaused):
        await change(db, accounts, caller)
    await log_in()


@pytest.mark.parametrize("new", ["short", "ada", PASSWORD])
async def test_the_new_password_keeps_the_rules(
    db: Database, accounts: Accounts, make_user: MakeUser, log_in: LogIn, new: str
) -> None:
    await make_user()
    with pytest.raises(InvalidPassword) as refused:
        await change(db, accounts, await log_in(), new=new)
    assert refused.value.details["field"] == "new_password"


async def test_an_api_key_cannot_change_it(
    db: Database, accounts: Accounts, make_user: MakeUser, log_in: LogIn
) -> None:
    await make_user()
    caller = replace(await log_in(), session_id=None, api_key_id="key_x")
    with pytest.raises(SessionNeeded):
        await change(db, accounts, caller)


async def test_a_wechat_user_has_none_to_change(db: Database, accounts: Accounts, who: Who) -> None:
    async with db.transaction() as tx:
        await tx.execute("INSERT INTO headrace.users (id, wechat_openid) VALUES ('u_x', 'o')")
    with pytest.raises(NoPassword):
        await change(db, accounts, Caller(who, "u_x", Role.USER, session_id="ses_x"))


async def test_of_two_changes_at_once_one_wins(
    db: Database, accounts: Accounts, make_user: MakeUser, log_in: LogIn
) -> None:
    await make_user()
    caller = await log_in()
    results = await asyncio.gather(
        *(change(db, accounts, caller, new=f"{NEW} {n}") for n in range(4)), return_exceptions=True
    )
    assert sum(isinstance(result, model.User) for result in results) == 1
    losers = [result for result in results if not isinstance(result, model.User)]
    assert all(isinstance(loser, PreconditionFailed | WrongPassword) for loser in losers)


async def test_a_session_ended_by_the_change_is_out(
    db: Database, accounts: Accounts, who: Who, make_user: MakeUser, log_in: LogIn
) -> None:
    await make_user()
    stolen = await login.log_in(db, accounts, who, username="ada", password=PASSWORD)
    await change(db, accounts, await log_in())
    with pytest.raises(Unauthenticated):
        await accounts.authenticate(db, who, Credentials(stolen.token, None, None), False)
