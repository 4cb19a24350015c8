import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from headrace.access import Caller, Credentials, Role
from headrace.accounts import login, model, sessions, tokens
from headrace.accounts.config import SessionConfig
from headrace.accounts.errors import CsrfFailed, SessionNeeded, SessionNotFound
from headrace.accounts.service import Accounts
from headrace.accounts.store import sessions as store
from headrace.audit import ActorType, Who
from headrace.database import Database
from headrace.errors import Denied, Unauthenticated
from tests.accounts.conftest import PASSWORD, LogIn, MakeUser, events, everything_in


async def enter(db: Database, accounts: Accounts, who: Who) -> model.LoggedIn:
    return await login.log_in(db, accounts, who, username="ada", password=PASSWORD)


async def change(db: Database, sql: str, *args: object) -> None:
    async with db.transaction() as tx:
        assert await tx.count(sql, *args) > 0


async def test_a_session_stands_for_its_user(db: Database, accounts: Accounts, who: Who, make_user: MakeUser) -> None:
    user = await make_user(role=Role.ADMIN)
    logged_in = await enter(db, accounts, who)
    for credentials in (Credentials(logged_in.token, None, None), Credentials(None, logged_in.token, None)):
        caller = await accounts.authenticate(db, who, credentials, False)
        assert (caller.user_id, caller.role, caller.session_id) == (user.id, Role.ADMIN, logged_in.session.id)
        assert caller.is_admin
        assert caller.scopes is None
        assert caller.who.principal.username == "ada"
        assert caller.who.actor_type is ActorType.ADMIN
        assert caller.who.client_ip == who.client_ip


async def test_only_the_hash_of_a_token_is_stored(
    db: Database, accounts: Accounts, who: Who, make_user: MakeUser
) -> None:
    await make_user()
    token = (await enter(db, accounts, who)).token
    assert len(token) == 4 + 43
    async with db.transaction() as tx:
        row = await tx.fetchrow("SELECT * FROM headrace.sessions")
    assert token not in str(row)
    assert token not in await everything_in(db)


@pytest.mark.parametrize("token", ["", "hrs_", "hrs_wrong", "hrk_wrong", "other", "hrs_\ud800", "hrs_" + "x" * 5000])
async def test_a_wrong_token_stands_for_nobody(db: Database, accounts: Accounts, who: Who, token: str) -> None:
    with pytest.raises(Unauthenticated):
        await accounts.authenticate(db, who, Credentials(token, None, None), False)
    with pytest.raises(Unauthenticated):
        await accounts.authenticate(db, who, Credentials(None, token, None), False)


async def test_nothing_stands_for_nobody(db: Database, accounts: Accounts, who: Who) -> None:
    with pytest.raises(Unauthenticated):
        await accounts.authenticate(db, who, Credentials(None, None, None), False)


@pytest.mark.parametrize(
    "ending",
    [
        "UPDATE headrace.sessions SET revoked_at = now()",
        "UPDATE headrace.sessions SET created_at = now() - interval '2 s', expires_at = now() - interval '1 s'",
        "UPDATE headrace.sessions SET last_seen_at = now() - interval '7 days 1 s'",
        "UPDATE headrace.users SET status = 'SUSPENDED' WHERE username = 'ada'",
        "UPDATE headrace.users SET status = 'DELETED', deleted_at = now() WHERE username = 'ada'",
    ],
)
async def test_what_ends_a_session(
    db: Database, accounts: Accounts, who: Who, make_user: MakeUser, ending: str
) -> None:
    await make_user()
    logged_in = await enter(db, accounts, who)
    await change(db, ending)
    with pytest.raises(Unauthenticated):
        await accounts.authenticate(db, who, Credentials(logged_in.token, None, None), False)


async def test_a_cookie_needs_the_csrf_token_to_change_something(
    db: Database, accounts: Accounts, who: Who, make_user: MakeUser
) -> None:
    await make_user()
    mine, other = await enter(db, accounts, who), await enter(db, accounts, who)
    csrf = tokens.csrf(accounts.csrf_key, mine.session.id)
    await accounts.authenticate(db, who, Credentials(None, mine.token, csrf), True)
    await accounts.authenticate(db, who, Credentials(None, mine.token, None), False)
    await accounts.authenticate(db, who, Credentials(mine.token, None, None), True)
    for wrong in (None, "", "é", tokens.csrf(accounts.csrf_key, other.session.id), tokens.csrf(b"k", mine.session.id)):
        with pytest.raises(CsrfFailed):
            await accounts.authenticate(db, who, Credentials(None, mine.token, wrong), True)
    assert issubclass(CsrfFailed, Denied)


