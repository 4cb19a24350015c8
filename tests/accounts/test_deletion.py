"""The end of an account: asked for, undone, carried out. W-16."""

import asyncio
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta

import pytest

from headrace.access import Caller, Credentials, Role, Scope
from headrace.accounts import administration, api_keys, login
from headrace.accounts.config import DeletionConfig, ThrottleConfig
from headrace.accounts.deletion import service
from headrace.accounts.deletion.credentials import ForgetCredentials
from headrace.accounts.deletion.machine import Deletions
from headrace.accounts.errors import (
    AccountBeingDeleted,
    AccountSuspended,
    BadCredentials,
    DeletionNotFound,
    DeletionPending,
    DeletionStarted,
    LastAdmin,
    SessionNeeded,
    UserNotFound,
    WrongPassword,
)
from headrace.accounts.model import Deletion, DeletionStatus, UserStatus
from headrace.accounts.service import Accounts
from headrace.audit import Who
from headrace.database import Database, Row
from headrace.erasure import Eraser, NotYet
from headrace.errors import Unauthenticated
from tests.accounts.conftest import PASSWORD, LogIn, MakeUser, configured, events, everything_in

CONFIG = DeletionConfig(lease=timedelta(seconds=30))
AFTER_GRACE = timedelta(days=7, seconds=1)


def machine(db: Database, *erasers: Eraser) -> Deletions:
    return Deletions(db, [*erasers, ForgetCredentials()], CONFIG)


async def ask(db: Database, accounts: Accounts, caller: Caller) -> Deletion:
    return await service.delete_own_account(db, accounts, caller, password=PASSWORD)


async def delete(db: Database, who: Who, user_id: str, *, grace: timedelta = timedelta(0)) -> Deletion:
    async with db.transaction() as tx:
        return await service.delete_account(tx, who, user_id, grace=grace)


async def row(db: Database, sql: str, *args: object) -> Row:
    (found,) = await db.fetch_alone(sql, *args)
    return found


async def deletion_of(db: Database, user_id: str) -> Row:
    return await row(db, "SELECT * FROM headrace.account_deletions WHERE user_id = $1", user_id)


async def test_from_the_request_on_nobody_gets_in(
    db: Database, accounts: Accounts, who: Who, make_user: MakeUser, log_in: LogIn
) -> None:
    user, caller = await make_user(), await log_in()
    elsewhere = await login.log_in(db, accounts, who, username="ada", password=PASSWORD)
    async with db.transaction() as tx:
        made = await api_keys.create_api_key(tx, caller, name="ci", scopes={Scope.TASKS_READ})
    asked = await ask(db, accounts, caller)
    assert (asked.status, asked.user_id, asked.requested_by) == (DeletionStatus.WAITING, user.id, user.id)
    for token in (elsewhere.token, made.key):
        with pytest.raises(Unauthenticated):
            await accounts.authenticate(db, who, Credentials(token, None, None), False)
    with pytest.raises(AccountBeingDeleted, match="keep_account") as refused:
        await log_in()
    assert refused.value.details == {"due_at": asked.due_at.isoformat(), "undo": True}
    with pytest.raises(BadCredentials):  # only who knows the password learns of it
        await log_in(password="a guess at it")
    (event,) = await events(db, "disabled")
    assert (event["resource"]["type"], event["resource"]["identifier"]) == ("account", user.id)
    assert (event["data"]["sessions_ended"], event["data"]["api_keys_revoked"]) == ("2", "1")


async def test_until_the_grace_period_is_over_nothing_is_lost_and_logging_in_undoes_it(
    db: Database, accounts: Accounts, who: Who, make_user: MakeUser, log_in: LogIn
) -> None:
    user = await make_user()
    await ask(db, accounts, await log_in())
    assert not await machine(db).run_once(now=datetime.now(UTC) + timedelta(days=6, hours=23))
    back = await login.log_in(db, accounts, who, username="ada", password=PASSWORD, keep_account=True)
    assert (back.user.id, back.user.status, back.user.username) == (user.id, UserStatus.ACTIVE, "ada")
    assert (await deletion_of(db, user.id))["status"] == "CANCELED"
    assert not await machine(db).run_once(now=datetime.now(UTC) + AFTER_GRACE)
    assert [event["resource"]["identifier"] for event in await events(db, "enabled")] == [user.id]
    await ask(db, accounts, await log_in())  # and one may change one's mind again


