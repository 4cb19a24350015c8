"""A verification continues where the last one ended, and the place where that was cannot be forged. A-03"""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from headrace.audit import continuing, verified_head, verifying
from headrace.audit.continuing import verify_further, verify_regularly
from headrace.audit.findings import Flaw
from headrace.audit.sealing import Sealer
from headrace.audit.seals import Seal
from headrace.audit.verifying import VerifyMode
from headrace.database import Database
from tests.audit.conftest import Fill, Tamper
from tests.audit.tampering import CHANGES, KEY, rewrite

pytestmark = pytest.mark.usefixtures("small_batches")

SECRET = b"k" * 32
CHANGE = CHANGES["one byte"]


async def test_it_continues_after_what_was_verified(db: Database, fill: Fill) -> None:
    await fill(50)
    await Sealer(db).run_once()
    first = await verify_further(db, SECRET)
    assert (first.continued_from, first.events) == (0, 50)
    await fill(20)
    await Sealer(db).run_once()
    second = await verify_further(db, SECRET)
    assert (second.continued_from, second.events, second.finding) == (first.seals, 20, None)
    assert second.sampled == min(verifying.SAMPLE, first.seals)
    assert second.whole_at == first.whole_at
    assert (await verify_further(db, SECRET)).events == 0
    whole = await verify_further(db, SECRET, whole=True)
    assert (whole.continued_from, whole.events) == (0, 70)
    assert first.whole_at is not None
    assert whole.whole_at is not None
    assert whole.whole_at >= first.whole_at


async def test_it_reads_no_more_for_a_longer_trail(db: Database, fill: Fill, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verifying, "SAMPLE", 2)
    await fill(60)
    await Sealer(db).run_once()
    await verify_further(db, SECRET)
    read: list[int] = []
    plain = verifying.Verification._read

    async def counting(self: verifying.Verification, window: Sequence[Seal]) -> dict[int, bytes]:
        read.append(len(window))
        return await plain(self, window)

    monkeypatch.setattr(verifying.Verification, "_read", counting)
    await fill(10)
    await Sealer(db).run_once()
    verified = await verify_further(db, SECRET)
    assert sum(read) == verified.seals + 2


async def test_a_change_after_the_head_is_named_and_the_head_stays(db: Database, fill: Fill, tamper: Tamper) -> None:
    await fill(20)
    await Sealer(db).run_once()
    first = await verify_further(db, SECRET)
    events = await fill(20)
    await Sealer(db).run_once()
    await tamper(CHANGE, events[7])
    for _ in range(2):
        verified = await verify_further(db, SECRET)
        assert verified.continued_from == first.seals
        assert verified.finding is not None
        assert (verified.finding.flaw, verified.finding.event_id) == (Flaw.CHANGED, events[7])


async def test_a_change_before_the_head_is_found_by_a_sample_or_by_a_whole_verification(
    db: Database, fill: Fill, tamper: Tamper, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = await fill(20)
    await Sealer(db).run_once()
    seals = (await verify_further(db, SECRET)).seals
    await tamper(CHANGE, events[3])
    found = (await verify_further(db, SECRET)).finding
    assert found is not None, f"all {seals} seals are in the sample"
    assert found.event_id == events[3]
    monkeypatch.setattr(verifying, "SAMPLE", 0)
    assert (await verify_further(db, SECRET)).finding is None
    found = (await verify_further(db, SECRET, whole=True)).finding
    assert found is not None
    assert found.event_id == events[3]


async def test_a_trail_that_was_cut_or_sealed_anew_before_the_head_is_found(
    db: Database, fill: Fill, tamper: Tamper
) -> None:
    events = await fill(30)
    await Sealer(db).run_once()
    head = (await verify_further(db, SECRET)).seals
    await tamper(CHANGE, events[3])
    await rewrite(db, tamper, 1)
    assert (await verifying.verify(db)).finding is None, "whole in itself"
    found = (await verify_further(db, SECRET)).finding
    assert found is not None
    assert (found.flaw, found.seal) == (Flaw.SEAL, head)
    await tamper("DELETE FROM headrace.audit_leaves WHERE seal = $1", head)
    await tamper("DELETE FROM headrace.audit_seals WHERE number = $1", head)
    found = (await verify_further(db, SECRET)).finding
    assert found is not None
    assert (found.flaw, found.seal) == (Flaw.CUT, head)


async def test_a_head_of_another_key_counts_as_none(db: Database, fill: Fill, tamper: Tamper) -> None:
    await fill(20)
    await Sealer(db).run_once()
    await verify_further(db, SECRET)
    assert (await verify_further(db, b"x" * 32)).continued_from == 0
    await tamper("UPDATE headrace.audit_verified_head SET head = replace(head, '\"seal\":', '\"seal\": ')")
    assert (await verify_further(db, b"x" * 32)).continued_from == 0
    assert (await verify_further(db, None)).continued_from == 0
    assert (await verify_further(db, b"x" * 32)).continued_from > 0


async def test_other_trusted_keys_have_the_signatures_checked_again(db: Database, fill: Fill) -> None:
    await fill(20)
    await Sealer(db).run_once()
    assert (await verify_further(db, SECRET)).finding is None
    found = (await verify_further(db, SECRET, against=VerifyMode(keys={KEY.public}))).finding
    assert found is not None
    assert found.flaw is Flaw.SIGNATURE


async def test_all_is_verified_once_a_week(db: Database, fill: Fill, monkeypatch: pytest.MonkeyPatch) -> None:
    await fill(20)
    await Sealer(db).run_once()
    assert (await verify_regularly(db, SECRET, against=VerifyMode())).continued_from == 0
    assert (await verify_regularly(db, SECRET, against=VerifyMode())).continued_from > 0
    monkeypatch.setattr(continuing, "WHOLE_EVERY", timedelta(hours=1))
    assert (await verify_regularly(db, SECRET, against=VerifyMode())).continued_from == 0


async def test_the_head_survives_writing_and_reading(db: Database, fill: Fill) -> None:
    await fill(20)
    await Sealer(db).run_once()
    await verify_further(db, SECRET)
    async with db.transaction() as tx:
        head = await verified_head.find(tx, SECRET, keys=())
    assert head is not None
    assert verified_head.VerifiedHead.read(head.write()) == head
