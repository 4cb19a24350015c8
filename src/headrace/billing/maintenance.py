"""Scheduled jobs of billing: monthly free units, expiry notices, ends of subscriptions, and queries about orders whose
notice never came. ``admin.maintenance`` ships the schedules, enabled."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from pydantic import BaseModel

from headrace.billing import usage
from headrace.billing.payments import checking
from headrace.billing.payments.config import OrderConfig, WeChatPayConfig
from headrace.billing.payments.service import open_payments
from headrace.billing.refunded_tasks import CANCEL_REFUNDED, cancel_waiting
from headrace.billing.subscriptions import renewal
from headrace.billing.subscriptions.model import RenewalConfig
from headrace.database import Database
from headrace.schedules.model import ScheduleSpec
from headrace.tasks.context import TaskContext
from headrace.tasks.registry import Registry
from headrace.tasks.service import Tasks

RENEW = "headrace.renew-subscriptions"
CHECK = "headrace.check-payments"
ADD_UP_USAGE = "headrace.add-up-usage"

_HOUR = 3600
SCHEDULES: Sequence[ScheduleSpec] = (
    ScheduleSpec(
        name="headrace: subscriptions",
        type=RENEW,
        interval=600,
        description="Grants the free plan's units of each month, announces subscriptions that end soon, and ends those "
        "whose period is over.",
        max_duration_seconds=_HOUR,
        max_retries=0,  # the next run comes soon
    ),
    ScheduleSpec(
        name="headrace: payments",
        type=CHECK,
        interval=60,
        description="Queries WeChat Pay about orders and refunds whose notice has not come, and closes unpaid orders.",
        max_duration_seconds=_HOUR,
        max_retries=0,
    ),
    ScheduleSpec(
        name="headrace: usage by day",
        type=ADD_UP_USAGE,
        interval=_HOUR,
        description="Adds up the units of each user and day that is over, for plots of months and years.",
        max_duration_seconds=_HOUR,
        max_retries=0,
    ),
)


@dataclass(frozen=True, slots=True)
class BillingJobs:
    """Dependencies of the handlers."""

    renewal: RenewalConfig = field(default_factory=RenewalConfig)
    wechatpay: WeChatPayConfig | None = None
    orders: OrderConfig = field(default_factory=OrderConfig)


class Refunded(BaseModel):
    """Payload: the entitlement that was revoked."""

    entitlement_id: str


def add_handlers(
    registry: Registry, db: Database, jobs: BillingJobs, tasks: Callable[[], Tasks], *, queue: str
) -> None:
    """Register the task types of these schedules."""

    @registry.task(RENEW, queue=queue)
    async def renew(_context: TaskContext, _payload: Any) -> dict[str, int]:
        """Grant, announce and end what is due."""
        return asdict(await renewal.run_once(db, jobs.renewal))

    @registry.task(CHECK, queue=queue)
    async def check(_context: TaskContext, _payload: Any) -> dict[str, int]:
        """Query open orders."""
        async with open_payments(jobs.wechatpay, jobs.orders) as payments:
            return dict(await checking.run_once(db, payments))

    @registry.task(ADD_UP_USAGE, queue=queue)
    async def add_up_usage(_context: TaskContext, _payload: Any) -> dict[str, int]:
        """Add up days that are over."""
        return {"days": await usage.add_up_days(db)}

    @registry.task(CANCEL_REFUNDED, queue=queue)
    async def cancel_refunded(_context: TaskContext, refunded: Refunded) -> dict[str, int]:
        """Cancel waiting tasks whose units were refunded."""
        return {"canceled": await cancel_waiting(db, tasks, refunded.entitlement_id)}
