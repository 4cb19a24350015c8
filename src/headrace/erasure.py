"""The contract of erasers: each package deletes its data of a user whose account is deleted. The wiring passes the
erasers to ``accounts``, in the order in which they run.

>>> class ForgetNotes:
...     name = "notes"
...     async def erase(self, db: Database, user_id: str) -> AsyncGenerator[int, None]:
...         while True:
...             async with db.transaction() as tx:
...                 gone = await store.delete_notes(tx, user_id, limit=1000)
...             yield gone
...             if gone == 0:
...                 return
"""

from collections.abc import AsyncGenerator
from typing import Protocol

from headrace.database import Database
from headrace.errors import Conflict


class NotYet(Conflict):
    """Something of the user must end first."""

    code = "not_yet"


class Eraser(Protocol):
    """One step of the deletion of an account."""

    @property
    def name(self) -> str:
        """The stored name of the step; the same in all releases."""

    def erase(self, db: Database, user_id: str) -> AsyncGenerator[int, None]:
        """Delete or blank this user's data; yield the number of items after each batch.

        A batch is a short transaction of its own; files are deleted before the rows that name them. The process may die
        at any point and another starts again, so every step must be repeatable. ``NotYet`` when something must end
        first; the step is retried later.
        """
