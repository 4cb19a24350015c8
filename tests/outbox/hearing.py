"""Somebody who wants events, so that they are written."""

from headrace.database import Database
from headrace.outbox import interests
from headrace.outbox.interests import Interest


async def want(db: Database, *wanted: Interest | str, key: str = "") -> None:
    """From now on these events are written: all of tasks, if nothing is named."""
    chosen = [Interest(each) if isinstance(each, str) else each for each in wanted or ("task.*",)]
    async with db.transaction() as tx:
        await interests.declare(tx, "tests", key, chosen)