async def test_a_wrong_password_deletes_nothing_and_is_on_record(
    db: Database, accounts: Accounts, make_user: MakeUser, log_in: LogIn
) -> None:
    await make_user()
    caller = await log_in()
    with pytest.raises(WrongPassword) as refused:
        await service.delete_own_account(db, accounts, caller, password="a guess at it")
    assert refused.value.details == {"field": "password"}
    assert (await events(db, "login"))[-1]["data"]["purpose"] == "delete"
    assert await db.fetch_alone("SELECT FROM headrace.account_deletions") == []
    assert (await log_in()).user_id == caller.user_id


async def test_an_api_key_cannot_delete_the_account(
    db: Database, accounts: Accounts, who: Who, make_user: MakeUser, log_in: LogIn
) -> None:
    await make_user()
    async with db.transaction() as tx:
        made = await api_keys.create_api_key(tx, await log_in(), name="ci", scopes={Scope.ACCOUNT_WRITE})
    program = await accounts.authenticate(db, who, Credentials(made.key, None, None), True)
    with pytest.raises(SessionNeeded):
        await service.delete_own_account(db, accounts, program, password=PASSWORD)


async def test_nothing_personal_is_left_and_it_is_told_once(
    db: Database, accounts: Accounts, who: Who, make_user: MakeUser, log_in: LogIn
) -> None:
    user, caller = await make_user("grace.hopper"), await log_in("grace.hopper")
    async with db.transaction() as tx:
        await api_keys.create_api_key(tx, caller, name="of grace.hopper", scopes={Scope.TASKS_READ})
        await tx.execute(
            "UPDATE headrace.users SET email = 'grace.hopper@example.org', mobile = '+49301234567', "
            "wechat_openid = 'open-grace.hopper' WHERE id = $1",
            user.id,
        )
        await tx.execute(
            "INSERT INTO headrace.login_throttles (subject) VALUES ('account:grace.hopper'), "
            "('known:192.0.2.7:grace.hopper'), ('known:192.0.2.7:not-grace.hopper'), ('change:' || $1)",
            user.id,
        )
        await tx.execute(
            "INSERT INTO headrace.idempotency_keys "
            "(scope, user_id, idempotency_key, request_hash, response_json, http_status, expires_at) VALUES "
            "('a', $1, 'k', repeat('0', 64), '{\"by\": \"grace.hopper\"}', 201, now() + interval '1 day'), "
            "('accounts.register', NULL, 'k', repeat('0', 64), jsonb_build_object('id', $1, 'username', "
            "'grace.hopper'), 201, now() + interval '1 day')",
            user.id,
        )
    asked = await ask(db, configured(accounts, deletion=DeletionConfig(grace=timedelta(0))), caller)
    before = len(await events(db))
    assert await machine(db).run_once()
    assert not await machine(db).run_once()

    left = await row(db, "SELECT * FROM headrace.users WHERE id = $1", user.id)
    personal = ("username", "email", "mobile", "wechat_openid", "password_hash", "last_login_at")
    assert [left[name] for name in personal] == [None] * len(personal)
    assert (left["status"], left["role"], left["deleted_at"] is not None) == ("DELETED", "USER", True)
    for table in ("sessions", "api_keys", "login_throttles", "idempotency_keys", "users", "account_deletions"):
        found = str([dict(each) for each in await db.fetch_alone(f"SELECT * FROM headrace.{table}")])
        assert "grace.hopper" not in found.replace("not-grace.hopper", ""), table
    assert len(await db.fetch_alone("SELECT FROM headrace.login_throttles WHERE subject ~ 'not-grace'")) == 1

    (event,) = await db.fetch_alone("SELECT * FROM headrace.outbox_events")
    assert (event["event_type"], event["aggregate_type"], event["aggregate_id"]) == (
        "account.deleted",
        "account",
        user.id,
    )
    assert event["payload_json"] == {"user_id": user.id, "deletion_id": asked.id, "requested_by": user.id}
    (told,) = await db.fetch_alone("SELECT * FROM headrace.notifications")
    assert (told["type"], told["user_id"], told["event_id"]) == (
        "ACCOUNT_DELETE_COMPLETED",
        user.id,
        event["event_id"],
    )
    # What the deletion itself adds to the trail names nobody but by id.
    trail = (await events(db))[before:]
    assert [each["action"] for each in trail] == ["updated", "deleted"]
    assert {each["resource"]["identifier"] for each in trail} == {user.id}
    assert "grace.hopper" not in str([dict(each) for each in trail])


