"""SQL for second factors and their recovery codes."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from headrace.database import Tx


@dataclass(frozen=True, slots=True)
class SecondFactor:
    """A locked row, and the database's time."""

    last_step: int
    at: float  # seconds since 1970
    sealed_secret: str = field(repr=False)


PUT = """
INSERT INTO headrace.second_factors (user_id, sealed_secret) VALUES ($1, $2)
ON CONFLICT (user_id) DO UPDATE SET sealed_secret = excluded.sealed_secret, last_step = 0, created_at = now()
"""


async def put_secret(tx: Tx, user_id: str, sealed_secret: str) -> None:
    """Store a secret that waits for its first code, in place of an earlier one that does."""
    await tx.execute(PUT, user_id, sealed_secret)


LOCK = """
SELECT sealed_secret, last_step, extract(epoch FROM coalesce($2, now()))::float8 AS at
FROM headrace.second_factors WHERE user_id = $1 FOR UPDATE
"""


async def lock_factor(tx: Tx, user_id: str, *, now: datetime | None = None) -> SecondFactor | None:
    row = await tx.fetchrow(LOCK, user_id, now)
    return None if row is None else SecondFactor(row["last_step"], row["at"], row["sealed_secret"])


NOTE_STEP = "UPDATE headrace.second_factors SET last_step = $2 WHERE user_id = $1 AND last_step < $2"


async def note_step(tx: Tx, user_id: str, step: int) -> bool:
    """Remember the step of an accepted code; False if this one or a later one was accepted before."""
    return await tx.count(NOTE_STEP, user_id, step) == 1


DELETE = "DELETE FROM headrace.second_factors WHERE user_id = $1"


async def delete_factor(tx: Tx, user_id: str) -> None:
    """Delete the secret, and the recovery codes with it."""
    await tx.execute(DELETE, user_id)


DELETE_CODES = "DELETE FROM headrace.recovery_codes WHERE user_id = $1"
INSERT_CODES = "INSERT INTO headrace.recovery_codes (user_id, code_hash) SELECT $1, unnest($2::bytea[])"


async def replace_codes(tx: Tx, user_id: str, hashes: Sequence[bytes]) -> None:
    await tx.execute(DELETE_CODES, user_id)
    await tx.execute(INSERT_CODES, user_id, list(hashes))


USE_CODE = "DELETE FROM headrace.recovery_codes WHERE user_id = $1 AND code_hash = $2"


async def use_code(tx: Tx, user_id: str, code_hash: bytes) -> bool:
    return await tx.count(USE_CODE, user_id, code_hash) == 1


COUNT_CODES = "SELECT count(*) FROM headrace.recovery_codes WHERE user_id = $1"


async def count_codes(tx: Tx, user_id: str) -> int:
    number: int = await tx.fetchval(COUNT_CODES, user_id)
    return number
