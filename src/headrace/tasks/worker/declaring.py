"""Declaring a worker's types when it starts."""

import asyncio

from headrace import logs
from headrace.database import Database
from headrace.database_errors import DatabaseBusy
from headrace.tasks.catalog import declare_types
from headrace.tasks.registry import Registry

log = logs.get(__name__)

# So often are types declared, with this pause in between, before a worker that cannot gives up.
_TIMES = 20
_AGAIN_S = 0.5


async def declare_patiently(db: Database, registry: Registry) -> None:
    """Declare them, though rows of running types may stay locked for a while, as by handlers that finish them."""
    for left in reversed(range(_TIMES)):
        try:
            async with db.transaction() as tx:
                await declare_types(tx, registry)
        except DatabaseBusy as exc:
            if left == 0:
                raise
            log.warning("worker.types_undeclared", error=exc.code, times_left=left)
            await asyncio.sleep(_AGAIN_S)
        else:
            return
