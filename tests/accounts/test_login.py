import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from headrace.access import Role
from headrace.accounts import administration, login, password_change, service, sessions
from headrace.accounts.config import PasswordConfig, ThrottleConfig
from headrace.accounts.errors import AccountSuspended, BadCredentials, LoginPaused, PasswordsBusy
from headrace.accounts.passwords import Passwords
from headrace.accounts.service import Accounts
from headrace.accounts.store import throttles
from headrace.accounts.throttle import forget_failures
from headrace.audit import Who
from headrace.database import Database
from tests.accounts.conftest import CHEAP, PASSWORD, LogIn, MakeUser, configured, events, everything_in

NOW = datetime(2026, 3, 1, 8, tzinfo=UTC)
ELSEWHERE = "203.0.113.9"


async def guess(
    db: Database, accounts: Accounts, who: Who, *, name: str = "ada", now: datetime | None = None
) -> type[Exception]:
    with pytest.raises((BadCredentials, LoginPaused)) as refused:
        await login.log_in(db, accounts, who, username=name, password="wrong guess", now=now)
    return refused.type


class CountingPasswords(Passwords):
    """Counts how many passwords were really checked."""

    checked = 0

    async def verify(self, stored: str | None, password: str) -> bool:
        self.checked += 1
        return await super().verify(stored, password)


async def test_a_user_logs_in_with_any_spelling_of_the_name(
    db: Database, accounts: Accounts, who: Who, make_user: MakeUser
) -> None:  # D-01
    user = await make_user("ada")
    logged_in = await login.log_in(db, accounts, who, username=" ＡDA ", password=PASSWORD)
    assert logged_in.user.id == user.id
    assert logged_in.user.last_login_at is not None
    assert logged_in.token.startswith("hrs_")
    assert logged_in.token not in repr(logged_in)


async def test_a_wrong_password_and_an_unknown_name_are_told_apart_by_nobody(
    db: Database, accounts: Accounts, who: Who, make_user: MakeUser
) -> None:
    await make_user("ada")
    with pytest.raises(BadCredentials) as wrong:
        await login.log_in(db, accounts, who, username="ada", password="wrong guess")
    with pytest.raises(BadCredentials) as unknown:
        await login.log_in(db, accounts, who, username="bob", password="wrong guess")
    assert (wrong.value.message, wrong.value.details) == (unknown.value.message, unknown.value.details)


@pytest.mark.parametrize("name", ["system", "x" * 300, "", "a\u0301" * 200])
async def test_odd_names_are_unknown_names(db: Database, accounts: Accounts, who: Who, name: str) -> None:
    assert await guess(db, accounts, who, name=name) is BadCredentials


async def test_logins_are_audited_and_passwords_are_not(
    db: Database, accounts: Accounts, who: Who, make_user: MakeUser
) -> None:
    user = await make_user("ada", role=Role.ADMIN)
    logged_in = await login.log_in(db, accounts, who, username="ada", password=PASSWORD)
    await guess(db, accounts, who)
    await guess(db, accounts, who, name="hunter2-my-password")

    success, wrong, unknown = await events(db, "login")
    assert success["user"] == {"uid": user.id, "username": "ada", "type": "user"}
    assert success["actor_type"] == "ADMIN"
    assert success["data"] == {"outcome": "success", "method": "password", "session_id": logged_in.session.id}
    assert wrong["user"]["type"] == "anonymous"
    assert wrong["resource"]["identifier"] == user.id
    assert wrong["data"] == {"outcome": "failure", "reason": "wrong_password"}
    assert unknown["data"]["reason"] == "unknown_user"
    assert unknown["resource"] == {"type": "user", "identifier": "unknown", "data": {"username": "hun…"}}

    trail = await everything_in(db)
    for secret in (PASSWORD, "wrong guess", "hunter2", logged_in.token):
        assert secret not in trail


