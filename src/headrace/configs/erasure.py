"""What configs forget of a user whose account goes."""

from collections.abc import AsyncGenerator

from headrace.configs import store
from headrace.database import Database


class ForgetConfigs:
    """The values that were set for the user alone."""

    name = "configs"

    async def erase(self, db: Database, user_id: str) -> AsyncGenerator[int, None]:
        async with db.transaction() as tx:
            gone = await store.delete_of_user(tx, user_id)
        yield gone
