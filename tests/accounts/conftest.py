from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from headrace.access import Caller, Credentials, Role
from headrace.accounts import login, registration, service
from headrace.accounts.config import AccountsConfig, PasswordConfig
from headrace.accounts.model import User
from headrace.accounts.service import Accounts
from headrace.audit import Who
from headrace.database import Database, Row

SECRET = b"a secret of at least 32 bytes, for tests"
PASSWORD = "correct horse battery"

# Real Argon2id, as cheap as it gets.
CHEAP = AccountsConfig(
    registration_open=True, passwords=PasswordConfig(time_cost=1, memory_kib=8, parallelism=1, at_once=2)
)


@pytest.fixture
async def accounts() -> AsyncIterator[Accounts]:
    async with service.open_accounts(CHEAP, secret=SECRET) as opened:
        yield opened


def configured(accounts: Accounts, **changes: Any) -> Accounts:
    """The same accounts with another configuration."""
    return replace(accounts, config=replace(accounts.config, **changes))


MakeUser = Callable[..., Awaitable[User]]


@pytest.fixture
def make_user(db: Database, accounts: Accounts, who: Who) -> MakeUser:
    async def make(username: str = "ada", *, role: Role = Role.USER, password: str = PASSWORD) -> User:
        new = await registration.prepare(accounts, username=username, password=password, role=role, by_operator=True)
        async with db.transaction() as tx:
            return await registration.register(tx, who, new)

    return make


LogIn = Callable[..., Awaitable[Caller]]


@pytest.fixture
def log_in(db: Database, accounts: Accounts, who: Who) -> LogIn:
    """Log in and come back as the edge would see the next request."""

    async def enter(username: str = "ada", password: str = PASSWORD) -> Caller:
        logged_in = await login.log_in(db, accounts, who, username=username, password=password)
        return await accounts.authenticate(db, who, Credentials(logged_in.token, None, None), False)

    return enter


async def events(db: Database, action: str | None = None) -> list[Row]:
    """The audit trail, oldest first."""
    async with db.transaction() as tx:
        return await tx.fetch(
            "SELECT * FROM headrace.audit_events WHERE $1::text IS NULL OR action = $1 ORDER BY seq", action
        )


async def everything_in(db: Database) -> str:
    """The whole trail as one text, to look for what must not be there."""
    return "\n".join(str(dict(row)) for row in await events(db))