async def test_a_suspended_user_is_refused_and_only_they_learn_why(
    db: Database, accounts: Accounts, who: Who, make_user: MakeUser
) -> None:
    user = await make_user("ada")
    async with db.transaction() as tx:
        await administration.suspend(tx, who, user.id)
    assert await guess(db, accounts, who) is BadCredentials
    with pytest.raises(AccountSuspended):
        await login.log_in(db, accounts, who, username="ada", password=PASSWORD)
    assert [event["data"]["reason"] for event in await events(db, "login")] == ["wrong_password", "suspended"]


async def test_old_parameters_are_replaced_at_the_next_login(
    db: Database, accounts: Accounts, who: Who, make_user: MakeUser
) -> None:
    user = await make_user("ada")
    config = replace(CHEAP.passwords, time_cost=2)
    newer = replace(accounts, passwords=Passwords(config), config=replace(CHEAP, passwords=config))
    after = (await login.log_in(db, newer, who, username="ada", password=PASSWORD)).user
    assert after.password_hash != user.password_hash
    assert after.password_hash is not None
    assert ",t=2," in after.password_hash
    await login.log_in(db, newer, who, username="ada", password=PASSWORD)


async def test_pauses_begin_after_the_free_failures_and_double_up_to_the_cap(
    db: Database, accounts: Accounts, who: Who, make_user: MakeUser
) -> None:
    await make_user("ada")
    throttle = ThrottleConfig(free_failures=3, block_first=timedelta(seconds=1), block_max=timedelta(seconds=5))
    accounts = configured(accounts, throttle=throttle)
    now = NOW
    for _ in range(3):
        assert await guess(db, accounts, who, now=now) is BadCredentials
    pauses = []
    for _ in range(5):
        with pytest.raises(LoginPaused) as paused:
            await login.log_in(db, accounts, who, username="ada", password=PASSWORD, now=now)
        assert paused.value.retry_after is not None
        pauses.append(paused.value.retry_after.total_seconds())
        now += paused.value.retry_after
        assert await guess(db, accounts, who, now=now) is BadCredentials
    assert pauses == [1, 2, 4, 5, 5]

    # The owner waits and is in; the count starts afresh.
    now += timedelta(seconds=5)
    await login.log_in(db, accounts, who, username="ada", password=PASSWORD, now=now)
    for _ in range(3):
        assert await guess(db, accounts, who, now=now) is BadCredentials


async def test_old_failures_are_forgotten(db: Database, accounts: Accounts, who: Who) -> None:
    for hour in range(12):
        assert await guess(db, accounts, who, now=NOW + timedelta(hours=2 * hour)) is BadCredentials


async def test_failures_of_an_address_are_forgotten_though_others_log_in_there(
    db: Database, accounts: Accounts, who: Who, make_user: MakeUser
) -> None:
    """A success moved the time of the address's last failure, so an office that logs in every hour never forgot one."""
    await make_user("grace")
    accounts = configured(accounts, throttle=ThrottleConfig(free_failures=2, address_factor=1))
    for hour in range(6):
        now = NOW + timedelta(minutes=50 * hour)
        await login.log_in(db, accounts, who, username="grace", password=PASSWORD, now=now)
        if hour % 2 == 0:
            # 100 minutes after the one before: the count has started anew, whoever logged in between
            assert await guess(db, accounts, who, name=f"typo{hour}", now=now + timedelta(seconds=1)) is BadCredentials
    (row,) = await db.fetch_alone("SELECT failures FROM headrace.login_throttles WHERE subject LIKE 'address:%'")
    assert row["failures"] == 1


async def test_a_success_beside_a_failure_leaves_the_time_of_the_failure(db: Database, accounts: Accounts) -> None:
    config = ThrottleConfig(free_failures=5)
    async with db.transaction() as tx:
        right = await throttles.count_attempt(tx, "address:x", config, free=5, now=NOW)
        wrong = await throttles.count_attempt(tx, "address:x", config, free=5, now=NOW + timedelta(seconds=1))
        assert right is not None
        assert wrong is not None
        await throttles.take_back(tx, right)
        row = await tx.fetchrow("SELECT failures, last_failed_at FROM headrace.login_throttles")
    assert dict(row or {}) == {"failures": 1, "last_failed_at": NOW + timedelta(seconds=1)}


