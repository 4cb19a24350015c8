import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from headrace.access import Caller, Credentials, Role, Scope
from headrace.accounts import administration, api_keys, model, tokens
from headrace.accounts.errors import (
    ApiKeyNameTaken,
    ApiKeyNotFound,
    InvalidExpiry,
    InvalidScopes,
    SessionNeeded,
    TooManyApiKeys,
)
from headrace.accounts.service import Accounts
from headrace.accounts.store import api_keys as store
from headrace.audit import ActorType, Who
from headrace.database import Database
from headrace.errors import Unauthenticated
from tests.accounts.conftest import LogIn, MakeUser, events, everything_in

READ = frozenset({Scope.TASKS_READ})


async def make_key(
    db: Database,
    caller: Caller,
    name: str = "import",
    scopes: frozenset[str] = READ,
    expires_at: datetime | None = None,
) -> model.ApiKeyMade:
    async with db.transaction() as tx:
        return await api_keys.create_api_key(tx, caller, name=name, scopes=scopes, expires_at=expires_at)


@pytest.fixture
async def ada(make_user: MakeUser, log_in: LogIn) -> Caller:
    await make_user("ada")
    return await log_in("ada")


async def use(db: Database, accounts: Accounts, who: Who, key: str) -> Caller:
    return await accounts.authenticate(db, who, Credentials(key, None, None), True)


async def test_a_key_stands_for_its_user_within_its_scopes(
    db: Database, accounts: Accounts, who: Who, ada: Caller
) -> None:
    made = await make_key(db, ada)
    assert made.key.startswith("hrk_")
    assert made.api_key.key_hint == made.key[-4:]
    caller = await use(db, accounts, who, made.key)
    assert (caller.user_id, caller.api_key_id, caller.session_id) == (ada.user_id, made.api_key.id, None)
    assert caller.may(Scope.TASKS_READ)
    assert not caller.may(Scope.TASKS_WRITE)


async def test_a_key_is_shown_once_and_stored_as_its_hash(db: Database, ada: Caller) -> None:
    made = await make_key(db, ada)
    assert made.key not in repr(made)
    async with db.transaction() as tx:
        row = await tx.fetchrow("SELECT * FROM headrace.api_keys")
    assert row is not None
    assert row["key_hash"] == tokens.digest(made.key)
    assert made.key not in str(row)
    assert made.key not in await everything_in(db)


async def test_an_administrator_s_key_is_one_only_with_the_scope(
    db: Database, accounts: Accounts, who: Who, make_user: MakeUser, log_in: LogIn
) -> None:
    await make_user("root", role=Role.ADMIN)
    root = await log_in("root")
    narrow = await use(db, accounts, who, (await make_key(db, root, "narrow")).key)
    wide = await use(db, accounts, who, (await make_key(db, root, "wide", frozenset({Scope.ADMIN}))).key)
    assert not narrow.is_admin
    assert narrow.who.actor_type is ActorType.USER
    assert wide.is_admin
    assert wide.who.actor_type is ActorType.ADMIN


async def test_nobody_gets_more_than_they_have(db: Database, ada: Caller) -> None:
    with pytest.raises(InvalidScopes):
        await make_key(db, ada, scopes=frozenset({Scope.ADMIN}))
    with pytest.raises(InvalidScopes):
        await make_key(db, ada, scopes=frozenset())
    for scope in ("tasks:submit:", "tasks:submit:a b", "tasks:submit:*", "tasks:delete", "tasks:submit:a*b"):
        with pytest.raises(InvalidScopes, match="There is no scope"):
            await make_key(db, ada, scopes=frozenset({scope}))
    await make_key(db, ada, name="for one type", scopes=frozenset({"tasks:submit:report.build", "tasks:submit:mail.*"}))
    with pytest.raises(SessionNeeded):
        await make_key(db, replace(ada, session_id=None, api_key_id="key_x", scopes=frozenset(Scope)))


