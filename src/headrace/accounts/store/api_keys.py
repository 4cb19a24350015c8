"""SQL for API keys."""

from datetime import datetime, timedelta

from asyncpg import UniqueViolationError

from headrace.access import RateLimit
from headrace.accounts.errors import ApiKeyNameTaken
from headrace.accounts.model import ApiKey, ApiKeyId, UserId
from headrace.accounts.store.sessions import Holder
from headrace.database import Row, Tx
from headrace.edge.limits import USER_BUCKET, counting
from headrace.sql import Mark, Where

COLUMNS = "id, user_id, name, key_hint, scopes, expires_at, last_used_at, revoked_at, created_at, updated_at"


def api_key_of(row: Row) -> ApiKey:
    fields = {name: row[name] for name in ApiKey.__dataclass_fields__}
    return ApiKey(**fields | {"scopes": frozenset(row["scopes"])})


INSERT_API_KEY = f"""
INSERT INTO headrace.api_keys (id, user_id, name, key_hash, key_hint, scopes, expires_at)
SELECT $1, $2, $3, $4, $5, $6, $7::timestamptz WHERE coalesce($7::timestamptz > now(), true)
RETURNING {COLUMNS}
"""


async def insert_api_key(
    tx: Tx,
    api_key_id: ApiKeyId,
    user_id: UserId,
    *,
    name: str,
    key_hash: bytes,
    key_hint: str,
    scopes: frozenset[str],
    expires_at: datetime | None,
) -> ApiKey | None:
    """Insert a key; None if it would already be expired, ``ApiKeyNameTaken`` if an unrevoked one has the name."""
    try:
        row = await tx.fetchrow(
            INSERT_API_KEY, api_key_id, user_id, name, key_hash, key_hint, sorted(scopes), expires_at
        )
    except UniqueViolationError as exc:
        if exc.constraint_name != "uk_api_keys_user_name_active":
            raise
        raise ApiKeyNameTaken(field="name") from exc
    return None if row is None else api_key_of(row)


FIND_HOLDER = """
SELECT k.id, k.user_id, u.username, u.role, k.scopes,
       coalesce(k.last_used_at <= coalesce($3, now()) - $2::interval, true) AS note_use
FROM headrace.api_keys AS k JOIN headrace.users AS u ON u.id = k.user_id
WHERE k.key_hash = $1 AND k.revoked_at IS NULL AND coalesce(k.expires_at > coalesce($3, now()), true)
  AND u.status = 'ACTIVE'
"""


FIND_HOLDER_AND_COUNT = counting(FIND_HOLDER, first=4, bucket=USER_BUCKET)


async def find_holder(
    tx: Tx, key_hash: bytes, *, seen_every: timedelta, now: datetime | None = None, limit: RateLimit | None = None
) -> Holder | None:
    """The user of a key; with ``limit`` the same statement counts the request."""
    if limit is None:
        row = await tx.fetchrow(FIND_HOLDER, key_hash, seen_every, now)
    else:
        row = await tx.fetchrow(FIND_HOLDER_AND_COUNT, key_hash, seen_every, now, limit.interval, limit.window)
    return None if row is None else Holder.of(row, counted=limit is not None)


NOTE_USED = """
UPDATE headrace.api_keys SET last_used_at = coalesce($3, now()) WHERE id = (
  SELECT id FROM headrace.api_keys
  WHERE id = $1 AND coalesce(last_used_at <= coalesce($3, now()) - $2::interval, true) FOR NO KEY UPDATE SKIP LOCKED
)
"""


async def note_used(tx: Tx, api_key_id: str, *, every: timedelta, now: datetime | None = None) -> bool:
    return await tx.count(NOTE_USED, api_key_id, every, now) == 1


REVOKE_API_KEY = f"""
UPDATE headrace.api_keys SET revoked_at = now() WHERE id = $1 AND user_id = $2 AND revoked_at IS NULL
RETURNING {COLUMNS}
"""


async def revoke_api_key(tx: Tx, api_key_id: str, user_id: str) -> ApiKey | None:
    """Revoke a key of this user; None if there is no such unrevoked key."""
    row = await tx.fetchrow(REVOKE_API_KEY, api_key_id, user_id)
    return None if row is None else api_key_of(row)


FIND_API_KEY = f"SELECT {COLUMNS} FROM headrace.api_keys WHERE id = $1 AND user_id = $2"


async def find_api_key(tx: Tx, api_key_id: str, user_id: str) -> ApiKey | None:
    row = await tx.fetchrow(FIND_API_KEY, api_key_id, user_id)
    return None if row is None else api_key_of(row)


REVOKE_ALL = "UPDATE headrace.api_keys SET revoked_at = now() WHERE user_id = $1 AND revoked_at IS NULL"


async def revoke_all(tx: Tx, user_id: str) -> int:
    """Revoke all keys of this user; returns their number."""
    return await tx.count(REVOKE_ALL, user_id)


SELECT_API_KEYS = f"SELECT {COLUMNS} FROM headrace.api_keys"


COUNT_API_KEYS = "SELECT count(*) FROM headrace.api_keys WHERE user_id = $1 AND revoked_at IS NULL"


async def count_api_keys(tx: Tx, user_id: str) -> int:
    """Count the user's unrevoked keys, including expired ones."""
    count: int = await tx.fetchval(COUNT_API_KEYS, user_id)
    return count


async def list_api_keys(tx: Tx, user_id: str, *, older_than: Mark | None, limit: int) -> list[ApiKey]:
    """The user's unrevoked keys, including expired ones, newest first."""
    where = Where().eq("user_id", user_id).is_null("revoked_at").older_than(("created_at", "id"), older_than)
    rows = await tx.fetch(
        f"{SELECT_API_KEYS} {where.sql} ORDER BY created_at DESC, id DESC LIMIT ${where.next}", *where.args, limit
    )
    return [api_key_of(row) for row in rows]
