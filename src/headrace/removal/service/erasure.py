"""What removals forget of a user whose account goes."""

from collections.abc import AsyncGenerator

from headrace.database import Database
from headrace.removal.service.orders.store import BLANK_OF_USER

_MAX_BATCH_ROWS = 500


class ForgetRemovals:
    """Blanks from where rights were declared, and in which words. The rows go with their tasks soon after."""

    name = "removals"

    async def erase(self, db: Database, user_id: str) -> AsyncGenerator[int, None]:
        while True:
            async with db.transaction() as tx:
                blanked = await tx.count(BLANK_OF_USER, user_id, _MAX_BATCH_ROWS)
            yield blanked
            if blanked < _MAX_BATCH_ROWS:
                break
