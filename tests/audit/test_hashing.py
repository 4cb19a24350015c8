"""What a seal is made of: the canonical text of an event, its hash, and the tree over many."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from headrace import audit
from headrace.audit import Action, Resource, ResourceType, Who, merkle
from headrace.audit.canonical import CANONICAL, COLUMNS, canonical
from headrace.audit.seals import LEAF
from headrace.database import Row, Tx
from tests.audit.conftest import ADA


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
        resource = Resource(ResourceType.TASK, text or "x", {text: text, "zz": "1", "b": text}, text)
        old, new = {"title": text, "id": text}, {"title": text * 100_000 if at == 4 else text}
        await audit.record(tx, odd, Action.CREATED, resource, old=old, new=new, data={text: text})
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
