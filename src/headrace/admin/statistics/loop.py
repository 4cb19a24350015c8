"""The measuring loop, in every process that maintains the database."""

from datetime import timedelta

from headrace import logs
from headrace.admin.statistics.service import Measured, measure
from headrace.database import Database
from headrace.loops import repeat

log = logs.get(__name__)


async def run_once(db: Database) -> Measured:
    """Measure past minutes; mostly another process was first, and there is nothing to do."""
    async with db.transaction() as tx:
        measured = await measure(tx)
    if measured.minutes > 1:
        log.info("statistics.caught_up", minutes=measured.minutes)
    return measured


async def run(db: Database, every: timedelta) -> None:
    """Every so often, for as long as the process lives."""
    await repeat(lambda: run_once(db), every, failed="statistics.failed")
