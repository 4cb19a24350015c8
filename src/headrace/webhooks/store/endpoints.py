"""SQL of endpoints. Rows are locked FOR NO KEY UPDATE: deliveries that refer to them may be written meanwhile."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import asyncpg

from headrace.database import Row, Tx
from headrace.sql import Mark, Where
from headrace.webhooks.errors import EndpointUrlTaken
from headrace.webhooks.model import Endpoint, EndpointId, EndpointSpec, EndpointStatus, StatusReason

COLUMNS = """id, user_id, name, url, status, status_reason, secret_ciphertext, secret_previous_ciphertext, secret_hint,
  secret_rotated_at, subscribed_events, task_types, timeout_ms, max_retries, allow_ips, ordered, every_user,
  failing_since, version, created_at, updated_at, deleted_at"""


def endpoint_of(row: Row | Mapping[str, Any]) -> Endpoint:
    fields: dict[str, Any] = dict(row)
    return Endpoint(
        **{
            **fields,
            "status": EndpointStatus(fields["status"]),
            "status_reason": None if fields["status_reason"] is None else StatusReason(fields["status_reason"]),
            "subscribed_events": tuple(fields["subscribed_events"]),
            "task_types": _tuple(fields["task_types"]),
            "allow_ips": _tuple(fields["allow_ips"]),
        }
    )


def _tuple(value: Any) -> tuple[str, ...] | None:
    return None if value is None else tuple(value)


def _list(value: tuple[str, ...] | None) -> list[str] | None:
    return None if value is None else list(value)


# Without the lock two concurrent inserts would both pass the limit.
LOCK_OWNER = "SELECT id FROM headrace.users WHERE id = $1 FOR NO KEY UPDATE"
COUNT = "SELECT count(*) FROM headrace.webhook_endpoints WHERE user_id = $1 AND deleted_at IS NULL"


async def count_for_insert(tx: Tx, user_id: str) -> int:
    """Count a user's endpoints, and lock the user so that the count holds until the transaction ends."""
    await tx.execute(LOCK_OWNER, user_id)
    count: int = await tx.fetchval(COUNT, user_id)
    return count


INSERT = f"""
INSERT INTO headrace.webhook_endpoints
  (id, user_id, name, url, status, secret_ciphertext, secret_hint, subscribed_events, task_types, timeout_ms,
   max_retries, allow_ips, ordered, every_user)
VALUES ($1, $2, $3, $4, 'ACTIVE', $5, $6, $7, $8, $9, $10, $11, $12, $13)
RETURNING {COLUMNS}
"""


async def insert(
    tx: Tx, endpoint_id: EndpointId, user_id: str, spec: EndpointSpec, *, ciphertext: str, hint: str
) -> Endpoint:
    row = await _url_is_free(
        tx,
        INSERT,
        endpoint_id,
        user_id,
        spec.name,
        spec.url,
        ciphertext,
        hint,
        list(spec.subscribed_events),
        _list(spec.task_types),
        spec.timeout_ms,
        spec.max_retries,
        _list(spec.allow_ips),
        spec.ordered,
        spec.every_user,
    )
    return endpoint_of(row)


UPDATE = f"""
UPDATE headrace.webhook_endpoints
SET name = $2, url = $3, subscribed_events = $4, task_types = $5, timeout_ms = $6, max_retries = $7, allow_ips = $8,
    ordered = $9, every_user = $10, version = version + 1
WHERE id = $1 AND deleted_at IS NULL
RETURNING {COLUMNS}
"""


async def update(tx: Tx, endpoint_id: str, spec: EndpointSpec) -> Endpoint:
    """Write a changed spec; the caller has locked the row."""
    row = await _url_is_free(
        tx,
        UPDATE,
        endpoint_id,
        spec.name,
        spec.url,
        list(spec.subscribed_events),
        _list(spec.task_types),
        spec.timeout_ms,
        spec.max_retries,
        _list(spec.allow_ips),
        spec.ordered,
        spec.every_user,
    )
    return endpoint_of(row)


async def _url_is_free(tx: Tx, sql: str, *args: object) -> Row:
    try:
        row = await tx.fetchrow(sql, *args)
    except asyncpg.UniqueViolationError as exc:
        if exc.constraint_name != "uk_webhook_endpoints_user_url_active":
            raise
        raise EndpointUrlTaken(field="url") from exc
    assert row is not None  # new, or locked by the caller
    return row


FIND = f"SELECT {COLUMNS} FROM headrace.webhook_endpoints WHERE id = $1 AND deleted_at IS NULL"
LOCK = f"{FIND} FOR NO KEY UPDATE"


async def find(tx: Tx, endpoint_id: str, *, lock: bool = False) -> Endpoint | None:
    row = await tx.fetchrow(LOCK if lock else FIND, endpoint_id)
    return None if row is None else endpoint_of(row)


FIND_OWNER = "SELECT user_id FROM headrace.webhook_endpoints WHERE id = $1"


