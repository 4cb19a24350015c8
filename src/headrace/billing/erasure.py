"""Erases a deleted user's billing data: ids, sums, units and times stay; free text is removed, open orders end."""

from collections.abc import AsyncGenerator

from headrace import audit
from headrace.audit import Action, Who
from headrace.billing.payments import store as orders
from headrace.billing.payments.service import resource_of
from headrace.billing.subscriptions import service, store
from headrace.billing.subscriptions.model import SubscriptionStatus
from headrace.database import Database


class EndSubscriptions:
    """Subscriptions end at once and waiting orders are closed; ledger and payments stay, as the law requires."""

    name = "billing"

    async def erase(self, db: Database, user_id: str) -> AsyncGenerator[int, None]:
        who = Who.system()
        async with db.transaction() as tx:
            await store.lock_payer(tx, user_id)
            found = await store.list_open(tx, user_id)
            for subscription_id in found:
                if (waiting := await orders.lock_pending(tx, subscription_id)) is not None:
                    closed = await orders.close(tx, waiting)
                    await audit.record(tx, who, Action.DISABLED, resource_of(waiting), old=waiting, new=closed)
                if (subscription := await store.lock_subscription(tx, subscription_id)) is not None:
                    await service.end(tx, who, subscription, SubscriptionStatus.CANCELED)
            forgotten = await store.forget(tx, user_id) + await orders.forget(tx, user_id)
        yield len(found) + forgotten
