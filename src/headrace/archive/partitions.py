"""Creates monthly partitions before they are needed, independent of migrations."""

from dataclasses import dataclass
from datetime import date, timedelta

from asyncpg import CheckViolationError

from headrace import audit, logs
from headrace.archive import store
from headrace.archive.model import MONTHLY, MonthlyTable
from headrace.audit import Action, Resource, ResourceType, Who
from headrace.database import Database
from headrace.errors import HeadraceError
from headrace.loops import repeat

log = logs.get(__name__)

# Writers to a table that the months refer to wait while one is made: a short wait, and another try in an hour.
_LOCK_WAIT = "SET LOCAL lock_timeout = '50ms'"


@dataclass(frozen=True, slots=True)
class Made:
    """Months that were made, and what stood in the way of others."""

    partitions: tuple[str, ...]
    problems: tuple[str, ...]


async def make_months_ahead(db: Database, who: Who) -> Made:
    """Make the months that are missing from this one to three ahead, each in a transaction of its own.

    The application's own rights are enough. Run it as often as you like, in any number of processes.
    """
    made: list[str] = []
    problems: list[str] = []
    for table in MONTHLY.values():
        try:
            while (month := await _make_one(db, table, who)) is not None:
                made.append(table.partition(month))
        except HeadraceError as exc:
            problems.append(f"{table.name}: {exc.message}")
        except CheckViolationError:
            problems.append(f"{table.name}: its default partition holds rows of the month that is to be made")
    return Made(tuple(made), tuple(problems))


async def _make_one(db: Database, table: MonthlyTable, who: Who) -> date | None:
    async with db.transaction() as tx:
        await tx.execute(_LOCK_WAIT)
        month = await store.make_month_ahead(tx, table.name)
        if month is not None:
            partition = Resource(ResourceType.PARTITION, table.partition(month), {"table": table.name})
            await audit.record(tx, who, Action.CREATED, partition)
        return month


async def keep_ahead(db: Database, every: timedelta) -> None:
    """Look every now and then, for as long as the process lives. An alarm tells of months that are missing."""

    async def run_once() -> None:
        made = await make_months_ahead(db, Who.system())
        if made.partitions or made.problems:
            log.info("partitions.made", partitions=made.partitions, problems=made.problems)

    await repeat(run_once, every, failed="partitions.not_made")
