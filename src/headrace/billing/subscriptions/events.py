"""Events of subscriptions: ``subscription.activated``, ``.expiring``, ``.past_due``, ``.expired``,
``.canceled`` and ``.refunded``."""

from headrace import outbox
from headrace.audit import Who
from headrace.billing.subscriptions.model import Subscription
from headrace.database import Tx


async def append(tx: Tx, who: Who, what: str, subscription: Subscription) -> None:
    """Write ``subscription.WHAT`` in the transaction of the change."""
    event = outbox.Event(
        type=f"subscription.{what}",
        aggregate_type="subscription",
        aggregate_id=subscription.id,
        payload={
            "subscription_id": subscription.id,
            "user_id": subscription.user_id,
            "plan_id": subscription.plan_id,
            "status": subscription.status,
            "expire_at": None if subscription.expire_at is None else subscription.expire_at.isoformat(),
            "auto_renew": subscription.auto_renew,
        },
        user_id=subscription.user_id,
        trace_id=who.trace_id,
        request_id=who.request_id,
    )
    await outbox.append(tx, [event])
