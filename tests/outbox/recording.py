"""A consumer for tests: writes down what it receives, in a table that takes everything twice if it is given twice."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from headrace import outbox
from headrace.database import Database, Tx
from headrace.outbox import Event
from headrace.outbox.consumers import StoredEvent
from headrace.outbox.relay import Relay, Relayed

WRITE = (
    "INSERT INTO headrace.task_logs (task_id, status, message) SELECT * FROM unnest($1::text[], $2::text[], $3::text[])"
)
WRITTEN = "SELECT task_id, message FROM headrace.task_logs WHERE status = $1 ORDER BY id"
EVENTS = "SELECT event_id, aggregate_id, status, retry_count FROM headrace.outbox_events ORDER BY id"


class Recording:
    """Raises for the events that ``refuses`` picks, after it has written: what it wrote must go with the failure."""

    def __init__(
        self,
        name: str = "recording",
        *,
        interests: Sequence[str] = ("*",),
        refuses: Callable[[Event], bool] = lambda _: False,
    ) -> None:
        self.name = name
        self.interests = interests
        self.refuses = refuses
        self.batches: list[list[str]] = []

    async def receive(self, tx: Tx, events: Sequence[StoredEvent]) -> None:
        self.batches.append([stored.event.id for stored in events])
        await tx.execute(
            WRITE,
            [stored.event.aggregate_id for stored in events],
            [self.name for _ in events],
            [stored.event.id for stored in events],
        )
        for stored in events:
            if self.refuses(stored.event):
                raise ZeroDivisionError(stored.event.id)


async def write(db: Database, *aggregates: str, type: str = "thing.moved") -> list[Event]:  # noqa: A002
    """One event for each name, in this order."""
    events = [Event(type, "thing", name, {}) for name in aggregates]
    async with db.transaction() as tx:
        await outbox.append(tx, events)
    return events


async def received(db: Database, name: str = "recording") -> list[str]:
    """The ids of events, as they were received."""
    return [row["message"] for row in await db.fetch_alone(WRITTEN, name)]


async def statuses(db: Database) -> list[str]:
    return [row["status"] for row in await db.fetch_alone(EVENTS)]


async def check_each_once_in_order(db: Database, events: Sequence[Event], name: str = "recording") -> None:
    """Every event was received once, and those of an aggregate in the order in which they were written."""
    wanted, given = defaultdict(list), defaultdict(list)
    for row in await db.fetch_alone(EVENTS):
        wanted[row["aggregate_id"]].append(row["event_id"])
    for row in await db.fetch_alone(WRITTEN, name):
        given[row["task_id"]].append(row["message"])
    assert sum(map(len, wanted.values())) == len(events)
    assert given == wanted
    assert set(await statuses(db)) == {"PUBLISHED"}


async def relay_all(relay: Relay, *, now: datetime | None = None) -> Relayed:
    done = Relayed()
    while (more := await relay.run_once(now=now)) != Relayed():
        done += more
    return done


def later(by: timedelta = timedelta(hours=2)) -> datetime:
    """When whatever waits now has become due."""
    return datetime.now(UTC) + by