async def test_the_name_is_free_again_and_the_old_password_opens_nothing(
    db: Database, accounts: Accounts, who: Who, make_user: MakeUser, log_in: LogIn
) -> None:
    first = await make_user()
    await delete(db, who, first.id)
    await machine(db).run_once()
    with pytest.raises(BadCredentials):
        await log_in()
    second = await make_user(password="another phrase of hers")
    assert second.id != first.id
    with pytest.raises(BadCredentials):
        await log_in()


async def test_an_administrators_deletion_is_undone_by_an_administrator_only(
    db: Database, accounts: Accounts, who: Who, make_user: MakeUser, log_in: LogIn
) -> None:
    user = await make_user()
    async with db.transaction() as tx:
        await administration.suspend(tx, who, user.id)
    asked = await delete(db, who, user.id, grace=timedelta(days=7))
    assert await delete(db, who, user.id, grace=timedelta(days=7)) == asked  # twice is as good as once
    with pytest.raises(AccountBeingDeleted, match="Only an administrator can undo it"):
        await login.log_in(db, accounts, who, username="ada", password=PASSWORD, keep_account=True)
    async with db.transaction() as tx:
        for verb in (administration.suspend, administration.reinstate):
            with pytest.raises(DeletionPending):
                await verb(tx, who, user.id)
        kept = await service.keep_account(tx, who, user.id)
    assert kept.status is UserStatus.SUSPENDED  # as before
    with pytest.raises(AccountSuspended):
        await log_in()
    async with db.transaction() as tx:
        with pytest.raises(DeletionNotFound):
            await service.keep_account(tx, who, user.id)


async def test_an_administrator_can_end_the_grace_period(db: Database, who: Who, make_user: MakeUser) -> None:
    user = await make_user()
    asked = await delete(db, who, user.id, grace=timedelta(days=7))
    due_now = await delete(db, who, user.id)
    assert due_now.id == asked.id
    assert await machine(db).run_once()
    assert (await deletion_of(db, user.id))["status"] == "COMPLETED"
    with pytest.raises(UserNotFound):
        await delete(db, who, user.id)


async def test_the_last_administrator_stays(
    db: Database, accounts: Accounts, make_user: MakeUser, log_in: LogIn
) -> None:
    await make_user("root", role=Role.ADMIN)
    with pytest.raises(LastAdmin):
        await ask(db, accounts, await log_in("root"))
    assert (await log_in("root")).role is Role.ADMIN


async def test_of_two_last_administrators_one_stays(
    db: Database, accounts: Accounts, make_user: MakeUser, log_in: LogIn
) -> None:
    callers = []
    for name in ("root", "toor"):
        await make_user(name, role=Role.ADMIN)
        callers.append(await log_in(name))
    done = await asyncio.gather(*(ask(db, accounts, caller) for caller in callers), return_exceptions=True)
    assert sorted(type(each).__name__ for each in done) == ["Deletion", "LastAdmin"]


class Recording:
    """A step of a package that accounts know nothing of."""

    def __init__(self, name: str, log: list[str], *, failures: int = 0, busy: int = 0) -> None:
        self.name = name
        self._log = log
        self._failures = failures
        self._busy = busy

    async def erase(self, db: Database, user_id: str) -> AsyncGenerator[int, None]:  # noqa: ARG002
        self._log.append(self.name)
        yield 1
        if self._busy:
            self._busy -= 1
            raise NotYet("2 tasks are running")
        if self._failures:
            self._failures -= 1
            raise RuntimeError(f"there is something secret about {user_id}")
        yield 2


async def test_steps_run_in_order_and_are_done_once_whatever_comes_between(
    db: Database, who: Who, make_user: MakeUser
) -> None:
    user, ran = await make_user(), list[str]()
    await delete(db, who, user.id)
    steps = [Recording("one", ran), Recording("two", ran, busy=1, failures=1), Recording("three", ran)]
    running = machine(db, *steps)
    later = datetime.now(UTC) + timedelta(hours=1)
    assert await running.run_once()
    waiting = await deletion_of(db, user.id)
    assert (waiting["status"], waiting["steps_done"], waiting["obstacle"]) == (
        "RUNNING",
        ["one"],
        "2 tasks are running",
    )
    async with db.transaction() as tx:
        with pytest.raises(DeletionStarted):
            await service.keep_account(tx, who, user.id)
    assert await running.run_once(now=later)
    failed = await deletion_of(db, user.id)
    assert (failed["steps_done"], failed["obstacle"]) == (["one"], "RuntimeError")  # not what it said
    assert not await running.run_once()  # not before its time
    assert await running.run_once(now=later)
    done = await deletion_of(db, user.id)
    assert (done["status"], done["obstacle"]) == ("COMPLETED", None)
    assert done["steps_done"] == ["one", "two", "three", "accounts.credentials"]
    assert ran == ["one", "two", "two", "two", "three"]
    removed = [event["data"] for event in await events(db, "updated")]
    assert [(data["step"], data["removed"]) for data in removed if "step" in data][:2] == [("one", "3"), ("two", "3")]