async def test_a_key_expires(db: Database, accounts: Accounts, who: Who, ada: Caller) -> None:
    soon = datetime.now(UTC) + timedelta(hours=1)
    made = await make_key(db, ada, expires_at=soon)
    await use(db, accounts, who, made.key)
    async with db.transaction() as tx:
        digest = tokens.digest(made.key)
        assert await store.find_holder(tx, digest, seen_every=timedelta(minutes=1), now=soon) is None
    with pytest.raises(InvalidExpiry):
        await make_key(db, ada, "past", expires_at=datetime.now(UTC) - timedelta(seconds=1))


async def test_a_name_is_free_again_once_its_key_is_revoked(db: Database, ada: Caller) -> None:
    made = await make_key(db, ada)
    with pytest.raises(ApiKeyNameTaken):
        await make_key(db, ada)
    async with db.transaction() as tx:
        await api_keys.revoke_api_key(tx, ada, made.api_key.id)
    await make_key(db, ada)


async def test_of_two_keys_of_one_name_at_once_one_is_made(db: Database, ada: Caller) -> None:
    results = await asyncio.gather(*(make_key(db, ada) for _ in range(5)), return_exceptions=True)
    assert sum(isinstance(result, model.ApiKeyMade) for result in results) == 1
    assert sum(isinstance(result, ApiKeyNameTaken) for result in results) == 4


async def test_a_revoked_key_stops_at_once(db: Database, accounts: Accounts, who: Who, ada: Caller) -> None:
    made = await make_key(db, ada)
    async with db.transaction() as tx:
        await api_keys.revoke_api_key(tx, ada, made.api_key.id)
        assert await api_keys.list_api_keys(tx, ada, older_than=None, limit=10) == []
    with pytest.raises(Unauthenticated):
        await use(db, accounts, who, made.key)
    created, revoked = await events(db, "created"), await events(db, "revoked")
    assert created[-1]["resource"]["identifier"] == revoked[-1]["resource"]["identifier"] == made.api_key.id


async def test_a_suspended_user_s_keys_stop_and_come_back(
    db: Database, accounts: Accounts, who: Who, ada: Caller
) -> None:
    made = await make_key(db, ada)
    async with db.transaction() as tx:
        await administration.suspend(tx, who, ada.user_id)
    with pytest.raises(Unauthenticated):
        await use(db, accounts, who, made.key)
    async with db.transaction() as tx:
        await administration.reinstate(tx, who, ada.user_id)
    await use(db, accounts, who, made.key)


async def test_another_s_key_looks_like_none(db: Database, ada: Caller, make_user: MakeUser, log_in: LogIn) -> None:
    made = await make_key(db, ada)
    await make_user("bob")
    bob = await log_in("bob")
    for verb in (api_keys.get_api_key, api_keys.revoke_api_key):
        for key_id in (made.api_key.id, "key_none"):
            with pytest.raises(ApiKeyNotFound):
                async with db.transaction() as tx:
                    await verb(tx, bob, key_id)
    async with db.transaction() as tx:
        assert await api_keys.list_api_keys(tx, bob, older_than=None, limit=10) == []
        assert await api_keys.get_api_key(tx, ada, made.api_key.id) == made.api_key


async def test_use_is_noted_once_a_minute_at_the_most(db: Database, accounts: Accounts, who: Who, ada: Caller) -> None:
    made = await make_key(db, ada)
    await use(db, accounts, who, made.key)
    async with db.transaction() as tx:
        used = (await api_keys.get_api_key(tx, ada, made.api_key.id)).last_used_at
        assert used is not None
        every = timedelta(minutes=1)
        assert not await store.note_used(tx, made.api_key.id, every=every, now=used + timedelta(seconds=59))
        assert await store.note_used(tx, made.api_key.id, every=every, now=used + timedelta(seconds=60))


async def test_api_keys_of_one_user_have_a_cap(db: Database, ada: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_keys, "MAX_API_KEYS", 1)
    async with db.transaction() as tx:
        made = await api_keys.create_api_key(tx, ada, name="one", scopes={"tasks:read"})
        with pytest.raises(TooManyApiKeys):
            await api_keys.create_api_key(tx, ada, name="two", scopes={"tasks:read"})
        await api_keys.revoke_api_key(tx, ada, made.api_key.id)
        await api_keys.create_api_key(tx, ada, name="two", scopes={"tasks:read"})
