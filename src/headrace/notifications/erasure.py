"""Erases all notifications of a deleted user. The one about the deletion itself is written later."""

from collections.abc import AsyncGenerator

from headrace.database import Database
from headrace.notifications import store

_BATCH = 1000


class ForgetNotifications:
    name = "notifications"

    async def erase(self, db: Database, user_id: str) -> AsyncGenerator[int, None]:
        while True:
            async with db.transaction() as tx:
                gone = await store.delete_of_user(tx, user_id, limit=_BATCH)
            yield gone
            if gone < _BATCH:
                return
