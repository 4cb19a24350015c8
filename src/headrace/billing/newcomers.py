"""Grants a new user the free plan's units, in the transaction that creates the account."""

from headrace.billing import granting
from headrace.billing.periods import calendar_month
from headrace.billing.plans import store as plans
from headrace.billing.plans.model import FREE_PLAN
from headrace.billing.subscriptions import store
from headrace.database import Tx


async def grant_free_plan(tx: Tx, user_id: str) -> None:
    """Grant this month's free units; the schedule grants those of later months."""
    plan = await plans.find_plan(tx, FREE_PLAN)
    if plan is None or not plan.is_active:
        return
    start, end = calendar_month(await store.clock(tx))
    await granting.grant(
        tx,
        user_id=user_id,
        plan_id=plan.id,
        subscription_id=None,
        units=plan.monthly_quota,
        period_start=start,
        period_end=end,
        remark="free plan",
    )
