"""Erases a deleted user's configs."""

from collections.abc import AsyncGenerator

from headrace.configs import store
from headrace.database import Database


class ForgetConfigs:
    """Deletes values of scope USER."""

    name = "configs"

    async def erase(self, db: Database, user_id: str) -> AsyncGenerator[int, None]:
        async with db.transaction() as tx:
            gone = await store.delete_of_user(tx, user_id)
        yield gone
