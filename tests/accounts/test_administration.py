import asyncio
from typing import Any

import pytest

from headrace import ids
from headrace.access import Credentials, PreconditionFailed, Role, Scope
from headrace.accounts import administration, api_keys, login, sessions, user_access
from headrace.accounts.errors import InvalidPassword, LastAdmin, NoPassword, SessionNotFound, UserNotFound
from headrace.accounts.model import User, UserStatus
from headrace.accounts.service import Accounts
from headrace.audit import Who
from headrace.database import Database
from headrace.errors import Unauthenticated
from tests.accounts.conftest import PASSWORD, LogIn, MakeUser, events


async def suspend(db: Database, who: Who, user_id: str, expected: int | None = None) -> User:
    async with db.transaction() as tx:
        return await administration.suspend(tx, who, user_id, expected=expected)


async def set_role(db: Database, who: Who, user_id: str, role: Role) -> User:
    async with db.transaction() as tx:
        return await administration.set_role(tx, who, user_id, role)


async def test_suspending_ends_sessions_at_once(
    db: Database, accounts: Accounts, who: Who, make_user: MakeUser
) -> None:
    user = await make_user()
    logged_in = await login.log_in(db, accounts, who, username="ada", password=PASSWORD)
    suspended = await suspend(db, who, user.id)
    assert (suspended.status, suspended.version) == (UserStatus.SUSPENDED, 1)
    with pytest.raises(Unauthenticated):
        await accounts.authenticate(db, who, Credentials(logged_in.token, None, None), False)
    async with db.transaction() as tx:
        reinstated = await administration.reinstate(tx, who, user.id)
    assert (reinstated.status, reinstated.version) == (UserStatus.ACTIVE, 2)
    with pytest.raises(Unauthenticated):
        await accounts.authenticate(db, who, Credentials(logged_in.token, None, None), False)
    (disabled,), (enabled,) = await events(db, "disabled"), await events(db, "enabled")
    assert disabled["data"] == {"sessions_ended": "1"}
    assert '"status":"SUSPENDED"' in disabled["diff_object"]["new_object"]
    assert '"status":"ACTIVE"' in enabled["diff_object"]["new_object"]


async def test_sessions_and_api_keys_of_a_user_are_listed_and_ended_on_record(
    db: Database, accounts: Accounts, who: Who, make_user: MakeUser, log_in: LogIn
) -> None:
    ada = await log_in((await make_user()).username or "")
    async with db.transaction() as tx:
        key = await api_keys.create_api_key(tx, ada, name="laptop", scopes={Scope.TASKS_READ}, expires_at=None)
        page: dict[str, Any] = {"older_than": None, "limit": 10}
        (session,) = await user_access.list_sessions(tx, accounts.config.sessions, who, ada.user_id, **page)
        assert [each.id for each in await user_access.list_api_keys(tx, who, ada.user_id, **page)] == [key.api_key.id]
        await user_access.revoke_session(tx, who, ada.user_id, session.id)
        await user_access.revoke_api_key(tx, who, ada.user_id, key.api_key.id)
        assert await user_access.list_sessions(tx, accounts.config.sessions, who, ada.user_id, **page) == []
        assert await user_access.list_api_keys(tx, who, ada.user_id, **page) == []
        with pytest.raises(SessionNotFound):
            await user_access.revoke_session(tx, who, ada.user_id, session.id)
        with pytest.raises(UserNotFound):
            await user_access.list_sessions(tx, accounts.config.sessions, who, "u_nobody", **page)
    reads = [each["resource_type"] for each in await events(db, "read")]
    assert {kind: reads.count(kind) for kind in ("session", "apiKey")} == {"session": 2, "apiKey": 2}
    assert {each["resource_type"] for each in await events(db, "revoked")} == {"session", "apiKey"}


async def test_twice_is_as_good_as_once(db: Database, who: Who, make_user: MakeUser) -> None:
    user = await make_user()
    first, second = await suspend(db, who, user.id), await suspend(db, who, user.id)
    assert first == second
    assert len(await events(db, "disabled")) == 1


async def test_a_change_to_another_version_is_refused(db: Database, who: Who, make_user: MakeUser) -> None:  # W-09
    user = await make_user()
    with pytest.raises(PreconditionFailed):
        await suspend(db, who, user.id, expected=user.version + 1)
    await suspend(db, who, user.id, expected=user.version)


@pytest.mark.parametrize("user_id", ["u_none", ids.SYSTEM_USER])
async def test_nobody_and_the_system_cannot_be_changed(
    db: Database, accounts: Accounts, who: Who, user_id: str
) -> None:
    with pytest.raises(UserNotFound):
        await suspend(db, who, user_id)
    with pytest.raises(UserNotFound):
        await set_role(db, who, user_id, Role.USER)
    with pytest.raises(UserNotFound):
        await administration.reset_password(db, accounts, who, user_id, PASSWORD)
    with pytest.raises(UserNotFound):
        async with db.transaction() as tx:
            await administration.get_user(tx, who, user_id)


