"""Sealing: everything that was committed, once, whoever writes or seals at the same time."""

import asyncio
from datetime import UTC, date, datetime, timedelta

import pytest

from headrace import audit
from headrace.audit import Action, Resource, ResourceType, Who, seals, verifying
from headrace.audit.sealing import Sealed, Sealer
from headrace.database import Database, Tx
from tests.audit.conftest import NOW, Fill
from tests.audit.tampering import KEY, MARCH

pytestmark = pytest.mark.usefixtures("small_batches")


async def test_what_was_committed_is_sealed_once(db: Database, fill: Fill) -> None:
    await fill(20)
    assert await Sealer(db).run_once() == Sealed(seals=3, events=20)
    assert await Sealer(db).run_once() == Sealed()
    await fill(1, start=NOW.replace(day=21))
    assert await Sealer(db).run_once() == Sealed(seals=1, events=1)
    verified = await verifying.verify(db)
    assert (verified.seals, verified.events, verified.unsealed, verified.finding) == (4, 21, 0, None)


async def test_a_seal_holds_one_month(db: Database, fill: Fill) -> None:
    await fill(6, start=datetime(2026, 2, 28, 23, 59, 57, tzinfo=UTC))
    assert await Sealer(db).run_once() == Sealed(seals=2, events=6)
    rows = await db.fetch_alone("SELECT month, events FROM headrace.audit_seals ORDER BY number")
    assert [tuple(row) for row in rows] == [(date(2026, 2, 1), 3), (MARCH, 3)]
    for month, events in ((MARCH, 3), (date(2026, 1, 1), 0)):
        verified = await verifying.verify(db, month=month)
        assert (verified.events, verified.finding) == (events, None)


async def test_months_may_come_in_any_order(db: Database, fill: Fill) -> None:
    february = NOW.replace(month=2)
    for at in (NOW, february, NOW.replace(day=21)):
        await fill(1, start=at)
    assert await Sealer(db).run_once() == Sealed(seals=2, events=3)
    await fill(1, start=february.replace(day=21))
    verified = await verifying.verify(db)
    assert (verified.events, verified.unsealed, verified.finding) == (3, 1, None)
    assert await Sealer(db).run_once() == Sealed(seals=1, events=1)
    assert (await verifying.verify(db)).finding is None


async def test_a_late_commit_is_waited_for(db: Database, who: Who) -> None:
    """A transaction that took its number early and commits late must not fall between two seals."""

    async def record(tx: Tx) -> None:
        await audit.record(tx, who, Action.READ, Resource(ResourceType.USER, "u"))

    async with db.transaction() as late:
        await record(late)
        async with db.transaction() as tx:
            await record(tx)
        assert await Sealer(db, patience=0).run_once() == Sealed(waiting=True)
        patient = asyncio.create_task(Sealer(db, patience=60).run_once())
        await asyncio.sleep(0.1)
        assert not patient.done()
        async with db.transaction() as tx:  # whoever comes after the note is not waited for
            await record(tx)
    assert await patient == Sealed(seals=1, events=2)
    assert await Sealer(db).run_once() == Sealed(seals=1, events=1)
    assert (await verifying.verify(db)).finding is None


async def test_how_long_events_have_waited_for_their_seal_is_known(db: Database, fill: Fill) -> None:
    async def waited() -> timedelta | None:
        async with db.transaction(readonly=True) as tx:
            return await seals.unsealed_for(tx)

    assert await waited() is None
    await fill(1, start=datetime.now(UTC) - timedelta(hours=2))
    assert round(((await waited()) or timedelta()) / timedelta(hours=1)) == 2
    await Sealer(db).run_once()
    assert await waited() is None
    await fill(1, start=NOW)  # as an import does: long past, and yet not here for long
    assert ((await waited()) or timedelta.max) < timedelta(minutes=1)


async def test_a_process_without_the_key_leaves_a_signed_trail_to_others(
    db: Database, fill: Fill, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(1)
    await Sealer(db, KEY).run_once()
    await fill(1)
    looks = asyncio.Queue[None]()
    find_last = seals.find_last

    async def looked(tx: Tx) -> seals.Seal | None:
        looks.put_nowait(None)
        return await find_last(tx)

    monkeypatch.setattr(seals, "find_last", looked)
    loop = asyncio.create_task(Sealer(db).run(timedelta(milliseconds=1)))
    for _ in range(3):
        await looks.get()
    loop.cancel()
    assert (await verifying.verify(db)).unsealed == 1
    assert await Sealer(db).run_once() == Sealed(seals=1, events=1), "whoever calls this has been asked"


async def test_many_sealers_and_writers_at_once(db: Database, fill: Fill) -> None:
    async def seal() -> int:
        return (await Sealer(db).run_once()).events

    results = await asyncio.gather(
        *(fill(10, start=NOW.replace(minute=n)) for n in range(6)), *(seal() for _ in range(6)), return_exceptions=False
    )
    done = sum(each for each in results if isinstance(each, int))
    while (more := await seal()) > 0:
        done += more
    assert done == 60
    verified = await verifying.verify(db)
    assert (verified.events, verified.unsealed, verified.finding) == (60, 0, None)
