"""The verified head: the seal up to which the trail was verified, so that the next verification continues there.

It lies in the database with an HMAC under a key that is not in the database. Without the key it can be moved neither
forward nor to a forged chain. Removing it, or putting an older one back, makes the next verification longer. It cannot
show a change to events that were verified before: each continued verification recomputes some earlier seals, chosen at
random, and a whole one all of them.
"""

import hashlib
import hmac
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date, datetime

import orjson

from headrace import logs
from headrace.database import Tx

log = logs.get(__name__)

PURPOSE = "audit.verified_head"


@dataclass(frozen=True, slots=True)
class VerifiedHead:
    """``months``: the last sealed number of each month up to this seal."""

    seal: int
    chain: bytes
    months: Mapping[date, int]
    signed_up_to: int
    last_number: int  # up to this number no two events have the same
    keys: bytes  # of the trusted keys, a digest: with others, signatures have to be checked again
    whole_at: datetime  # when the trail was last verified from its beginning

    def write(self) -> str:
        fields = {
            "seal": self.seal,
            "chain": self.chain.hex(),
            "months": {month.isoformat(): last for month, last in self.months.items()},
            "signed_up_to": self.signed_up_to,
            "last_number": self.last_number,
            "keys": self.keys.hex(),
            "whole_at": self.whole_at.isoformat(),
        }
        return orjson.dumps(fields, option=orjson.OPT_SORT_KEYS).decode()

    @classmethod
    def read(cls, text: str) -> "VerifiedHead":
        fields = orjson.loads(text)
        return cls(
            seal=fields["seal"],
            chain=bytes.fromhex(fields["chain"]),
            months={date.fromisoformat(month): last for month, last in fields["months"].items()},
            signed_up_to=fields["signed_up_to"],
            last_number=fields["last_number"],
            keys=bytes.fromhex(fields["keys"]),
            whole_at=datetime.fromisoformat(fields["whole_at"]),
        )


def digest_of(keys: Collection[bytes]) -> bytes:
    return hashlib.sha256(b"".join(sorted(keys))).digest()


FIND = "SELECT head, mac FROM headrace.audit_verified_head"


async def find(tx: Tx, key: bytes, *, keys: Collection[bytes]) -> VerifiedHead | None:
    """The verified head; None if there is none, if another key wrote it, or if other keys were trusted then."""
    row = await tx.fetchrow(FIND)
    if row is None:
        return None
    if not hmac.compare_digest(row["mac"], _mac(key, row["head"])):
        log.warning("audit.verified_head_refused")
        return None
    head = VerifiedHead.read(row["head"])
    return head if head.keys == digest_of(keys) else None


STORE = """
INSERT INTO headrace.audit_verified_head (head, mac) VALUES ($1, $2)
ON CONFLICT (only_row) DO UPDATE SET head = excluded.head, mac = excluded.mac, verified_at = now()
"""


async def store(tx: Tx, key: bytes, head: VerifiedHead) -> None:
    text = head.write()
    await tx.execute(STORE, text, _mac(key, text))


def _mac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), "sha256")
