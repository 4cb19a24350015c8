from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from headrace import audit
from headrace.audit import Action, Principal, PrincipalType, Resource, ResourceType, Who, sealing
from headrace.database import Database
from tests.conftest import TestServer, may_date_events

ADA = Principal("u_ada", "ada", PrincipalType.USER)
# Long past on purpose: nothing depends on when the tests run.
NOW = datetime(2026, 3, 20, 12, tzinfo=UTC)

Fill = Callable[..., Awaitable[list[str]]]
Tamper = Callable[..., Awaitable[None]]


@pytest.fixture
def fill(db: Database, who: Who) -> Fill:
    """Records so many events, a second apart, and gives their ids."""

    async def record(count: int, *, start: datetime = NOW) -> list[str]:
        async with db.transaction() as tx:
            await may_date_events(tx)
            return [
                str(
                    await audit.record(
                        tx,
                        who.acting_as(ADA),
                        Action.UPDATED,
                        Resource(ResourceType.USER, f"u_{n}", {"username": f"水 {n}"}),
                        old={"id": f"u_{n}", "status": "ACTIVE"},
                        new={"id": f"u_{n}", "status": "SUSPENDED"},
                        data={"reason": 'a "reason"\nof two lines'},
                        now=start + timedelta(seconds=n),
                    )
                )
                for n in range(count)
            ]

    return record


@pytest.fixture
async def tamper(server: TestServer, database_url: str) -> AsyncIterator[Tamper]:
    """What only a superuser who switches the triggers off can do."""
    name = database_url.partition("?")[0].rpartition("/")[2]
    connection = await asyncpg.connect(server.url(name))
    await connection.execute("SET session_replication_role = replica")

    async def change(sql: str, *args: object) -> None:
        assert (await connection.execute(sql, *args)).rpartition(" ")[2] != "0", "nothing was changed"

    yield change
    await connection.close()


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight events make a seal, so that a few dozen make a chain."""
    monkeypatch.setattr(sealing, "BATCH", 8)
