"""Seals: one hash for a batch of events, each chained to all earlier seals."""

import hashlib
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Self

from headrace import ids
from headrace.audit import merkle
from headrace.audit.canonical import CANONICAL, instant, micros
from headrace.audit.model import EventId
from headrace.database import Row, Tx

FORMAT = "headrace.audit_seal.v1"
NOTHING_BEFORE = bytes(32)
PREFIX = "aud"

_ID_SIZE = 16
# Maps a TypeID's alphabet to that of int(text, 32), which is far faster than a loop over the letters.
_LETTERS = str.maketrans("0123456789abcdefghjkmnpqrstvwxyz", "0123456789abcdefghijklmnopqrstuv")

LEAF = f"sha256('\\x00'::bytea || convert_to({CANONICAL}, 'UTF8'))"


@dataclass(frozen=True, slots=True)
class Seal:
    """The events of one month with ``after_seq < seq <= last_seq``, at the time of sealing."""

    number: int
    month: date
    after_seq: int
    last_seq: int
    events: int
    root: bytes
    previous: bytes
    sealed_at: datetime
    chain: bytes
    signed_by: bytes | None = None
    signature: bytes | None = None

    def expected_chain(self) -> bytes:
        """The hash of all other fields, including the previous chain hash."""
        facts = (self.number, self.month, self.after_seq, self.last_seq, self.events)
        lines = (FORMAT, *facts, self.root.hex(), self.previous.hex(), micros(self.sealed_at))
        return hashlib.sha256("\n".join(map(str, lines)).encode()).digest()

    @classmethod
    def from_json(cls, line: Mapping[str, Any]) -> Self:
        """The inverse of ``as_json``; raises ValueError, KeyError or TypeError."""
        signed_by, signature = line["signed_by"], line["signature"]
        return cls(
            number=int(line["number"]),
            month=date.fromisoformat(line["month"]),
            after_seq=int(line["after_seq"]),
            last_seq=int(line["last_seq"]),
            events=int(line["events"]),
            root=bytes.fromhex(line["root"]),
            previous=bytes.fromhex(line["previous"]),
            sealed_at=instant(int(line["sealed_at"])),
            chain=bytes.fromhex(line["chain"]),
            signed_by=None if signed_by is None else bytes.fromhex(signed_by),
            signature=None if signature is None else bytes.fromhex(signature),
        )

    def as_json(self) -> dict[str, object]:
        """One line of an export, and a part of every proof."""
        return {
            "number": self.number,
            "month": str(self.month),
            "after_seq": self.after_seq,
            "last_seq": self.last_seq,
            "events": self.events,
            "root": self.root.hex(),
            "previous": self.previous.hex(),
            "sealed_at": micros(self.sealed_at),
            "chain": self.chain.hex(),
            "signed_by": self.signed_by.hex() if self.signed_by else None,
            "signature": self.signature.hex() if self.signature else None,
        }


@dataclass(frozen=True, slots=True)
class Leaves:
    """The ids and hashes under a root."""

    ids: Sequence[EventId]
    hashes: Sequence[bytes]

    @classmethod
    def unpack(cls, ids_: bytes, hashes: bytes) -> "Leaves":
        parts = [ids_[at : at + _ID_SIZE] for at in range(0, len(ids_), _ID_SIZE)]
        return cls([_id_of(part) for part in parts], merkle.split(hashes))


def pack_ids(event_ids: Iterable[str]) -> bytes:
    return b"".join(map(_packed, event_ids))


def _packed(event_id: str) -> bytes:
    try:
        return int(event_id[-26:].translate(_LETTERS), 32).to_bytes(17)[1:]
    except (
        ValueError
    ):  # inserted by hand with a foreign id: sealed like all others, and identified only by its position
        return bytes(_ID_SIZE)


def _id_of(packed: bytes) -> EventId:
    return EventId(ids.from_uuid(PREFIX, uuid.UUID(bytes=packed)))


_COLUMNS = "number, month, after_seq, last_seq, events, root, previous, sealed_at, chain, signed_by, signature"
LAST_SEAL = f"SELECT {_COLUMNS} FROM headrace.audit_seals ORDER BY number DESC LIMIT 1"


