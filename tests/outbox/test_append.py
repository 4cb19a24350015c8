"""Events go into the outbox with the change that they tell of, in order."""

import asyncpg
import pytest

from headrace import ids, outbox
from headrace.database import Database, Tx
from headrace.outbox import Event

WRITTEN = """
SELECT event_id, event_type, event_version, aggregate_type, aggregate_id, trace_id, payload_json, headers_json, status,
       retry_count, next_retry_at <= now() AS due
FROM headrace.outbox_events ORDER BY id
"""


async def test_an_event_is_written_as_given_and_is_due_at_once(tx: Tx) -> None:
    event = Event(
        "plan.changed", "plan", "pln_1", {"name": "Größe", "units": [1, 2]}, version=3, trace_id="t-1", request_id="r-1"
    )
    await outbox.append(tx, [event])
    [row] = await tx.fetch(WRITTEN)
    assert dict(row) == {
        "event_id": event.id,
        "event_type": "plan.changed",
        "event_version": 3,
        "aggregate_type": "plan",
        "aggregate_id": "pln_1",
        "trace_id": "t-1",
        "payload_json": {"name": "Größe", "units": [1, 2]},
        "headers_json": {"trace_id": "t-1", "request_id": "r-1"},
        "status": "PENDING",
        "retry_count": 0,
        "due": True,
    }
    assert ids.check(event.id, "evt")


async def test_headers_hold_what_is_known_or_are_none(tx: Tx) -> None:
    await outbox.append(
        tx,
        [
            Event("a.b", "a", "a_1", {}),
            Event("a.b", "a", "a_1", {}, trace_id="t"),
            Event("a.b", "a", "a_1", {}, request_id="r"),
        ],
    )
    assert [row["headers_json"] for row in await tx.fetch(WRITTEN)] == [None, {"trace_id": "t"}, {"request_id": "r"}]


async def test_a_batch_keeps_its_order(tx: Tx) -> None:
    events = [Event("thing.moved", "thing", f"t_{number % 7}", {"step": number}) for number in range(500)]
    await outbox.append(tx, events)
    assert [row["event_id"] for row in await tx.fetch(WRITTEN)] == [event.id for event in events]


async def test_no_events_are_no_statement(tx: Tx) -> None:
    statements: list[str] = []
    with tx.connection.query_logger(lambda record: statements.append(record.query)):
        await outbox.append(tx, [])
        assert statements == []
        await outbox.append(tx, [Event("thing.made", "thing", "t_1", {})])
        assert statements, "the connection says what it sends"


async def test_an_event_goes_with_its_transaction(db: Database) -> None:
    with pytest.raises(ZeroDivisionError):
        async with db.transaction() as tx:
            await outbox.append(tx, [Event("thing.made", "thing", "t_1", {})])
            raise ZeroDivisionError
    assert await db.fetch_alone(WRITTEN) == []


async def test_an_event_is_written_once(tx: Tx) -> None:
    event = Event("thing.made", "thing", "t_1", {})
    await outbox.append(tx, [event])
    with pytest.raises(asyncpg.UniqueViolationError, match="uk_outbox_events_event_id"):
        await outbox.append(tx, [event])


@pytest.mark.parametrize(
    "wrong", [{"type": ""}, {"aggregate_type": ""}, {"aggregate_id": ""}, {"version": 0}], ids=lambda wrong: str(*wrong)
)
def test_an_event_that_names_nothing_is_refused(wrong: dict[str, object]) -> None:
    given: dict[str, object] = {"type": "a.b", "aggregate_type": "a", "aggregate_id": "a_1", "payload": {}}
    with pytest.raises(ValueError):
        Event(**given | wrong)  # type: ignore[arg-type]
