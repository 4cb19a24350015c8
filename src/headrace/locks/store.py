"""SQL of locks. The unique index over active rows is the lock; later statements match the token's digest.

Times are ``clock_timestamp()``, not the transaction's start: a waiting transaction began before the last holding ended,
and the history must not show two holders at once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from headrace.database import Row, Tx
from headrace.locks.model import Claim, Lock, LockState
from headrace.sql import Where

_STATE = "CASE WHEN state = 'active' AND expires_at <= clock_timestamp() THEN 'expired' ELSE state END AS state"
_COLUMNS = f"""id, user_id, lock_key, fence, holder_id, {_STATE}, purpose, acquired_at, expires_at, released_at,
  greatest(expires_at - clock_timestamp(), '0') AS remaining"""


def _lock_of(row: Row) -> Lock:
    fields: Mapping[str, Any] = dict(row)
    return Lock(**{**fields, "state": LockState(fields["state"])})


def _found(row: Row | None) -> Lock | None:
    return None if row is None else _lock_of(row)


FIND_HELD = f"""
SELECT {_COLUMNS}
FROM headrace.task_locks
WHERE user_id = $1 AND lock_key = $2 AND state = 'active' AND expires_at > clock_timestamp()
"""


async def find_held(tx: Tx, user_id: str, key: str) -> Lock | None:
    """The active holding of this key."""
    return _found(await tx.fetchrow(FIND_HELD, user_id, key))


COUNT_HELD = """
SELECT count(*) FROM headrace.task_locks WHERE user_id = $1 AND state = 'active' AND expires_at > clock_timestamp()
"""


async def count_held(tx: Tx, user_id: str) -> int:
    """How many locks of this user are held."""
    count: int = await tx.fetchval(COUNT_HELD, user_id)
    return count


# The next taker waits here for its predecessor's transaction; a taker that finds it held does not get here.
NEXT_FENCE = """
INSERT INTO headrace.lock_fences AS last (user_id, lock_key, fence) VALUES ($1, $2, 1)
ON CONFLICT (user_id, lock_key) DO UPDATE SET fence = last.fence + 1
RETURNING fence
"""


async def next_fence(tx: Tx, user_id: str, key: str) -> int:
    """The next, larger fence of this key; blocks other takers until the transaction ends."""
    fence: int = await tx.fetchval(NEXT_FENCE, user_id, key)
    return fence


# FOR UPDATE waits for a holder's transaction that has confirmed the lock (FOR KEY SHARE): until it ends the lock is
# held, even after its expiry.
EXPIRE_ONE = """
UPDATE headrace.task_locks SET state = 'expired' WHERE id = (
  SELECT id FROM headrace.task_locks
  WHERE user_id = $1 AND lock_key = $2 AND state = 'active' AND expires_at <= clock_timestamp()
  FOR UPDATE SKIP LOCKED
)
"""


async def expire_one(tx: Tx, user_id: str, key: str) -> None:
    """Mark an overdue holding of this key as expired, if there is one."""
    await tx.execute(EXPIRE_ONE, user_id, key)


# Only the holder of the fence row gets here, so a row that is still active is being ended or was confirmed by its
# holder: it counts as held. Waiting at the index would date the new holding before the old one's end.
INSERT_LOCK = f"""
INSERT INTO headrace.task_locks
  (user_id, lock_key, fence, holder_id, token, state, purpose, acquired_at, expires_at)
