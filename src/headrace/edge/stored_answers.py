"""Deletes answers stored by ``idempotency``; a separate module, so that maintenance imports no web framework."""

from headrace.database import Tx

REAP = """
DELETE FROM headrace.idempotency_keys WHERE id IN (
  SELECT id FROM headrace.idempotency_keys WHERE expires_at <= now()
  ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED
)
"""


async def reap(tx: Tx, limit: int) -> int:
    """Delete at most ``limit`` expired keys; returns their number, so that the caller knows whether more remain."""
    return await tx.count(REAP, limit)


# Skips from scope to scope in the unique index, which begins with it; there are few.
FORGET_USER = """
WITH RECURSIVE scopes AS (
  SELECT min(scope) AS scope FROM headrace.idempotency_keys
  UNION ALL
  SELECT (SELECT min(k.scope) FROM headrace.idempotency_keys AS k WHERE k.scope > scopes.scope)
  FROM scopes WHERE scopes.scope IS NOT NULL
)
DELETE FROM headrace.idempotency_keys AS k USING scopes WHERE k.scope = scopes.scope AND k.user_id = $1
"""


async def forget_user(tx: Tx, user_id: str) -> int:
    """Delete the stored answers of one user, for account deletion; returns their number."""
    return await tx.count(FORGET_USER, user_id)
