"""Users with units, for tests of metered types."""

import asyncio
import itertools
from concurrent.futures import ThreadPoolExecutor

from headrace import ids
from headrace.billing import granting
from headrace.billing.periods import calendar_month
from headrace.billing.plans.model import FREE_PLAN
from headrace.billing.plans.store import find_plan
from headrace.billing.subscriptions.store import clock
from headrace.database import Database, DatabaseConfig

INSERT_USER = "INSERT INTO headrace.users (id, username, password_hash) VALUES ($1, $2, '!')"

_numbers = itertools.count(1)


def make_user(database_url: str, *, units: int, username: str | None = None) -> str:
    """Create a user with this many units for the month, and return the id.

    It also works in tests with an event loop, because the statements run in a thread.
    """
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, _make_user(database_url, units, username)).result()


async def _make_user(database_url: str, units: int, username: str | None) -> str:
    user_id = ids.new("u")
    config = DatabaseConfig(database_url, role="test", pool_max=1)
    async with await Database.connect(config) as db, db.transaction() as tx:
        await tx.execute(INSERT_USER, user_id, username or f"user{next(_numbers)}")
        plan = await find_plan(tx, FREE_PLAN)
        assert plan is not None, "the schema contains it"
        start, end = calendar_month(await clock(tx))
        await granting.grant(
            tx,
            user_id=user_id,
            plan_id=plan.id,
            subscription_id=None,
            units=units,
            period_start=start,
            period_end=end,
            remark="for a test",
        )
    return user_id
