"""A trail that is whole in itself and yet not what it was: found by signatures and by what was exported before."""

import pytest

from headrace.audit import seals, verifying
from headrace.audit.findings import Flaw
from headrace.audit.sealing import Sealer
from headrace.audit.signing import SigningKey
from headrace.audit.verifying import VerifyMode
from headrace.database import Database
from tests.audit.conftest import Fill, Tamper
from tests.audit.tampering import CHANGES, KEY, finding, rewrite

pytestmark = pytest.mark.usefixtures("small_batches")


async def test_a_whole_history_made_up_anew_is_found_by_an_export_or_a_signature(
    db: Database, fill: Fill, tamper: Tamper
) -> None:
    events = await fill(30)
    await Sealer(db, KEY).run_once()
    async with db.transaction() as tx:
        exported = {seal.number: seal.chain for seal in await seals.list_after(tx, 0, limit=100)}
    assert (await verifying.verify(db, against=VerifyMode(keys={KEY.public}, exported=exported))).signed_up_to == 4
    await tamper(CHANGES["one byte"], events[10])
    await rewrite(db, tamper, 2)
    assert (await verifying.verify(db)).finding is None, "whole in itself"
    found = await finding(db, against=VerifyMode(keys={KEY.public}))
    assert (found.flaw, found.seal) == (Flaw.SIGNATURE, 2)
    found = await finding(db, against=VerifyMode(exported=exported))
    assert (found.flaw, found.seal) == (Flaw.EXPORT, 2)


async def test_a_key_that_nobody_trusts(db: Database, fill: Fill) -> None:
    await fill(1)
    await Sealer(db, SigningKey(bytes(32))).run_once()
    assert (await finding(db, against=VerifyMode(keys={KEY.public}))).flaw is Flaw.SIGNATURE
    older = VerifyMode(keys={KEY.public, SigningKey(bytes(32)).public})
    assert (await verifying.verify(db, against=older)).finding is None


async def test_a_trail_that_was_cut_off_is_found_by_an_export(db: Database, fill: Fill, tamper: Tamper) -> None:
    await fill(30)
    await Sealer(db).run_once()
    async with db.transaction() as tx:
        exported = {seal.number: seal.chain for seal in await seals.list_after(tx, 0, limit=100)}
    await tamper("DELETE FROM headrace.audit_events WHERE seq > 24")
    await tamper("DELETE FROM headrace.audit_leaves WHERE seal = 4")
    await tamper("DELETE FROM headrace.audit_seals WHERE number = 4")
    assert (await verifying.verify(db)).finding is None
    assert (await finding(db, against=VerifyMode(exported=exported))).seal == 4
    await tamper("DELETE FROM headrace.audit_leaves WHERE seal = 2")
    await tamper("DELETE FROM headrace.audit_seals WHERE number = 2")
    assert (await finding(db)).message == "Seal 2 is missing."


async def test_a_history_made_up_without_signatures_is_found_where_a_key_is_known(
    db: Database, fill: Fill, tamper: Tamper
) -> None:
    events = await fill(30)
    await Sealer(db, KEY).run_once()
    await tamper(CHANGES["one byte"], events[10])
    await rewrite(db, tamper, 2)
    await tamper("UPDATE headrace.audit_seals SET signed_by = NULL, signature = NULL WHERE number >= 2")
    found = await finding(db, against=VerifyMode(keys={KEY.public}))
    assert (found.flaw, found.seal) == (Flaw.SIGNATURE, 2)


async def test_seals_from_before_there_was_a_key_are_held_by_the_next_signature(db: Database, fill: Fill) -> None:
    await fill(10)
    await Sealer(db).run_once()
    await fill(1)
    await Sealer(db, KEY).run_once()
    assert (await verifying.verify(db, against=VerifyMode(keys={KEY.public}))).finding is None
