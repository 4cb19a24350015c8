"""Letting go of the answers that ``idempotency`` keeps; apart from it, so that who cleans up loads no web framework."""

from headrace.database import Tx

REAP = """
DELETE FROM headrace.idempotency_keys WHERE id IN (
  SELECT id FROM headrace.idempotency_keys WHERE expires_at <= now()
  ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED
)
"""


async def reap(tx: Tx, limit: int) -> int:
    """Remove up to ``limit`` expired keys; says how many, so that the caller knows whether to come back."""
    return await tx.count(REAP, limit)


# From scope to scope through the unique key, which begins with it; there are a handful.
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
    """Remove the answers that one user was given; says how many. For when their account goes."""
    return await tx.count(FORGET_USER, user_id)
