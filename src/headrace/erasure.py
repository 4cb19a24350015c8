"""When an account goes, each package removes what it keeps of the user. ``accounts`` knows none of them by itself:
the wiring hands it their erasers, in the order in which they are to run.

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
    """Something of the user has to end by itself first."""

    code = "not_yet"


class Eraser(Protocol):
    """One step of the deletion of an account."""

    @property
    def name(self) -> str:
        """What the step is remembered by. It stays the same from release to release."""

    def erase(self, db: Database, user_id: str) -> AsyncGenerator[int, None]:
        """Remove or blank what is kept of this user; give after each batch how many things went.

        A batch is short and a transaction of its own; files are removed before the rows that name them. The process
        may die at any point and another begins anew: what is gone already is then nothing to do. ``NotYet`` when
        something has to end by itself first; it is asked again in a while.
        """
