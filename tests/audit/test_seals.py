"""Tamper evidence: whatever is done to the trail, by whomever, is found and named."""

import asyncio
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import asyncpg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace import audit, ids
from headrace.audit import (
    Action,
    Against,
    Flaw,
    Resource,
    ResourceType,
    Sealed,
    Sealer,
    SigningKey,
    Who,
    merkle,
    sealing,
    seals,
)
from headrace.audit.canonical import CANONICAL, COLUMNS, canonical
from headrace.audit.seals import LEAF
from headrace.database import Database, Row, Tx
from tests.audit.conftest import ADA, NOW, Fill, Tamper

KEY = SigningKey(bytes(range(32)))
MARCH = date(2026, 3, 1)


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealing, "BATCH", 8)


async def finding(db: Database, **given: Any) -> audit.Finding:
    found = (await audit.verify(db, **given)).finding
    assert found is not None
    return found


# -- what a seal is


@given(st.lists(st.binary(min_size=32, max_size=32), min_size=1, max_size=40))
def test_every_leaf_has_a_path_to_the_root(leaves: list[bytes]) -> None:
    root = merkle.root(leaves)
    for index, leaf in enumerate(leaves):
        assert merkle.climb(leaf, merkle.path(leaves, index)) == root
        assert merkle.climb(bytes(32), merkle.path(leaves, index)) != root or leaf == bytes(32)


def test_trees_are_those_of_rfc_6962() -> None:
    entries = [bytes.fromhex(text) for text in ("", "00", "10", "2021", "3031", "40414243", "5051525354555657")]
    # The roots that the test vectors of Certificate Transparency give for the first so many of these.
    known = {
        1: "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        2: "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        3: "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        7: "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    }
    for count, root in known.items():
        assert merkle.root([merkle.leaf(entry) for entry in entries[:count]]).hex() == root


async def rows_of(tx: Tx) -> list[Row]:
    return await tx.fetch(f"SELECT *, {CANONICAL} AS canonical, {LEAF} AS leaf FROM headrace.audit_events ORDER BY seq")


NASTY = ["", "a\nb", 'quote " and \\ back', "\x01\x1f\x7f", "水💧é", " ", "null", "{}", "a/b", "\u2028"]


async def test_python_and_the_database_hash_the_same_bytes(tx: Tx, who: Who) -> None:
    for at, text in enumerate(NASTY):
        odd = replace(
            who.acting_as(ADA), user_agent=text, request_id=text or None, request_method=text[:16], trace_id=text
        )
        resource = Resource(ResourceType.TASK, text or "x", {text: text, "zz": "1", "b": text})
        old, new = {"title": text, "id": text}, {"title": text * 100_000 if at == 4 else text}
        await audit.record(tx, odd, Action.CREATED, resource, old=old, new=new, data={text: text}, space_path=text)
    await audit.record(tx, Who.system(), Action.READ, Resource(ResourceType.QUEUE, "q"))
    rows = await rows_of(tx)
    assert len(rows) == len(NASTY) + 1
    for row in rows:
        assert canonical(row) == row["canonical"].encode()
        assert merkle.leaf(canonical(row)) == row["leaf"]


async def test_every_column_is_hashed(owner_tx: Tx) -> None:
    found = await owner_tx.fetch(
        "SELECT attname FROM pg_attribute WHERE attrelid = 'headrace.audit_events'::regclass AND attnum > 0"
    )
    assert {row["attname"] for row in found} == set(COLUMNS)


async def test_an_archive_s_text_gives_the_same_hash(tx: Tx, who: Who) -> None:
    await audit.record(tx, who, Action.CREATED, Resource(ResourceType.USER, "u", {"a": "é"}), new={"id": "水"})
    texts = ", ".join(f'"{name}"::text AS "{name}"' for name in ("resource", "user", "diff_object", "data"))
    others = "id, seq, timestamp, created_at, action, resource_type, actor_type, client_ip, space_path, user_agent"
    row = await tx.fetchrow(
        f"SELECT {others}, request_method, request_id, trace_id, {texts}, {LEAF} AS leaf FROM headrace.audit_events"
    )
    assert row is not None
    assert merkle.leaf(canonical(row)) == row["leaf"]


# -- sealing


