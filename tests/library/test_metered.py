"""A metered task in a program's own transaction, on whatever connection it has: held there, or refused with facts."""

from typing import Any

import asyncpg
import psycopg
import pytest
import sqlalchemy
from sqlalchemy.ext.asyncio import create_async_engine

from headrace import ids
from headrace.database import Database
from headrace.errors import QuotaExhausted
from headrace.library.program import Headrace
from headrace.tasks.model import TaskSpec
from headrace.tasks.registry import Registry
from tests.billing import stand


async def nothing(context: object, payload: object) -> None: ...


@pytest.fixture
async def hr(database_url: str) -> Any:
    registry = Registry()
    registry.task("render", units="payload.units")(nothing)
    async with Headrace(database_url, registry) as opened:
        yield opened


def plain(url: str) -> str:
    return url.replace("?role=headrace_app", "?options=-c%20role%3Dheadrace_app")


def check(refused: QuotaExhausted) -> None:
    assert (refused.details["needed"], refused.details["left"]) == (3, 1)
    assert "costs 3 units and 1 is left" in refused.message


async def test_asyncpg_holds_and_refuses(hr: Headrace, db: Database, database_url: str) -> None:  # W-06
    quota = await stand.grant_alone(db, ids.SYSTEM_USER, 4)
    connection = await asyncpg.connect(database_url)
    try:
        transaction = connection.transaction()
        await transaction.start()
        await hr.submit("render", {"units": 3}, connection=connection)
        await transaction.rollback()
        assert await stand.left(db, quota) == 4, "what is rolled back holds nothing"
        async with connection.transaction():
            await hr.submit("render", {"units": 3}, connection=connection)
        assert await stand.left(db, quota) == 1
        with pytest.raises(QuotaExhausted) as refused:
            await hr.submit("render", {"units": 3}, connection=connection)
        check(refused.value)
    finally:
        await connection.close()
    with pytest.raises(QuotaExhausted) as refused:
        await hr.submit("render", {"units": 3})
    check(refused.value)


async def test_psycopg_and_sqlalchemy_refuse_alike(hr: Headrace, db: Database, database_url: str) -> None:
    await stand.grant_alone(db, ids.SYSTEM_USER, 1)
    with psycopg.connect(plain(database_url)) as connection, pytest.raises(QuotaExhausted) as refused:
        hr.submit_blocking(TaskSpec("render", {"units": 3}), connection=connection)
    check(refused.value)
    address = sqlalchemy.make_url(plain(database_url)).set(drivername="postgresql+psycopg")
    engine = sqlalchemy.create_engine(address)
    with engine.connect() as over_sqlalchemy, pytest.raises(QuotaExhausted) as refused:
        hr.submit_blocking(TaskSpec("render", {"units": 3}), connection=over_sqlalchemy)
    check(refused.value)
    engine.dispose()
    address = sqlalchemy.make_url(database_url.partition("?")[0]).set(drivername="postgresql+asyncpg")
    asynchronous = create_async_engine(address)
    async with asynchronous.connect() as over_asyncpg:
        with pytest.raises(QuotaExhausted) as refused:
            await hr.submit("render", {"units": 3}, connection=over_asyncpg)
    check(refused.value)
    await asynchronous.dispose()
