"""Retention of webhooks. Deliveries are dropped by months (archive.model.MONTHLY)."""

from collections.abc import Sequence
from datetime import timedelta

from headrace.database import Tx
from headrace.purging import Purge
from headrace.webhooks.store import endpoints, queue


def purges(*, lifetime: timedelta, secret_overlap: timedelta) -> Sequence[Purge]:
    """Expire deliveries that waited too long; forget previous secrets that no longer sign."""

    async def expire(tx: Tx, limit: int) -> int:
        return await queue.expire(tx, limit, lifetime=lifetime)

    async def forget(tx: Tx, limit: int) -> int:
        return await endpoints.forget_old_secrets(tx, limit, overlap=secret_overlap)

    return (Purge("webhook_queue", expire), Purge("webhook_secrets", forget))