async def test_a_restart_forgets_nothing(db: Database, accounts: Accounts, who: Who) -> None:
    for _ in range(5):
        await guess(db, accounts, who, now=NOW)
    async with service.open_accounts(CHEAP, secret=b"x" * 32) as restarted:
        assert await guess(db, restarted, who, now=NOW) is LoginPaused


async def test_unknown_names_are_paused_like_known_ones(db: Database, accounts: Accounts, who: Who) -> None:
    kinds = [await guess(db, accounts, who, name="nobody", now=NOW) for _ in range(6)]
    assert kinds == [BadCredentials] * 5 + [LoginPaused]


async def test_an_address_is_counted_over_all_names(db: Database, accounts: Accounts, who: Who) -> None:
    accounts = configured(accounts, throttle=ThrottleConfig(free_failures=2, address_factor=3))
    kinds = [await guess(db, accounts, who, name=f"user{n}", now=NOW) for n in range(7)]
    assert kinds == [BadCredentials] * 6 + [LoginPaused]
    assert await guess(db, accounts, replace(who, client_ip=ELSEWHERE), name="user8", now=NOW) is BadCredentials


async def test_ipv6_is_counted_by_network(db: Database, accounts: Accounts, who: Who) -> None:
    accounts = configured(accounts, throttle=ThrottleConfig(free_failures=2, address_factor=1))
    kinds = [
        await guess(db, accounts, replace(who, client_ip=f"2001:db8::{n}:1"), name=f"user{n}", now=NOW)
        for n in range(3)
    ]
    assert kinds == [BadCredentials, BadCredentials, LoginPaused]
    other = replace(who, client_ip="2001:db8:0:1::1")
    assert await guess(db, accounts, other, name="user9", now=NOW) is BadCredentials


async def test_logging_in_to_an_own_account_buys_no_guesses(
    db: Database, accounts: Accounts, who: Who, make_user: MakeUser
) -> None:
    await make_user("mallory")
    accounts = configured(accounts, throttle=ThrottleConfig(free_failures=3, address_factor=1))
    kinds = []
    for n in range(4):
        kinds.append(await guess(db, accounts, who, name=f"victim{n}", now=NOW))
        if kinds[-1] is BadCredentials and n < 2:
            await login.log_in(db, accounts, who, username="mallory", password=PASSWORD, now=NOW)
    assert kinds == [BadCredentials] * 3 + [LoginPaused]


async def test_who_logged_in_here_lately_is_not_paused_by_strangers(
    db: Database, accounts: Accounts, who: Who, make_user: MakeUser
) -> None:
    await make_user("ada")
    await login.log_in(db, accounts, who, username="ada", password=PASSWORD, now=NOW)
    stranger = replace(who, client_ip=ELSEWHERE)
    later = NOW + timedelta(days=1)
    for _ in range(5):
        await guess(db, accounts, stranger, now=later)
    assert await guess(db, accounts, stranger, now=later) is LoginPaused

    await login.log_in(db, accounts, who, username="ada", password=PASSWORD, now=later)
    # The way in that stays open is no way around the limit.
    kinds = [await guess(db, accounts, who, now=later) for _ in range(6)]
    assert kinds == [BadCredentials] * 5 + [LoginPaused]
    # And what was long ago does not count.
    much_later = later + timedelta(days=40)
    for _ in range(5):
        await guess(db, accounts, stranger, now=much_later)
    assert await guess(db, accounts, who, now=much_later) is LoginPaused