async def test_what_was_committed_is_sealed_once(db: Database, fill: Fill) -> None:
    await fill(20)
    assert await Sealer(db).run_once() == Sealed(seals=3, events=20)
    assert await Sealer(db).run_once() == Sealed()
    await fill(1, start=NOW.replace(day=21))
    assert await Sealer(db).run_once() == Sealed(seals=1, events=1)
    verified = await audit.verify(db)
    assert (verified.seals, verified.events, verified.unsealed, verified.finding) == (4, 21, 0, None)


async def test_a_seal_holds_one_month(db: Database, fill: Fill) -> None:
    await fill(6, start=datetime(2026, 2, 28, 23, 59, 57, tzinfo=UTC))
    assert await Sealer(db).run_once() == Sealed(seals=2, events=6)
    rows = await db.fetch_alone("SELECT month, events FROM headrace.audit_seals ORDER BY number")
    assert [tuple(row) for row in rows] == [(date(2026, 2, 1), 3), (MARCH, 3)]
    for month, events in ((MARCH, 3), (date(2026, 1, 1), 0)):
        verified = await audit.verify(db, month=month)
        assert (verified.events, verified.finding) == (events, None)


async def test_months_may_come_in_any_order(db: Database, fill: Fill) -> None:
    february = NOW.replace(month=2)
    for at in (NOW, february, NOW.replace(day=21)):
        await fill(1, start=at)
    assert await Sealer(db).run_once() == Sealed(seals=2, events=3)
    await fill(1, start=february.replace(day=21))
    verified = await audit.verify(db)
    assert (verified.events, verified.unsealed, verified.finding) == (3, 1, None)
    assert await Sealer(db).run_once() == Sealed(seals=1, events=1)
    assert (await audit.verify(db)).finding is None


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
    assert (await audit.verify(db)).finding is None


async def test_how_long_events_have_waited_for_their_seal_is_known(db: Database, fill: Fill) -> None:
    async def waited() -> timedelta | None:
        async with db.transaction(readonly=True) as tx:
            return await audit.unsealed_for(tx)

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
    assert (await audit.verify(db)).unsealed == 1
    assert await Sealer(db).run_once() == Sealed(seals=1, events=1), "somebody who asks for it is obeyed"


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
    verified = await audit.verify(db)
    assert (verified.events, verified.unsealed, verified.finding) == (60, 0, None)


# -- tampering: must be seen 1

CHANGES = {
    "one byte": "UPDATE headrace.audit_events SET user_agent = 'm' WHERE id = $1",
    "the address": "UPDATE headrace.audit_events SET client_ip = '192.0.2.8' WHERE id = $1",
    "what it said": (
        "UPDATE headrace.audit_events SET diff_object = "
        "jsonb_set(diff_object, '{new_object}', to_jsonb(replace(diff_object ->> 'new_object', 'SUS', 'SUZ'))) "
        "WHERE id = $1"
    ),
    "who": 'UPDATE headrace.audit_events SET "user" = "user" || \'{"uid": "u_eve"}\' WHERE id = $1',
    "an empty text for none": "UPDATE headrace.audit_events SET space_path = '' WHERE id = $1",
}


@pytest.mark.parametrize(("change", "place"), list(zip(CHANGES, (0, 7, 8, 12, 19), strict=True)))
async def test_a_changed_event_is_named(db: Database, fill: Fill, tamper: Tamper, change: str, place: int) -> None:
    events = await fill(20)
    await Sealer(db).run_once()
    await tamper(CHANGES[change], events[place])
    found = await finding(db)
    assert (found.flaw, found.event_id) == (Flaw.CHANGED, events[place])
    assert events[place] in found.message
    assert (await finding(db, month=MARCH)).event_id == events[place]
    assert (await audit.verify(db, month=date(2026, 4, 1))).finding is None


async def test_a_removed_event_is_named(db: Database, fill: Fill, tamper: Tamper) -> None:
    events = await fill(20)
    await Sealer(db).run_once()
    await tamper("DELETE FROM headrace.audit_events WHERE id = $1", events[19])
    found = await finding(db)
    assert (found.flaw, found.event_id) == (Flaw.MISSING, events[19])
    await tamper("DELETE FROM headrace.audit_events WHERE id = $1", events[3])
    assert (await finding(db)).event_id == events[3], "the first is named"


SWAP_PLACES = """
UPDATE headrace.audit_events AS event SET seq = other.seq
FROM headrace.audit_events AS other
WHERE event.id <> other.id AND event.id IN ($1, $2) AND other.id IN ($1, $2)
"""
SWAP_CONTENTS = SWAP_PLACES.replace("seq = other.seq", "resource = other.resource")


