import asyncio

import pytest

from headrace.accounts import registration
from headrace.accounts.errors import RegistrationClosed, UsernameTaken
from headrace.accounts.service import Accounts
from headrace.audit import Who
from headrace.database import Database, Tx
from tests.accounts.conftest import PASSWORD, configured, events, everything_in


async def test_a_user_registers(tx: Tx, accounts: Accounts, who: Who) -> None:  # D-01
    new = await registration.prepare(accounts, username="Ada", password=PASSWORD, email="ada@example.org")
    user = await registration.register(tx, who, new)
    assert (user.username, user.email, user.status, user.role) == ("ada", "ada@example.org", "ACTIVE", "USER")
    assert user.password_hash is not None
    assert user.password_hash.startswith("$argon2id$")
    assert PASSWORD not in repr(new)
    assert user.password_hash not in repr(user)


async def test_updated_at_moves_on_every_update(tx: Tx, accounts: Accounts, who: Who) -> None:  # D-01
    user = await registration.register(tx, who, await registration.prepare(accounts, username="ada", password=PASSWORD))
    await tx.execute("UPDATE headrace.users SET email = 'x@y.z' WHERE id = $1", user.id)
    assert await tx.fetchval("SELECT updated_at FROM headrace.users WHERE id = $1", user.id) > user.updated_at


@pytest.mark.parametrize("again", ["ada", "ADA", "ａｄａ"])
async def test_a_name_is_taken_whatever_its_case(tx: Tx, accounts: Accounts, who: Who, again: str) -> None:  # D-01
    await registration.register(tx, who, await registration.prepare(accounts, username="Ada", password=PASSWORD))
    with pytest.raises(UsernameTaken):
        await registration.register(tx, who, await registration.prepare(accounts, username=again, password=PASSWORD))


async def test_of_two_who_want_a_name_at_once_one_gets_it(db: Database, accounts: Accounts, who: Who) -> None:  # D-01
    new = await registration.prepare(accounts, username="ada", password=PASSWORD)

    async def register() -> str:
        async with db.transaction() as tx:
            return (await registration.register(tx, who, new)).id

    results = await asyncio.gather(*(register() for _ in range(8)), return_exceptions=True)
    assert sum(isinstance(result, str) for result in results) == 1
    assert sum(isinstance(result, UsernameTaken) for result in results) == 7
    assert len(await events(db, "created")) == 1


async def test_registration_is_audited_without_the_password(db: Database, accounts: Accounts, who: Who) -> None:
    new = await registration.prepare(accounts, username="ada", password=PASSWORD)
    async with db.transaction() as tx:
        user = await registration.register(tx, who, new)
    (event,) = await events(db)
    assert event["resource"] == {"type": "user", "identifier": user.id, "data": {"username": "ada"}}
    assert event["client_ip"] == "192.0.2.7"
    trail = await everything_in(db)
    assert PASSWORD not in trail
    assert "$argon2" not in trail


async def test_a_closed_house_says_so(accounts: Accounts) -> None:
    registration.refuse_if_closed(accounts)
    with pytest.raises(RegistrationClosed):
        registration.refuse_if_closed(configured(accounts, registration_open=False))