class Overtaken:
    """A step during which the process sleeps for so long that another goes on in its place."""

    name = "slow"

    def __init__(self, other: Deletions) -> None:
        self._other = other

    async def erase(self, db: Database, user_id: str) -> AsyncGenerator[int, None]:  # noqa: ARG002
        assert await self._other.run_once(now=datetime.now(UTC) + timedelta(hours=1))
        yield 1


async def test_a_process_that_was_given_up_changes_nothing_more(db: Database, who: Who, make_user: MakeUser) -> None:
    user, ran = await make_user(), list[str]()
    await delete(db, who, user.id)
    assert await machine(db, Overtaken(machine(db, Recording("slow", ran)))).run_once()
    assert (await deletion_of(db, user.id))["attempt"] == 2
    assert len(await events(db, "deleted")) == 1
    assert len(await db.fetch_alone("SELECT FROM headrace.notifications")) == 1


async def test_of_many_processes_one_carries_it_out(db: Database, who: Who, make_user: MakeUser) -> None:
    users = [await make_user(f"user{n}") for n in range(3)]
    for user in users:
        await delete(db, who, user.id)
    ran = list[str]()
    machines = [machine(db, Recording("once", ran)) for _ in range(10)]
    claimed = await asyncio.gather(*(each.run_once() for each in machines))
    assert sum(claimed) == 3
    assert ran == ["once"] * 3
    assert len(await events(db, "deleted")) == 3


async def test_no_login_slips_through_beside_the_request(
    db: Database, accounts: Accounts, who: Who, make_user: MakeUser, log_in: LogIn
) -> None:
    await make_user()
    caller = await log_in()
    unhurried = configured(accounts, throttle=ThrottleConfig(free_failures=1000))

    async def enter() -> str | None:
        try:
            return (await login.log_in(db, unhurried, who, username="ada", password=PASSWORD)).token
        except AccountBeingDeleted:
            return None

    # Beside each other in every order that ten tries give.
    tokens, _ = await asyncio.gather(asyncio.gather(*(enter() for _ in range(10))), ask(db, accounts, caller))
    for token in tokens:
        if token is not None:
            with pytest.raises(Unauthenticated):
                await accounts.authenticate(db, who, Credentials(token, None, None), False)


def test_two_steps_of_one_name_are_refused(db: Database) -> None:
    with pytest.raises(ValueError, match="one name"):
        machine(db, ForgetCredentials())


async def test_no_name_password_or_address_is_in_the_deletions_events(
    db: Database, accounts: Accounts, who: Who, make_user: MakeUser, log_in: LogIn
) -> None:
    await make_user()
    await ask(db, accounts, await log_in())
    assert PASSWORD not in await everything_in(db)


# Every table that refers to a user, and which step sees to it. A new one must be thought of.
SEEN_TO = {
    "sessions": "accounts.credentials",
    "api_keys": "accounts.credentials",
    "account_links": "accounts.credentials",
    "second_factors": "accounts.credentials",
    "idempotency_keys": "accounts.credentials",
    "tasks": "tasks.erase",
    "bulk_actions": "bulk_actions",
    "task_locks": "locks",
    "lock_fences": "locks",
    "account_deletions": "stays: ids and times only",
    "usage_ledger": "stays: the ledger only grows, and knows the user by id",
    "entitlements": "stays: what was bought, by id",
    "subscriptions": "billing",
    "payment_orders": "billing",
    "assets": "files",
    "uploads": "files",
    "removals": "removals",
    "scheduled_tasks": "schedules",
    "webhook_endpoints": "webhooks",
    "notifications": "notifications",
}
REFER_TO_USERS = """
SELECT DISTINCT relname FROM pg_constraint JOIN pg_class ON pg_class.oid = conrelid
WHERE confrelid = 'headrace.users'::regclass AND contype = 'f' AND NOT relispartition
"""


async def test_every_table_that_refers_to_a_user_is_thought_of(db: Database) -> None:
    assert {each["relname"] for each in await db.fetch_alone(REFER_TO_USERS)} == SEEN_TO.keys()