async def test_two_swapped_events_are_named(db: Database, fill: Fill, tamper: Tamper) -> None:
    events = await fill(20)
    await Sealer(db).run_once()
    await tamper(SWAP_PLACES, events[2], events[5])
    found = await finding(db)
    assert (found.flaw, found.event_id) == (Flaw.MOVED, events[5])
    await tamper(SWAP_PLACES, events[2], events[5])
    assert (await audit.verify(db)).finding is None
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
    for at, seq in ((NOW, 5), (NOW, 20), (NOW.replace(month=1), 5), (NOW.replace(month=5), 20)):
        forged = ids.new("aud", at=at)
        await tamper(ADD, forged, seq)
        found = await finding(db)
        assert (found.flaw, found.event_id) == (Flaw.ADDED, forged)
        await tamper("DELETE FROM headrace.audit_events WHERE id = $1", forged)
    assert (await audit.verify(db)).finding is None


async def test_a_replaced_root_is_named(db: Database, fill: Fill, tamper: Tamper) -> None:
    await fill(30)
    await Sealer(db).run_once()
    await tamper("UPDATE headrace.audit_seals SET root = sha256(root) WHERE number = 2")
    found = await finding(db)
    assert (found.flaw, found.seal) == (Flaw.SEAL, 2)


async def rewrite(db: Database, tamper: Tamper, number: int, *, key: SigningKey | None = None) -> None:
    """What a superuser who knows all of this would do: seal anew from here on, over whatever is there now."""
    async with db.transaction() as tx:
        chain = await seals.list_after(tx, 0, limit=100)
        for at in range(number - 1, len(chain)):
            events = await tx.fetch(
                f"SELECT id, {LEAF} AS leaf FROM headrace.audit_events WHERE seq > $1 AND seq <= $2 ORDER BY seq",
                chain[at].after_seq,
                chain[at].last_seq,
            )
            hashes = [row["leaf"] for row in events]
            seal = replace(
                chain[at],
                root=merkle.root(hashes),
                events=len(events),
                previous=chain[at - 1].chain if at else seals.NOTHING_BEFORE,
            )
            chain[at] = replace(seal, chain=seal.expected_chain())
            await tamper(
                "UPDATE headrace.audit_leaves SET leaves = $2 WHERE seal = $1", chain[at].number, b"".join(hashes)
            )
            await tamper(
                "UPDATE headrace.audit_seals SET root = $2, previous = $3, chain = $4, events = $5 WHERE number = $1",
                *(chain[at].number, chain[at].root, chain[at].previous, chain[at].chain, chain[at].events),
            )


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


async def test_a_whole_history_made_up_anew_is_found_by_an_export_or_a_signature(
    db: Database, fill: Fill, tamper: Tamper
) -> None:
    events = await fill(30)
    await Sealer(db, KEY).run_once()
    async with db.transaction() as tx:
        exported = {seal.number: seal.chain for seal in await seals.list_after(tx, 0, limit=100)}
    assert (await audit.verify(db, against=Against(keys={KEY.public}, exported=exported))).signed_up_to == 4
    await tamper(CHANGES["one byte"], events[10])
    await rewrite(db, tamper, 2)
    assert (await audit.verify(db)).finding is None, "whole in itself"
    found = await finding(db, against=Against(keys={KEY.public}))
    assert (found.flaw, found.seal) == (Flaw.SIGNATURE, 2)
    found = await finding(db, against=Against(exported=exported))
    assert (found.flaw, found.seal) == (Flaw.EXPORT, 2)


async def test_a_key_that_nobody_trusts(db: Database, fill: Fill) -> None:
    await fill(1)
    await Sealer(db, SigningKey(bytes(32))).run_once()
    assert (await finding(db, against=Against(keys={KEY.public}))).flaw is Flaw.SIGNATURE
    older = Against(keys={KEY.public, SigningKey(bytes(32)).public})
    assert (await audit.verify(db, against=older)).finding is None


