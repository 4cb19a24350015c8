"""What of it goes with an account."""

from collections.abc import AsyncGenerator

from headrace.admin.bulk import store
from headrace.database import Database


class ForgetBulkActions:
    """What the user asked for; the tasks that did it go with the others."""

    name = "bulk_actions"

    async def erase(self, db: Database, user_id: str) -> AsyncGenerator[int, None]:
        async with db.transaction() as tx:
            gone = await store.delete_of_user(tx, user_id)
        yield gone
