"""What is done to a trail behind its back, and what is found of it."""

from dataclasses import replace
from datetime import date
from typing import Any

from headrace.audit import merkle, seals, verifying
from headrace.audit.findings import Finding
from headrace.audit.seals import LEAF
from headrace.audit.signing import SigningKey
from headrace.database import Database
from tests.audit.conftest import Tamper

KEY = SigningKey(bytes(range(32)))
MARCH = date(2026, 3, 1)


async def finding(db: Database, **given: Any) -> Finding:
    found = (await verifying.verify(db, **given)).finding
    assert found is not None
    return found


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


async def rewrite(db: Database, tamper: Tamper, number: int) -> None:
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
