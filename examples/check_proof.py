"""Checks a proof of `headrace audit proof EVENT`, without Headrace and without its database.

    python check_proof.py proof.json [CHAIN]

CHAIN is the seal's `chain` as you have it from elsewhere: a file of `headrace audit roots` that you kept, a signature.
"""

import hashlib
import json
import sys
from pathlib import Path


def sha256(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


if len(sys.argv) not in (2, 3):
    sys.exit(__doc__)
proof = json.loads(Path(sys.argv[1]).read_text())
seal = proof["seal"]
climbed = sha256(b"\x00" + proof["event"].encode())
for side, neighbour in proof["path"]:
    other = bytes.fromhex(neighbour)
    climbed = sha256(b"\x01" + (other + climbed if side == "left" else climbed + other))
facts = ("number", "month", "after_seq", "last_seq", "events", "root", "previous", "sealed_at")
chain = sha256("\n".join(["headrace.audit_seal.v1", *(str(seal[name]) for name in facts)]).encode()).hex()
known = sys.argv[2] if len(sys.argv) > 2 else seal["chain"]
if climbed.hex() != seal["root"] or not chain == known == seal["chain"]:
    sys.exit("This event was not sealed so.")
print(f"Sealed as number {seal['number']}:", *proof["event"].splitlines()[1:], sep="\n  ")