async def find_last(tx: Tx) -> Seal | None:
    row = await tx.fetchrow(LAST_SEAL)
    return _seal(row) if row else None


CHAINS = "SELECT number, chain FROM headrace.audit_seals WHERE number = ANY ($1)"


async def read_chains(tx: Tx, numbers: Sequence[int]) -> dict[int, bytes]:
    """The chains of the seals with these numbers, without those that are not there."""
    return {row["number"]: row["chain"] for row in await tx.fetch(CHAINS, numbers)}


SEALED_ALL = "SELECT coalesce(max(last_seq), 0) FROM headrace.audit_seals"
SEALED_OF_MONTH = "SELECT coalesce(max(last_seq), 0) FROM headrace.audit_seals WHERE month = $1"


async def sealed_up_to(tx: Tx, month: date | None = None) -> int:
    """The last sealed number, of all events or of one month."""
    found: int = await (tx.fetchval(SEALED_ALL) if month is None else tx.fetchval(SEALED_OF_MONTH, month))
    return found


# An imported event is older than its position. It arrived after the last seal, or it would be sealed.
UNSEALED_FOR = """
SELECT now() - greatest(event.created_at, (SELECT sealed_at FROM headrace.audit_seals ORDER BY number DESC LIMIT 1))
FROM headrace.audit_events AS event
WHERE event.seq > (SELECT coalesce(max(last_seq), 0) FROM headrace.audit_seals)
ORDER BY event.seq
LIMIT 1
"""


async def unsealed_for(tx: Tx) -> timedelta | None:
    """The age of the first unsealed event; None when all are sealed."""
    waited: timedelta | None = await tx.fetchval(UNSEALED_FOR)
    return waited


SEALS_AFTER = f"SELECT {_COLUMNS} FROM headrace.audit_seals WHERE number > $1 ORDER BY number LIMIT $2"


async def list_after(tx: Tx, number: int, *, limit: int) -> list[Seal]:
    return [_seal(row) for row in await tx.fetch(SEALS_AFTER, number, limit)]


SEALS_NUMBERED = f"SELECT {_COLUMNS} FROM headrace.audit_seals WHERE number = ANY ($1) ORDER BY number"


async def list_numbered(tx: Tx, numbers: Sequence[int]) -> list[Seal]:
    """The seals with these numbers, without those that are not there."""
    return [_seal(row) for row in await tx.fetch(SEALS_NUMBERED, list(numbers))]


SEAL_OF = f"""
SELECT {_COLUMNS} FROM headrace.audit_seals WHERE month = $1 AND last_seq >= $2 ORDER BY last_seq LIMIT 1
"""


async def find_holding(tx: Tx, month: date, seq: int) -> Seal | None:
    """The seal that covers the event with this number."""
    row = await tx.fetchrow(SEAL_OF, month, seq)
    return _seal(row) if row else None


INSERT_SEAL = """
INSERT INTO headrace.audit_seals
  (number, month, after_seq, last_seq, events, root, previous, sealed_at, chain, signed_by, signature)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
"""
INSERT_LEAVES = "INSERT INTO headrace.audit_leaves (seal, month, ids, leaves) VALUES ($1, $2, $3, $4)"


async def insert(tx: Tx, made: Sequence[tuple[Seal, bytes, bytes]]) -> None:
    """Insert seals with the ids and hashes of their events."""
    await tx.executemany(
        INSERT_SEAL,
        [
            (
                *(seal.number, seal.month, seal.after_seq, seal.last_seq, seal.events, seal.root),
                *(seal.previous, seal.sealed_at, seal.chain, seal.signed_by, seal.signature),
            )
            for seal, _, _ in made
        ],
    )
    await tx.executemany(INSERT_LEAVES, [(seal.number, seal.month, ids_, hashes) for seal, ids_, hashes in made])


FIND_LEAVES = "SELECT ids, leaves FROM headrace.audit_leaves WHERE seal = $1"


async def find_leaves(tx: Tx, number: int) -> Leaves | None:
    row = await tx.fetchrow(FIND_LEAVES, number)
    return Leaves.unpack(row["ids"], row["leaves"]) if row else None


def _seal(row: Row) -> Seal:
    return Seal(**dict(row.items()))