SELECT $1::varchar, $2::varchar, $3, $4, $5, 'active', $6, at, at + $7
FROM (SELECT clock_timestamp() AS at) AS moment
WHERE NOT EXISTS (
  SELECT FROM headrace.task_locks WHERE user_id = $1::varchar AND lock_key = $2::varchar AND state = 'active'
)
ON CONFLICT (user_id, lock_key) WHERE state = 'active' DO NOTHING
RETURNING {_COLUMNS}
"""


async def insert_lock(tx: Tx, claim: Claim, *, fence: int, digest: str) -> Lock | None:
    """Insert the holding; None if the lock is held."""
    row = await tx.fetchrow(
        INSERT_LOCK, claim.user_id, claim.key, fence, claim.holder, digest, claim.purpose, claim.ttl
    )
    return _found(row)


RENEW = f"""
UPDATE headrace.task_locks SET expires_at = clock_timestamp() + $4
WHERE user_id = $1 AND lock_key = $2 AND token = $3 AND state = 'active' AND expires_at > clock_timestamp()
RETURNING {_COLUMNS}
"""


async def renew(tx: Tx, user_id: str, key: str, *, digest: str, ttl: timedelta) -> Lock | None:
    """Extend the lease to ``ttl`` from now; None if it is no longer held with this token."""
    return _found(await tx.fetchrow(RENEW, user_id, key, digest, ttl))


# FOR KEY SHARE allows the background renewal, and blocks the end of the holding.
CONFIRM = """
SELECT true FROM headrace.task_locks
WHERE user_id = $1 AND lock_key = $2 AND token = $3 AND state = 'active' AND expires_at > clock_timestamp()
FOR KEY SHARE
"""


async def confirm(tx: Tx, user_id: str, key: str, *, digest: str) -> bool:
    """Whether it is held with this token; if so, it stays held until the transaction ends."""
    return await tx.fetchval(CONFIRM, user_id, key, digest) is not None


LOCK_ACTIVE = f"""
SELECT {_COLUMNS} FROM headrace.task_locks
WHERE user_id = $1 AND lock_key = $2 AND state = 'active' AND ($3::text IS NULL OR token = $3)
  AND expires_at > clock_timestamp()
FOR UPDATE
"""
RELEASE = f"""
UPDATE headrace.task_locks SET state = 'released', released_at = clock_timestamp()
WHERE id = $1 AND state = 'active'
RETURNING {_COLUMNS}
"""


async def release(tx: Tx, user_id: str, key: str, *, digest: str | None) -> tuple[Lock, Lock] | None:
    """End a holding; returns it before and after, or None. Without a digest it ends for any holder."""
    old = await tx.fetchrow(LOCK_ACTIVE, user_id, key, digest)
    if old is None:
        return None
    new = await tx.fetchrow(RELEASE, old["id"])
    assert new is not None  # locked by the statement before
    return _lock_of(old), _lock_of(new)


@dataclass(frozen=True, slots=True)
class Filter:
    """Filters of locks; None does not filter. ``user_id`` None means all users."""

    user_id: str | None
    key: str | None = None
    holder: str | None = None
    state: LockState | None = None


# Row conditions of each state: an overdue active row counts as expired before it is marked so.
_IN_STATE: Mapping[LockState, Sequence[str]] = {
    LockState.ACTIVE: ("state = 'active' AND expires_at > clock_timestamp()",),
    LockState.EXPIRED: ("state = 'expired'", "state = 'active' AND expires_at <= clock_timestamp()"),
    LockState.RELEASED: ("state = 'released'",),
}
_EVERY_STATE = ("state = 'active'", "state = 'expired'", "state = 'released'")


async def list_locks(tx: Tx, wanted: Filter, *, before: int | None = None, limit: int) -> list[Lock]:
    """Present and past holdings, newest first."""
    where = Where().eq("user_id", wanted.user_id).eq("lock_key", wanted.key).eq("holder_id", wanted.holder)
    where = where.below("id", before)
    # One index scan for each state, merged: the indexes are ordered within a state.
    states = _IN_STATE[wanted.state] if wanted.state else _EVERY_STATE if wanted.user_id else ("true",)
    walks = [
        f"(SELECT {_COLUMNS} FROM headrace.task_locks WHERE {' AND '.join((*where.clauses, state))} "
        f"ORDER BY id DESC LIMIT ${where.next})"
        for state in states
    ]
    merged = f"SELECT * FROM ({' UNION ALL '.join(walks)}) AS lock ORDER BY id DESC LIMIT ${where.next}"
    rows = await tx.fetch(merged, *where.args, limit)
    return [_lock_of(row) for row in rows]


EXPIRE = """
UPDATE headrace.task_locks SET state = 'expired' WHERE id IN (
  SELECT id FROM headrace.task_locks
  WHERE state = 'active' AND expires_at <= coalesce($2, clock_timestamp())
  ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED
)
"""


async def expire(tx: Tx, limit: int, *, now: datetime | None = None) -> int:
    """Mark at most ``limit`` overdue locks as expired; returns their number."""
    return await tx.count(EXPIRE, limit, now)
