"""A period that ends while tasks run: they finish, and are charged to the period that held them."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from headrace.audit import Who
from headrace.billing.plans.model import FREE_PLAN
from headrace.billing.subscriptions import renewal
from headrace.billing.subscriptions.model import RenewalConfig
from headrace.billing.verifying import verify
from headrace.errors import QuotaExhausted
from headrace.tasks.catalog import declare_types
from headrace.tasks.context import TaskContext
from headrace.tasks.errors import Fatal
from tests.billing import stand
from tests.billing.shop import Shop
from tests.billing.test_orders import refund
from tests.tasks.conftest import Bench

UNITS = 500  # of the plan
End = Callable[[Shop, dict[str, Any]], Awaitable[None]]


async def by_refund(shop: Shop, answer: dict[str, Any]) -> None:
    await refund(shop, answer["order"]["id"])
    assert (await shop.tell_refunded(shop.local.book.find(answer["order"]["id"]))).status_code == 204


async def by_time(shop: Shop, answer: dict[str, Any]) -> None:
    """Its month is over: as if it had been bought so much earlier."""
    month = timedelta(days=32)
    await shop.db.fetch_alone(
        "UPDATE headrace.subscriptions SET effective_at = effective_at - $2::interval, expire_at = expire_at - $2"
        " WHERE id = $1",
        answer["subscription"]["id"],
        month,
    )
    await shop.db.fetch_alone(
        "UPDATE headrace.entitlements SET period_start = period_start - $2::interval, period_end = period_end - $2"
        " WHERE subscription_id = $1",
        answer["subscription"]["id"],
        month,
    )
    await renewal.run_once(shop.db, RenewalConfig())


@pytest.mark.parametrize(
    ("end", "ended", "suspended"),
    [(by_refund, "REFUNDED", "SUSPENDED"), (by_time, "EXPIRED", "EXPIRED")],
    ids=["refund", "time"],
)
async def test_a_subscription_that_ends_while_tasks_run_pays_for_them(
    shop: Shop, bench: Bench, end: End, ended: str, suspended: str
) -> None:  # W-06, W-07, W-08, W-11
    may_end = asyncio.Event()

    async def render(context: TaskContext, payload: dict[str, Any]) -> None:
        await may_end.wait()
        if payload["do"] == "fail":
            raise Fatal("it cannot be read")
        if payload["do"] == "use":
            await context.used(2)

    bench.registry.task("render", units=5, max_attempts=1)(render)
    async with shop.db.transaction() as tx:
        await declare_types(tx, bench.registry)
    await shop.db.fetch_alone("UPDATE headrace.plans SET is_active = false WHERE id = $1", FREE_PLAN)
    answer = await shop.buy(auto_renew=False)
    whole, part, failed, waiting = [
        await bench.submit("render", {"do": do}, user_id=shop.user_id) for do in ("all", "use", "fail", "wait")
    ]
    async with bench.working(concurrency=3):
        for task_id in (whole, part, failed):
            await bench.until(task_id, lambda row: row["status"] == "RUNNING")
        await end(shop, answer)
        assert (await shop.status_of(answer))[0] == ended
        row = await shop.one("SELECT id, status, quota_left FROM headrace.entitlements")
        assert (row["status"], row["quota_left"]) == (suspended, UNITS - 4 * 5)
        with pytest.raises(QuotaExhausted):
            await bench.submit("render", {"do": "all"}, user_id=shop.user_id)
        may_end.set()
        # What waits when the money goes back does not start: it waits for its cancellation.
        await bench.over(whole, part, failed, *([] if end is by_refund else [waiting]))
    assert [each[:2] for each in await stand.entries(shop.db, whole)] == [("HELD", 5), ("COMMITTED", 5)]
    assert [each[:2] for each in await stand.entries(shop.db, part)] == [
        ("HELD", 5), ("COMMITTED", 2), ("RELEASED", 3),
    ]  # fmt: skip
    assert [each[:2] for each in await stand.entries(shop.db, failed)] == [("HELD", 5), ("RELEASED", 5)]
    paid = [] if end is by_refund else [("COMMITTED", 5)]
    assert [each[:2] for each in await stand.entries(shop.db, waiting)] == [("HELD", 5), *paid]
    assert await stand.left(shop.db, row["id"]) == UNITS - 5 - 2 - 5
    row = await shop.one("SELECT status FROM headrace.entitlements")
    assert row["status"] == suspended, "what was given back lapses with it"
    assert (await verify(shop.db, Who.system())).is_clean
