"""Erases a user's credentials, before the user's own row is blanked."""

from collections.abc import AsyncGenerator

from headrace.accounts.store import deletions as store
from headrace.database import Database
from headrace.edge import stored_answers


class ForgetCredentials:
    """Deletes sessions with their addresses, API keys, links of e-mails, the second factor, counts of failed logins
    and stored idempotent answers."""

    name = "accounts.credentials"

    async def erase(self, db: Database, user_id: str) -> AsyncGenerator[int, None]:
        async with db.transaction() as tx:
            gone = await store.delete_credentials(tx, user_id)
        yield gone
        async with db.transaction() as tx:
            gone = await stored_answers.forget_user(tx, user_id)
        yield gone