@pytest.mark.parametrize("typed", ["ada@192.0.2.7", "192.0.2.7:ada", "known:192.0.2.7:ada", "change:{}", "{}"])
async def test_no_typed_name_is_another_s_subject(
    db: Database, accounts: Accounts, who: Who, make_user: MakeUser, log_in: LogIn, typed: str
) -> None:
    user = await make_user("ada")
    caller = await log_in("ada")
    stranger = replace(who, client_ip=ELSEWHERE)
    for _ in range(6):
        await guess(db, accounts, stranger, name=typed.format(user.id))
    await log_in("ada")
    await password_change.change_password(db, accounts, caller, current=PASSWORD, new="a new long phrase")


async def test_two_hundred_guesses_at_once_are_five_checks(
    db: Database, accounts: Accounts, who: Who, make_user: MakeUser
) -> None:
    await make_user("ada")
    counting = CountingPasswords(CHEAP.passwords)
    accounts = replace(
        configured(accounts, throttle=ThrottleConfig(block_first=timedelta(minutes=1))), passwords=counting
    )
    kinds = await asyncio.gather(*(guess(db, accounts, who) for _ in range(200)))
    assert counting.checked == 5
    assert kinds.count(BadCredentials) == 5
    assert kinds.count(LoginPaused) == 195


async def test_a_flood_of_refused_attempts_does_not_flood_the_trail(db: Database, accounts: Accounts, who: Who) -> None:
    for _ in range(30):
        await guess(db, accounts, who, now=NOW)
    failures = await events(db, "login")
    assert len(failures) == 5
    assert [event["data"].get("paused_seconds") for event in failures] == [None, None, None, None, "1"]


async def test_an_attempt_that_was_not_checked_does_not_count(
    db: Database, accounts: Accounts, who: Who, make_user: MakeUser
) -> None:
    await make_user("ada")

    full = PasswordConfig(at_once=1, waiting=-1)
    busy = replace(accounts, passwords=Passwords(full))
    for _ in range(10):
        with pytest.raises(PasswordsBusy):
            await login.log_in(db, busy, who, username="ada", password=PASSWORD, now=NOW)
    await login.log_in(db, accounts, who, username="ada", password=PASSWORD, now=NOW)


async def test_a_password_changed_during_the_check_lets_nobody_in(
    db: Database, accounts: Accounts, who: Who, make_user: MakeUser
) -> None:
    user = await make_user("ada")

    class Slow(Passwords):
        async def verify(self, stored: str | None, password: str) -> bool:
            right = await super().verify(stored, password)
            await administration.reset_password(db, accounts, who, user.id, "quite another phrase")
            return right

    with pytest.raises(BadCredentials):
        await login.log_in(
            db, replace(accounts, passwords=Slow(CHEAP.passwords)), who, username="ada", password=PASSWORD
        )


async def test_old_counts_are_removed(db: Database, accounts: Accounts, who: Who) -> None:
    for n in range(5):
        await guess(db, accounts, who, name=f"user{n}", now=NOW)
    async with db.transaction() as tx:
        config = accounts.config.throttle
        assert await forget_failures(tx, config, limit=100, now=NOW + timedelta(minutes=59)) == 0
        assert await forget_failures(tx, config, limit=4, now=NOW + timedelta(minutes=61)) == 4
        assert await forget_failures(tx, config, limit=4, now=NOW + timedelta(minutes=61)) == 2


async def test_changing_the_password_needs_the_old_one_and_ends_other_sessions(
    db: Database, accounts: Accounts, who: Who, make_user: MakeUser, log_in: LogIn
) -> None:
    await make_user("ada")
    here, there = await log_in(), await log_in()
    after = await password_change.change_password(db, accounts, here, current=PASSWORD, new="a new long phrase")
    assert after.version == 1
    async with db.transaction() as tx:
        left = await sessions.list_sessions(tx, accounts.config.sessions, here, older_than=None, limit=10)
    assert [session.id for session in left] == [here.session_id]
    assert there.session_id != here.session_id
    assert await guess(db, accounts, who) is BadCredentials
    await log_in(password="a new long phrase")
    (event,) = await events(db, "updated")
    assert event["data"] == {"sessions_ended": "1"}
    assert '"password_hash":"(changed)"' in event["diff_object"]["new_object"]
