"""What outlives its month, and what leaves the house: archives that are verified by the same seals, and proofs."""

from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

import pytest

from headrace import ids
from headrace.audit import errors, merkle, proving, verifying
from headrace.audit.findings import Flaw
from headrace.audit.sealing import Sealer
from headrace.audit.verifying import VerifyMode
from headrace.database import Database
from tests.audit.conftest import Fill, Tamper
from tests.audit.tampering import KEY, MARCH, finding

pytestmark = pytest.mark.usefixtures("small_batches")


async def test_a_month_from_an_archive_is_verified_by_the_same_function(
    db: Database, fill: Fill, tamper: Tamper
) -> None:
    events = await fill(20)
    await fill(3, start=datetime(2026, 4, 1, tzinfo=UTC))
    await Sealer(db).run_once()
    archived = [dict(row) for row in await db.fetch_alone("SELECT * FROM headrace.audit_events ORDER BY seq LIMIT 20")]
    await tamper("DELETE FROM headrace.audit_events WHERE created_at < '2026-04-01'")

    def archive(rows: list[dict[str, Any]]) -> VerifyMode:
        async def read(month: date) -> Any:
            assert month == MARCH
            for row in rows:
                yield row

        return VerifyMode(retired=march, archive=read)

    async def march() -> set[date]:
        return {MARCH}

    verified = await verifying.verify(db, against=VerifyMode(retired=march))
    assert (verified.events, verified.not_looked_at, verified.finding) == (3, [MARCH], None)
    verified = await verifying.verify(db, against=archive(archived))
    assert (verified.events, verified.not_looked_at, verified.finding) == (23, [], None)

    changed = [row | {"user_agent": "x"} if row["id"] == events[11] else row for row in archived]
    assert (await finding(db, against=archive(changed))).event_id == events[11]
    assert (await finding(db, against=archive(archived[:-1]))).event_id == events[19]
    assert (await finding(db, against=archive(archived[1:]))).event_id == events[0]
    late = archived[-1] | {"seq": archived[-1]["seq"] + 1}
    assert (await finding(db, against=archive([*archived, late]))).flaw is Flaw.ADDED


async def test_leaves_go_with_their_month(db: Database, fill: Fill, server: Any, database_url: str) -> None:
    await fill(20)
    await Sealer(db).run_once()
    name = database_url.partition("?")[0].rpartition("/")[2]
    config = replace(db.config, url=server.url(name, role="headrace_owner"))
    async with await Database.connect(config) as owner, owner.transaction() as tx:
        assert await tx.count("DELETE FROM headrace.audit_leaves WHERE month = $1", MARCH) == 3
    assert (await verifying.verify(db)).finding is None


async def test_a_proof_leads_from_the_event_to_the_seal(db: Database, fill: Fill) -> None:
    events = await fill(20)
    async with db.transaction() as tx:
        with pytest.raises(errors.NotSealed):
            await proving.prove(tx, events[0])
    await Sealer(db, KEY).run_once()
    async with db.transaction() as tx:
        for event in events:
            proof: Any = await proving.prove(tx, event)
            steps = [(side, bytes.fromhex(neighbour)) for side, neighbour in proof["path"]]
            assert merkle.climb(merkle.leaf(proof["event"].encode()), steps).hex() == proof["seal"]["root"]
        with pytest.raises(errors.EventNotFound):
            await proving.prove(tx, ids.new("aud"))
