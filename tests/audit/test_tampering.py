"""Tamper evidence: whatever is done to events or seals, by whomever, is found and named, or refused."""

from dataclasses import replace
from datetime import date

import asyncpg
import pytest

from headrace import ids
from headrace.audit import sealing, seals, verifying
from headrace.audit.findings import Flaw
from headrace.audit.sealing import Sealer
from headrace.database import Database, Tx
from tests.audit.conftest import NOW, Fill, Tamper
from tests.audit.tampering import CHANGES, MARCH, finding

pytestmark = pytest.mark.usefixtures("small_batches")


@pytest.mark.parametrize(("change", "place"), list(zip(CHANGES, (0, 7, 8, 12, 19), strict=True)))
async def test_a_changed_event_is_named(db: Database, fill: Fill, tamper: Tamper, change: str, place: int) -> None:
    events = await fill(20)
    await Sealer(db).run_once()
    await tamper(CHANGES[change], events[place])
    found = await finding(db)
    assert (found.flaw, found.event_id) == (Flaw.CHANGED, events[place])
    assert events[place] in found.message
    assert (await finding(db, month=MARCH)).event_id == events[place]
    assert (await verifying.verify(db, month=date(2026, 4, 1))).finding is None


async def test_a_removed_event_is_named(db: Database, fill: Fill, tamper: Tamper) -> None:
    events = await fill(20)
    await Sealer(db).run_once()
    await tamper("DELETE FROM headrace.audit_events WHERE id = $1", events[19])
    found = await finding(db)
    assert (found.flaw, found.event_id) == (Flaw.MISSING, events[19])
    await tamper("DELETE FROM headrace.audit_events WHERE id = $1", events[3])
    assert (await finding(db)).event_id == events[3], "the first is named"


# The key of the partition that these events are in.
FORGET_KEY = "DROP INDEX headrace.uk_audit_events_seq_default"
SWAP_PLACES = """
UPDATE headrace.audit_events AS event SET seq = other.seq
FROM headrace.audit_events AS other
WHERE event.id <> other.id AND event.id IN ($1, $2) AND other.id IN ($1, $2)
"""
SWAP_CONTENTS = SWAP_PLACES.replace("seq = other.seq", "resource = other.resource")


async def test_two_swapped_events_are_named(db: Database, fill: Fill, tamper: Tamper) -> None:
    events = await fill(20)
    await Sealer(db).run_once()
    await tamper(FORGET_KEY)
    await tamper(SWAP_PLACES, events[2], events[5])
    found = await finding(db)
    assert (found.flaw, found.event_id) == (Flaw.MOVED, events[5])
    await tamper(SWAP_PLACES, events[2], events[5])
    assert (await verifying.verify(db)).finding is None
    await tamper(SWAP_CONTENTS, events[2], events[12])
    found = await finding(db)
    assert (found.flaw, found.event_id) == (Flaw.CHANGED, events[2])


ADD = """
INSERT INTO headrace.audit_events
SELECT $1::text, headrace.typeid_millis($1), action, resource_type, resource, "user", space_path, diff_object,
       client_ip, user_agent, request_method, request_id, data,
       headrace.instant_of_millis(headrace.typeid_millis($1)), actor_type, trace_id, $2
FROM headrace.audit_events LIMIT 1
"""


async def test_an_added_event_is_named(db: Database, fill: Fill, tamper: Tamper) -> None:
    await fill(20)
    await Sealer(db).run_once()
    await tamper(FORGET_KEY)
    for at, seq in ((NOW, 5), (NOW, 20), (NOW.replace(month=1), 5), (NOW.replace(month=5), 20)):
        forged = ids.new("aud", at=at)
        await tamper(ADD, forged, seq)
        found = await finding(db)
        assert (found.flaw, found.event_id) == (Flaw.ADDED, forged)
        await tamper("DELETE FROM headrace.audit_events WHERE id = $1", forged)
    assert (await verifying.verify(db)).finding is None


async def test_a_replaced_root_is_named(db: Database, fill: Fill, tamper: Tamper) -> None:
    await fill(30)
    await Sealer(db).run_once()
    await tamper("UPDATE headrace.audit_seals SET root = sha256(root) WHERE number = 2")
    found = await finding(db)
    assert (found.flaw, found.seal) == (Flaw.SEAL, 2)


async def test_a_root_that_was_chained_anew_is_found_by_the_next(db: Database, fill: Fill, tamper: Tamper) -> None:
    await fill(30)
    await Sealer(db).run_once()
    async with db.transaction() as tx:
        (second,) = await seals.list_after(tx, 1, limit=1)
    forged = replace(second, root=bytes(32))
    await tamper(
        "UPDATE headrace.audit_seals SET root = $1, chain = $2 WHERE number = 2", forged.root, forged.expected_chain()
    )
    assert (await finding(db)).seal == 2


async def test_without_its_leaves_a_change_is_found_and_its_seal_named(
    db: Database, fill: Fill, tamper: Tamper
) -> None:
    events = await fill(20)
    await Sealer(db).run_once()
    await tamper("DELETE FROM headrace.audit_leaves WHERE seal = 2")
    assert (await verifying.verify(db)).finding is None
    await tamper(CHANGES["one byte"], events[9])
    found = await finding(db)
    assert (found.flaw, found.seal) == (Flaw.UNNAMED, 2)


REFUSED = [
    "UPDATE headrace.audit_seals SET events = 1",
    "DELETE FROM headrace.audit_seals",
    "TRUNCATE headrace.audit_seals CASCADE",
    "UPDATE headrace.audit_leaves SET leaves = ''",
    "TRUNCATE headrace.audit_leaves",
]


@pytest.mark.parametrize("sql", REFUSED)
async def test_nobody_may_rewrite_seals(db: Database, fill: Fill, owner_tx: Tx, sql: str) -> None:
    await fill(1)
    await Sealer(db).run_once()
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        async with db.transaction() as tx:
            await tx.execute(sql)
    await owner_tx.execute(
        "INSERT INTO headrace.audit_seals VALUES (1, '2026-03-01', 0, 1, 1, $1, $1, $1, now())", bytes(32)
    )
    await owner_tx.execute("INSERT INTO headrace.audit_leaves VALUES (1, '2026-03-01', $1, $1)", bytes(16))
    with pytest.raises(asyncpg.RestrictViolationError):
        await owner_tx.execute(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "DROP TABLE headrace.audit_events_default",
        "ALTER TABLE headrace.audit_events DETACH PARTITION headrace.audit_events_default",
        "ALTER TABLE headrace.audit_events DISABLE TRIGGER ALL",
        "DROP TABLE headrace.audit_events",
        "SET session_replication_role = replica",
    ],
)
async def test_the_application_may_not_remove_what_guards_the_trail(tx: Tx, sql: str) -> None:
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await tx.execute(sql)


async def test_a_seal_that_leaves_events_out_is_found(db: Database, fill: Fill) -> None:
    events = await fill(10)
    async with db.transaction() as tx:
        rows = await tx.fetch(sealing.UNSEALED, 0, 1_000_000, 100)
        made = sealing._seal(None, rows[2]["month"], rows[1]["seq"], rows[2:], NOW, None)
        await seals.insert(tx, [(made, seals.pack_ids(events[2:]), b"".join(row["leaf"] for row in rows[2:]))])
    assert (await finding(db)).flaw is Flaw.SEAL
