"""What the application's own role may do to the trail: add an event of now, and nothing else. A-03."""

from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from headrace import ids
from headrace.audit import sealing
from headrace.audit.findings import Flaw
from headrace.audit.sealing import Sealed, Sealer
from headrace.database import Database
from tests.audit.conftest import NOW, Fill, Tamper
from tests.audit.tampering import finding

# Everything that the application may choose, and what each attack adds to it.
ADD = """
INSERT INTO headrace.audit_events
  (id, "timestamp", created_at, action, resource_type, resource, "user", actor_type {columns})
SELECT $1::text, headrace.typeid_millis($1), headrace.instant_of_millis(headrace.typeid_millis($1)), 'created', 'task',
       '{{"type": "task", "identifier": "tsk_forged"}}', '{{"uid": "u_eve", "type": "user"}}', 'USER' {values}
"""
PLAIN = ADD.format(columns="", values="")
NUMBERED = ADD.format(columns=", seq", values=", $2::bigint")


async def test_the_application_cannot_choose_an_events_number(db: Database, fill: Fill) -> None:
    """With a number of its own choice it could add to a month that is long sealed, where nobody would look."""
    await fill(20)
    await Sealer(db).run_once()
    for number in (-5, 0, 5, 1_000_000):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            async with db.transaction() as tx:
                await tx.execute(NUMBERED, ids.new("aud"), number)


@pytest.mark.parametrize("off", [timedelta(days=-40), timedelta(minutes=-5), timedelta(minutes=5), timedelta(days=40)])
async def test_the_application_cannot_choose_an_events_time(db: Database, off: timedelta) -> None:
    with pytest.raises(asyncpg.InsufficientPrivilegeError, match="tr_audit_events_time"):
        async with db.transaction() as tx:
            await tx.execute(PLAIN, ids.new("aud", at=datetime.now(UTC) + off))
    async with db.transaction() as tx:
        await tx.execute(PLAIN, ids.new("aud"))


@pytest.mark.parametrize("number", [0, -5])
async def test_a_number_below_the_first_is_refused_and_found(
    db: Database, fill: Fill, tamper: Tamper, number: int
) -> None:
    await fill(20)
    await Sealer(db).run_once()
    forged = ids.new("aud", at=NOW)
    with pytest.raises(asyncpg.CheckViolationError, match="ck_audit_events_seq"):
        await tamper(NUMBERED, forged, number)
    await tamper("ALTER TABLE headrace.audit_events DROP CONSTRAINT ck_audit_events_seq")
    await tamper(NUMBERED, forged, number)
    found = await finding(db)
    assert (found.flaw, found.event_id) == (Flaw.ADDED, forged)


async def test_a_number_that_is_taken_is_refused_in_its_month_and_found_in_another(
    db: Database, fill: Fill, tamper: Tamper
) -> None:
    await fill(20)
    with pytest.raises(asyncpg.UniqueViolationError, match="uk_audit_events_seq"):
        await tamper(NUMBERED, ids.new("aud", at=NOW), 7)
    forged = ids.new("aud", at=datetime.now(UTC))
    await tamper(NUMBERED, forged, 7)
    found = await finding(db)
    assert (found.flaw, "number 7 " in found.message) == (Flaw.ADDED, True), "before it is sealed"
    await Sealer(db).run_once()
    assert (await finding(db)).flaw is Flaw.ADDED, "and after"


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("batches", [1, 20])  # that one transaction reads
async def test_events_with_one_number_are_sealed_together(
    db: Database, fill: Fill, tamper: Tamper, monkeypatch: pytest.MonkeyPatch, batches: int
) -> None:
    """Cut between two of them, the second part would have nothing to call its own, and sealing would stop for ever."""
    monkeypatch.setattr(sealing, "_BATCHES", batches)
    await fill(5)
    await tamper("DROP INDEX headrace.uk_audit_events_seq_default")
    for _ in range(20):
        await tamper(NUMBERED, ids.new("aud", at=NOW), 5)
    await fill(3)
    assert await Sealer(db).run_once() == Sealed(seals=2, events=28)
    await fill(1)
    assert await Sealer(db).run_once() == Sealed(seals=1, events=1)
    # Events with one number have no order of their own: they are found as added, or as moved.
    assert (await finding(db)).flaw in {Flaw.ADDED, Flaw.MOVED}


SEAL = """
INSERT INTO headrace.audit_seals (number, month, after_seq, last_seq, events, root, previous, chain, sealed_at)
SELECT $1, '2026-03-01', 0, $2, 1, chain, $3, chain, now() FROM headrace.audit_seals ORDER BY number DESC LIMIT 1
"""


async def test_the_application_cannot_stop_sealing_with_a_seal_of_its_own(db: Database, fill: Fill) -> None:
    """One over all numbers there could ever be would leave nothing to be sealed."""
    await fill(20)
    await Sealer(db).run_once()
    (last,) = await db.fetch_alone("SELECT number, chain FROM headrace.audit_seals")
    for number, last_seq, previous in (
        (2, 2**62, last["chain"]),
        (3, 20, last["chain"]),
        (2, 20, bytes(32)),
    ):
        with pytest.raises(asyncpg.CheckViolationError, match="tr_audit_seals_follow"):
            async with db.transaction() as tx:
                await tx.execute(SEAL, number, last_seq, previous)
    await fill(1)
    assert await Sealer(db).run_once() == Sealed(seals=1, events=1)