async def test_a_trail_that_was_cut_off_is_found_by_an_export(db: Database, fill: Fill, tamper: Tamper) -> None:
    await fill(30)
    await Sealer(db).run_once()
    async with db.transaction() as tx:
        exported = {seal.number: seal.chain for seal in await seals.list_after(tx, 0, limit=100)}
    await tamper("DELETE FROM headrace.audit_events WHERE seq > 24")
    await tamper("DELETE FROM headrace.audit_leaves WHERE seal = 4")
    await tamper("DELETE FROM headrace.audit_seals WHERE number = 4")
    assert (await audit.verify(db)).finding is None
    assert (await finding(db, against=Against(exported=exported))).seal == 4
    await tamper("DELETE FROM headrace.audit_leaves WHERE seal = 2")
    await tamper("DELETE FROM headrace.audit_seals WHERE number = 2")
    assert (await finding(db)).message == "Seal 2 is missing."


async def test_without_its_leaves_a_change_is_found_and_its_seal_named(
    db: Database, fill: Fill, tamper: Tamper
) -> None:
    events = await fill(20)
    await Sealer(db).run_once()
    await tamper("DELETE FROM headrace.audit_leaves WHERE seal = 2")
    assert (await audit.verify(db)).finding is None
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


# -- months that were archived


async def test_a_month_from_an_archive_is_verified_by_the_same_function(
    db: Database, fill: Fill, tamper: Tamper
) -> None:
    events = await fill(20)
    await fill(3, start=datetime(2026, 4, 1, tzinfo=UTC))
    await Sealer(db).run_once()
    archived = [dict(row) for row in await db.fetch_alone("SELECT * FROM headrace.audit_events ORDER BY seq LIMIT 20")]
    await tamper("DELETE FROM headrace.audit_events WHERE created_at < '2026-04-01'")

    def archive(rows: list[dict[str, Any]]) -> Against:
        async def read(month: date) -> Any:
            assert month == MARCH
            for row in rows:
                yield row

        return Against(retired=march, archive=read)

    async def march() -> set[date]:
        return {MARCH}

    verified = await audit.verify(db, against=Against(retired=march))
    assert (verified.events, verified.not_looked_at, verified.finding) == (3, [MARCH], None)
    verified = await audit.verify(db, against=archive(archived))
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
        assert await audit.forget_leaves(tx, MARCH) == 3
    assert (await audit.verify(db)).finding is None


# -- proofs


async def test_a_proof_leads_from_the_event_to_the_seal(db: Database, fill: Fill) -> None:
    events = await fill(20)
    async with db.transaction() as tx:
        with pytest.raises(audit.NotSealed):
            await audit.prove(tx, events[0])
    await Sealer(db, KEY).run_once()
    async with db.transaction() as tx:
        for event in events:
            proof: Any = await audit.prove(tx, event)
            steps = [(side, bytes.fromhex(neighbour)) for side, neighbour in proof["path"]]
            assert merkle.climb(merkle.leaf(proof["event"].encode()), steps).hex() == proof["seal"]["root"]
        with pytest.raises(audit.EventNotFound):
            await audit.prove(tx, ids.new("aud"))


async def test_a_history_made_up_without_signatures_is_found_where_a_key_is_known(
    db: Database, fill: Fill, tamper: Tamper
) -> None:
    events = await fill(30)
    await Sealer(db, KEY).run_once()
    await tamper(CHANGES["one byte"], events[10])
    await rewrite(db, tamper, 2)
    await tamper("UPDATE headrace.audit_seals SET signed_by = NULL, signature = NULL WHERE number >= 2")
    found = await finding(db, against=Against(keys={KEY.public}))
    assert (found.flaw, found.seal) == (Flaw.SIGNATURE, 2)


async def test_seals_from_before_there_was_a_key_are_held_by_the_next_signature(db: Database, fill: Fill) -> None:
    await fill(10)
    await Sealer(db).run_once()
    await fill(1)
    await Sealer(db, KEY).run_once()
    assert (await audit.verify(db, against=Against(keys={KEY.public}))).finding is None


async def test_a_seal_that_leaves_events_out_is_found(db: Database, fill: Fill) -> None:
    events = await fill(10)
    async with db.transaction() as tx:
        rows = await tx.fetch(sealing.UNSEALED, 0, 1_000_000, 100)
        made = sealing._seal(None, rows[2]["month"], rows[1]["seq"], rows[2:], NOW, None)
        await seals.insert(tx, [(made, seals.pack_ids(events[2:]), b"".join(row["leaf"] for row in rows[2:]))])
    assert (await finding(db)).flaw is Flaw.SEAL