async def find_owner(tx: Tx, endpoint_id: str) -> str | None:
    """The owner, also of a deleted endpoint."""
    owner: str | None = await tx.fetchval(FIND_OWNER, endpoint_id)
    return owner


SET_STATUS = f"""
UPDATE headrace.webhook_endpoints
SET status = $2::varchar, status_reason = $3,
    failing_since = CASE WHEN $2::varchar = 'ACTIVE' THEN NULL ELSE failing_since END, version = version + 1
WHERE id = $1 AND status = ANY($4) AND deleted_at IS NULL
RETURNING {COLUMNS}
"""


async def set_status(
    tx: Tx,
    endpoint_id: str,
    status: EndpointStatus,
    *,
    reason: StatusReason | None,
    of: tuple[EndpointStatus, ...],
) -> Endpoint | None:
    """Set the status if the present one is in ``of``; None otherwise."""
    row = await tx.fetchrow(SET_STATUS, endpoint_id, status, reason, list(of))
    return None if row is None else endpoint_of(row)


ROTATE = f"""
UPDATE headrace.webhook_endpoints
SET secret_previous_ciphertext = secret_ciphertext, secret_ciphertext = $2, secret_hint = $3,
    secret_rotated_at = coalesce($4, now()), version = version + 1
WHERE id = $1 AND deleted_at IS NULL
RETURNING {COLUMNS}
"""


async def rotate(tx: Tx, endpoint_id: str, *, ciphertext: str, hint: str, now: datetime | None = None) -> Endpoint:
    """Write a new secret; the current one becomes the previous."""
    row = await tx.fetchrow(ROTATE, endpoint_id, ciphertext, hint, now)
    assert row is not None  # locked by the caller
    return endpoint_of(row)


# A deleted endpoint needs no secret.
DELETE = f"""
UPDATE headrace.webhook_endpoints
SET deleted_at = now(), status = 'DISABLED', status_reason = 'by_hand', secret_ciphertext = '',
    secret_previous_ciphertext = NULL, version = version + 1
WHERE id = $1 AND deleted_at IS NULL
RETURNING {COLUMNS}
"""


async def delete(tx: Tx, endpoint_id: str) -> Endpoint:
    row = await tx.fetchrow(DELETE, endpoint_id)
    assert row is not None  # locked by the caller
    return endpoint_of(row)


@dataclass(frozen=True, slots=True)
class EndpointFilter:
    """Filters of a list of endpoints; None does not filter. ``user_id`` None means all users."""

    user_id: str | None
    status: EndpointStatus | None = None


async def list_endpoints(
    tx: Tx, wanted: EndpointFilter, *, older_than: Mark | None = None, limit: int
) -> list[Endpoint]:
    """Endpoints, newest first."""
    where = (
        Where()
        .eq("user_id", wanted.user_id)
        .eq("status", wanted.status)
        .is_null("deleted_at")
        .older_than(("created_at", "id"), older_than)
    )
    rows = await tx.fetch(
        f"SELECT {COLUMNS} FROM headrace.webhook_endpoints {where.sql} "
        f"ORDER BY created_at DESC, id DESC LIMIT ${where.next}",
        *where.args,
        limit,
    )
    return [endpoint_of(row) for row in rows]


# -- keys and old secrets

SEALED = """
SELECT id, secret_ciphertext, secret_previous_ciphertext FROM headrace.webhook_endpoints
WHERE deleted_at IS NULL AND id > $1
ORDER BY id LIMIT $2
FOR NO KEY UPDATE
"""


async def sealed_after(tx: Tx, endpoint_id: str, *, limit: int) -> list[tuple[str, str, str | None]]:
    """The encrypted secrets of the next endpoints, locked."""
    rows = await tx.fetch(SEALED, endpoint_id, limit)
    return [(row["id"], row["secret_ciphertext"], row["secret_previous_ciphertext"]) for row in rows]


RESEAL = """
UPDATE headrace.webhook_endpoints SET secret_ciphertext = $2, secret_previous_ciphertext = $3
WHERE id = $1 AND deleted_at IS NULL
"""


async def reseal(tx: Tx, endpoint_id: str, ciphertext: str, previous: str | None) -> None:
    await tx.execute(RESEAL, endpoint_id, ciphertext, previous)


FORGET_OLD_SECRETS = """
UPDATE headrace.webhook_endpoints SET secret_previous_ciphertext = NULL
WHERE id IN (
  SELECT id FROM headrace.webhook_endpoints
  WHERE secret_previous_ciphertext IS NOT NULL AND secret_rotated_at < coalesce($3, now()) - $2::interval
  ORDER BY id LIMIT $1 FOR NO KEY UPDATE SKIP LOCKED
)
"""


async def forget_old_secrets(tx: Tx, limit: int, *, overlap: timedelta, now: datetime | None = None) -> int:
    """Remove previous secrets that no longer sign; returns the number of endpoints."""
    return await tx.count(FORGET_OLD_SECRETS, limit, overlap, now)
