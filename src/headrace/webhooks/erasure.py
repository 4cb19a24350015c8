"""Erases a deleted user's webhooks: endpoints with their URLs and secrets, and all deliveries."""

from collections.abc import AsyncGenerator

from headrace.database import Database
from headrace.outbox import interests
from headrace.webhooks.model import CONSUMER
from headrace.webhooks.store import erasing

_BATCH = 1000


class ForgetWebhooks:
    name = "webhooks"

    async def erase(self, db: Database, user_id: str) -> AsyncGenerator[int, None]:
        async with db.transaction() as tx:
            endpoints = await erasing.endpoints_of(tx, user_id)
        for endpoint_id in endpoints:
            async with db.transaction() as tx:  # first, so that no new deliveries are written
                await interests.withdraw(tx, CONSUMER, endpoint_id)
                gone = await erasing.end(tx, endpoint_id)
            yield gone
            while True:
                async with db.transaction() as tx:
                    gone = await erasing.delete_deliveries(tx, endpoint_id, limit=_BATCH)
                yield gone
                if gone < _BATCH:
                    break
            async with db.transaction() as tx:
                gone = await erasing.delete_endpoint(tx, endpoint_id)
            yield gone