async def test_roles_are_granted_and_revoked(db: Database, who: Who, make_user: MakeUser) -> None:
    await make_user("root", role=Role.ADMIN)
    user = await make_user("ada")
    assert (await set_role(db, who, user.id, Role.ADMIN)).role is Role.ADMIN
    assert (await set_role(db, who, user.id, Role.ADMIN)).role is Role.ADMIN
    assert (await set_role(db, who, user.id, Role.USER)).role is Role.USER
    (granted,), (revoked,) = await events(db, "granted"), await events(db, "revoked")
    assert granted["data"] == revoked["data"] == {"role": "ADMIN"}


async def test_the_last_administrator_stays(db: Database, who: Who, make_user: MakeUser) -> None:
    only = await make_user("root", role=Role.ADMIN)
    with pytest.raises(LastAdmin):
        await suspend(db, who, only.id)
    with pytest.raises(LastAdmin):
        await set_role(db, who, only.id, Role.USER)
    other = await make_user("other", role=Role.ADMIN)
    await suspend(db, who, other.id)
    with pytest.raises(LastAdmin):
        await set_role(db, who, only.id, Role.USER)
    await set_role(db, who, other.id, Role.USER)


async def test_of_two_last_administrators_demoted_at_once_one_stays(
    db: Database, who: Who, make_user: MakeUser
) -> None:
    admins = [await make_user(f"root{n}", role=Role.ADMIN) for n in range(6)]
    results = await asyncio.gather(
        *(
            suspend(db, who, user.id) if n % 2 else set_role(db, who, user.id, Role.USER)
            for n, user in enumerate(admins)
        ),
        return_exceptions=True,
    )
    assert sum(isinstance(result, LastAdmin) for result in results) == 1
    assert sum(isinstance(result, User) for result in results) == 5


async def test_a_reset_ends_all_sessions_and_gives_a_new_password(
    db: Database, accounts: Accounts, who: Who, make_user: MakeUser, log_in: LogIn
) -> None:
    user = await make_user()
    await log_in()
    after = await administration.reset_password(db, accounts, who, user.id, "quite another phrase", expected=0)
    assert after.version == 1
    await log_in(password="quite another phrase")
    (event,) = await events(db, "updated")
    assert event["data"] == {"sessions_ended": "1", "purpose": "reset"}
    with pytest.raises(InvalidPassword):
        await administration.reset_password(db, accounts, who, user.id, "short")
    with pytest.raises(PreconditionFailed):
        await administration.reset_password(db, accounts, who, user.id, "yet another phrase", expected=0)


async def test_who_has_no_password_gets_none(db: Database, accounts: Accounts, who: Who) -> None:
    async with db.transaction() as tx:
        await tx.execute("INSERT INTO headrace.users (id, wechat_openid) VALUES ('u_x', 'o')")
    with pytest.raises(NoPassword):
        await administration.reset_password(db, accounts, who, "u_x", PASSWORD)


async def test_users_are_listed_by_what_was_asked(db: Database, who: Who, make_user: MakeUser) -> None:
    root = await make_user("root", role=Role.ADMIN)
    ada, bob = await make_user("ada"), await make_user("bob")
    await suspend(db, who, bob.id)

    async def listed(**filters: object) -> list[str]:
        async with db.transaction() as tx:
            rows = await administration.list_users(tx, who, limit=10, **filters)  # type: ignore[arg-type]
        return [row.id for row in rows]

    assert await listed() == [bob.id, ada.id, root.id]
    assert await listed(older_than=(bob.created_at, bob.id)) == [ada.id, root.id]
    assert await listed(status=UserStatus.SUSPENDED) == [bob.id]
    assert await listed(role=Role.ADMIN) == [root.id]
    assert await listed(username="ＡDA") == [ada.id]
    assert await listed(username="ada", status=UserStatus.SUSPENDED) == []
    assert await listed(username="system") == []
    assert len(await events(db, "read")) == 7


async def test_looking_at_another_is_audited_and_at_oneself_is_not(
    db: Database, make_user: MakeUser, log_in: LogIn
) -> None:
    await make_user("root", role=Role.ADMIN)
    ada = await make_user("ada")
    root = await log_in("root")
    async with db.transaction() as tx:
        await administration.get_user(tx, root.who, ada.id)
        await administration.get_user(tx, root.who, root.user_id)
        assert (await sessions.get_self(tx, root)).id == root.user_id
    (event,) = await events(db, "read")
    assert event["resource"]["identifier"] == ada.id


async def test_of_ten_processes_that_start_at_once_one_makes_the_administrator(
    db: Database, accounts: Accounts, log_in: LogIn
) -> None:
    results = await asyncio.gather(*(administration.ensure_first_admin(db, accounts) for _ in range(10)))
    (first,) = [result for result in results if result is not None]
    assert (first.user.username, first.user.role) == ("admin", Role.ADMIN)
    assert first.password not in repr(first)
    caller = await log_in("admin", first.password)
    assert caller.is_admin
    assert await administration.ensure_first_admin(db, accounts) is None
    (event,) = await events(db, "created")
    assert event["actor_type"] == "SYSTEM"


async def test_a_taken_name_does_not_keep_the_first_administrator_away(
    db: Database, accounts: Accounts, make_user: MakeUser
) -> None:
    await make_user("admin")
    first = await administration.ensure_first_admin(db, accounts)
    assert first is not None
    assert first.user.username is not None
    assert first.user.username.startswith("admin-")