async def test_use_is_noted_once_a_minute_at_the_most(
    db: Database, accounts: Accounts, who: Who, make_user: MakeUser
) -> None:
    await make_user()
    session = (await enter(db, accounts, who)).session
    every = timedelta(minutes=1)
    async with db.transaction() as tx:
        assert not await store.note_seen(tx, session.id, every=every, now=session.created_at + timedelta(seconds=59))
        assert await store.note_seen(tx, session.id, every=every, now=session.created_at + timedelta(seconds=60))
        assert not await store.note_seen(tx, session.id, every=every, now=session.created_at + timedelta(seconds=61))


async def test_requests_at_once_neither_wait_nor_write_twice(
    db: Database, accounts: Accounts, who: Who, make_user: MakeUser
) -> None:
    await make_user()
    session = (await enter(db, accounts, who)).session
    now = session.created_at + timedelta(minutes=5)

    async def note() -> bool:
        async with db.transaction() as tx:
            return await store.note_seen(tx, session.id, every=timedelta(minutes=1), now=now)

    async with db.transaction() as slow:
        assert await store.note_seen(slow, session.id, every=timedelta(minutes=1), now=now)
        async with asyncio.timeout(60):
            assert await note() is False
    assert await note() is False


async def test_idle_time_is_counted_from_the_last_use(
    db: Database, accounts: Accounts, who: Who, make_user: MakeUser
) -> None:
    await make_user()
    config = SessionConfig(lifetime=timedelta(days=30), idle_lifetime=timedelta(hours=1))
    logged_in = await enter(db, accounts, who)
    at = logged_in.session.created_at

    async def holder(after: timedelta) -> store.Holder | None:
        async with db.transaction() as tx:
            return await store.find_holder(
                tx,
                tokens.digest(logged_in.token),
                idle_lifetime=config.idle_lifetime,
                seen_every=config.seen_every,
                now=at + after,
            )

    assert await holder(timedelta(minutes=59)) is not None
    assert await holder(timedelta(minutes=61)) is None
    async with db.transaction() as tx:
        await store.note_seen(tx, logged_in.session.id, every=config.seen_every, now=at + timedelta(minutes=59))
    assert await holder(timedelta(minutes=61)) is not None
    assert await holder(timedelta(days=31)) is None


async def test_sessions_are_listed_newest_first_and_only_one_s_own(
    db: Database, accounts: Accounts, make_user: MakeUser, log_in: LogIn
) -> None:
    await make_user("ada")
    await make_user("bob")
    first, second, _bob = await log_in("ada"), await log_in("ada"), await log_in("bob")
    async with db.transaction() as tx:
        rows = await sessions.list_sessions(tx, accounts.config.sessions, first, older_than=None, limit=10)
        assert [row.id for row in rows] == [second.session_id, first.session_id]
        mark = (rows[0].created_at, rows[0].id)
        rest = await sessions.list_sessions(tx, accounts.config.sessions, first, older_than=mark, limit=10)
        assert [row.id for row in rest] == [first.session_id]


async def test_a_session_is_revoked_once_and_only_by_its_user(db: Database, make_user: MakeUser, log_in: LogIn) -> None:
    await make_user("ada")
    await make_user("bob")
    ada, bob = await log_in("ada"), await log_in("bob")
    assert ada.session_id is not None

    async def revoke(caller: Caller, session_id: str) -> None:
        async with db.transaction() as tx:
            await sessions.revoke_session(tx, caller, session_id)

    for caller, session_id in ((bob, ada.session_id), (ada, "ses_none")):
        with pytest.raises(SessionNotFound) as refused:
            await revoke(caller, session_id)
        assert not refused.value.details, "another's session and none look the same"
    await revoke(ada, ada.session_id)
    with pytest.raises(SessionNotFound):
        await revoke(ada, ada.session_id)
    (event,) = await events(db, "revoked")
    assert event["resource"]["identifier"] == ada.session_id


async def test_all_others_can_be_ended(db: Database, make_user: MakeUser, log_in: LogIn) -> None:
    await make_user()
    here, _, _ = await log_in(), await log_in(), await log_in()
    async with db.transaction() as tx:
        assert await sessions.revoke_other_sessions(tx, here) == 2
        assert await sessions.revoke_other_sessions(tx, here) == 0
    assert len(await events(db, "revoked")) == 1


async def test_logging_out_ends_the_session(
    db: Database, accounts: Accounts, who: Who, make_user: MakeUser
) -> None:
    await make_user()
    logged_in = await enter(db, accounts, who)
    credentials = Credentials(logged_in.token, None, None)
    caller = await accounts.authenticate(db, who, credentials, True)
    async with db.transaction() as tx:
        await sessions.log_out(tx, caller)
    with pytest.raises(Unauthenticated):
        await accounts.authenticate(db, who, credentials, False)
    (event,) = await events(db, "logout")
    assert (event["resource_type"], event["user"]["username"]) == ("session", "ada")
    with pytest.raises(SessionNeeded):
        async with db.transaction() as tx:
            await sessions.log_out(tx, replace(caller, session_id=None, api_key_id="key_x"))
