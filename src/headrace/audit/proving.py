"""Proofs that an event was sealed, verifiable without the database and the product."""

from headrace.audit import merkle, seals
from headrace.audit.canonical import CANONICAL
from headrace.audit.errors import EventNotFound, NotSealed
from headrace.audit.seals import LEAF
from headrace.database import Tx

FORMAT = "headrace.audit_proof.v1"

EVENT = f"""
SELECT seq, {CANONICAL} AS canonical, {LEAF} AS leaf,
       date_trunc('month', created_at AT TIME ZONE 'UTC')::date AS month
FROM headrace.audit_events
WHERE id = $1::text AND created_at = headrace.instant_of_millis(headrace.typeid_millis($1))
"""


async def prove(tx: Tx, event_id: str) -> dict[str, object]:
    """The event's bytes, the path from their hash to the root of its seal, and the seal. ``examples/check_proof.py``
    verifies it. ``NotSealed`` for an event of the last minutes."""
    row = await tx.fetchrow(EVENT, event_id)
    if row is None:
        raise EventNotFound
    seal = await seals.find_holding(tx, row["month"], row["seq"])
    if seal is None:
        raise NotSealed
    leaves = await seals.find_leaves(tx, seal.number)
    if leaves is None or row["leaf"] not in leaves.hashes:
        raise EventNotFound("This event differs from its sealed form: run `headrace audit verify`.")
    index = list(leaves.hashes).index(row["leaf"])
    return {
        "format": FORMAT,
        "event": row["canonical"],
        "path": [[side, neighbour.hex()] for side, neighbour in merkle.path(leaves.hashes, index)],
        "seal": seal.as_json(),
    }
