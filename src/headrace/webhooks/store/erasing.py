"""SQL that erases a deleted account's endpoints and deliveries."""

from headrace.database import Tx

ENDPOINTS_OF = "SELECT id FROM headrace.webhook_endpoints WHERE user_id = $1 ORDER BY id"


async def endpoints_of(tx: Tx, user_id: str) -> list[str]:
    """All of a user's endpoints, including deleted ones."""
    return [row["id"] for row in await tx.fetch(ENDPOINTS_OF, user_id)]


DISABLE = """
UPDATE headrace.webhook_endpoints
SET status = 'DISABLED', status_reason = 'by_hand', deleted_at = coalesce(deleted_at, now()), secret_ciphertext = '',
    secret_previous_ciphertext = NULL, version = version + 1
WHERE id = $1 AND (status <> 'DISABLED' OR deleted_at IS NULL)
"""
DELETE_QUEUE = "DELETE FROM headrace.webhook_queue WHERE endpoint_id = $1"


async def end(tx: Tx, endpoint_id: str) -> int:
    """Disable and delete an endpoint and empty its queue; returns the number of waiting deliveries."""
    await tx.execute(DISABLE, endpoint_id)
    return await tx.count(DELETE_QUEUE, endpoint_id)


# Deletes in batches, newest partition first, by the index of lists.
DELETE_DELIVERIES = """
DELETE FROM headrace.webhook_deliveries AS attempt
USING (
  SELECT id, period FROM headrace.webhook_deliveries WHERE endpoint_id = $1 ORDER BY id DESC LIMIT $2
) AS chosen
WHERE attempt.id = chosen.id AND attempt.period = chosen.period
"""


async def delete_deliveries(tx: Tx, endpoint_id: str, *, limit: int) -> int:
    return await tx.count(DELETE_DELIVERIES, endpoint_id, limit)


DELETE_ENDPOINT = "DELETE FROM headrace.webhook_endpoints WHERE id = $1"


async def delete_endpoint(tx: Tx, endpoint_id: str) -> int:
    return await tx.count(DELETE_ENDPOINT, endpoint_id)
