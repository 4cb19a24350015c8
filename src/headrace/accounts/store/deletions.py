"""SQL for deletions of accounts."""

from datetime import datetime, timedelta

from headrace import ids
from headrace.accounts.model import Deletion, DeletionStatus, User, UserStatus
from headrace.database import Row, Tx
from headrace.sql import Mark, Where

COLUMNS = """id, user_id, requested_by, status, status_before, due_at, steps_done, attempt, obstacle, started_at,
  ended_at, created_at"""


def deletion_of(row: Row) -> Deletion:
    fields = {name: row[name] for name in Deletion.__dataclass_fields__}
    return Deletion(
        **fields
        | {
            "status": DeletionStatus(row["status"]),
            "status_before": UserStatus(row["status_before"]),
            "steps_done": tuple(row["steps_done"]),
        }
    )


# -- requested and undone; the caller holds the user's row lock

INSERT_DELETION = f"""
INSERT INTO headrace.account_deletions (id, user_id, requested_by, status_before, due_at, next_try_at)
SELECT $1, $2, $3, $4, due_at, due_at FROM (SELECT coalesce($6::timestamptz, now()) + $5::interval) AS given (due_at)
RETURNING {COLUMNS}
"""


async def insert_deletion(
    tx: Tx, user: User, *, requested_by: str, grace: timedelta, now: datetime | None = None
) -> Deletion:
    row = await tx.fetchrow(INSERT_DELETION, ids.new("del"), user.id, requested_by, user.status, grace, now)
    assert row is not None
    return deletion_of(row)


FIND_OPEN = f"""
SELECT {COLUMNS} FROM headrace.account_deletions WHERE user_id = $1 AND status IN ('WAITING', 'RUNNING')
"""


async def find_open(tx: Tx, user_id: str) -> Deletion | None:
    """The open deletion of this account."""
    row = await tx.fetchrow(FIND_OPEN, user_id)
    return None if row is None else deletion_of(row)


END_GRACE_PERIOD = f"""
UPDATE headrace.account_deletions SET due_at = coalesce($2, now()), next_try_at = coalesce($2, now())
WHERE id = $1 AND status = 'WAITING' AND due_at > coalesce($2, now())
RETURNING {COLUMNS}
"""


async def end_grace_period(tx: Tx, deletion: Deletion, *, now: datetime | None = None) -> Deletion | None:
    """End the grace period now; None if it has ended."""
    row = await tx.fetchrow(END_GRACE_PERIOD, deletion.id, now)
    return None if row is None else deletion_of(row)


CANCEL = f"""
UPDATE headrace.account_deletions SET status = 'CANCELED', ended_at = coalesce($2, now())
WHERE user_id = $1 AND status = 'WAITING'
RETURNING {COLUMNS}
"""


async def cancel(tx: Tx, user_id: str, *, now: datetime | None = None) -> Deletion | None:
    """Cancel a deletion that has not begun; None if there is none."""
    row = await tx.fetchrow(CANCEL, user_id, now)
    return None if row is None else deletion_of(row)


# -- carried out; everything after the claim has its attempt in the WHERE

CLAIM = f"""
UPDATE headrace.account_deletions
SET status = 'RUNNING', started_at = coalesce(started_at, $2, now()), attempt = attempt + 1,
    next_try_at = coalesce($2, now()) + $1::interval
WHERE id = (
  SELECT id FROM headrace.account_deletions
  WHERE status IN ('WAITING', 'RUNNING') AND next_try_at <= coalesce($2, now())
  ORDER BY next_try_at LIMIT 1 FOR UPDATE SKIP LOCKED
)
RETURNING {COLUMNS}
"""


async def claim(tx: Tx, *, lease: timedelta, now: datetime | None = None) -> Deletion | None:
    """Claim the longest due deletion without a live lease."""
    row = await tx.fetchrow(CLAIM, lease, now)
    return None if row is None else deletion_of(row)


_OURS = "id = $1 AND attempt = $2 AND status = 'RUNNING'"

RENEW = f"UPDATE headrace.account_deletions SET next_try_at = now() + $3::interval WHERE {_OURS}"


async def renew(tx: Tx, deletion: Deletion, *, lease: timedelta) -> bool:
    return await tx.count(RENEW, deletion.id, deletion.attempt, lease) == 1


STEP_DONE = f"""
UPDATE headrace.account_deletions
SET steps_done = array_append(steps_done, $3), next_try_at = now() + $4::interval, obstacle = NULL
WHERE {_OURS} AND NOT $3 = ANY (steps_done)
"""


async def step_done(tx: Tx, deletion: Deletion, step: str, *, lease: timedelta) -> bool:
    return await tx.count(STEP_DONE, deletion.id, deletion.attempt, step, lease) == 1


POSTPONE = f"""
UPDATE headrace.account_deletions SET next_try_at = now() + $3::interval, obstacle = left($4, 255) WHERE {_OURS}
"""


async def postpone(tx: Tx, deletion: Deletion, *, delay: timedelta, obstacle: str) -> bool:
    return await tx.count(POSTPONE, deletion.id, deletion.attempt, delay, obstacle) == 1


COMPLETE = f"""
UPDATE headrace.account_deletions SET status = 'COMPLETED', ended_at = now(), obstacle = NULL WHERE {_OURS}
"""


async def complete(tx: Tx, deletion: Deletion) -> bool:
    return await tx.count(COMPLETE, deletion.id, deletion.attempt) == 1


# -- the user's own rows

BLANK = """
UPDATE headrace.users
SET status = 'DELETED', deleted_at = now(), role = 'USER', username = NULL, email = NULL, mobile = NULL,
    wechat_openid = NULL, password_hash = NULL, last_login_at = NULL, second_factor_at = NULL, version = version + 1
WHERE id = $1 AND status = 'SUSPENDED'
"""


async def blank_user(tx: Tx, user_id: str) -> bool:
    """Clear all of the user's columns except the id, which other rows refer to."""
    return await tx.count(BLANK, user_id) == 1


LOCK_USER = "SELECT FROM headrace.users WHERE id = $1 FOR NO KEY UPDATE"


async def lock_user(tx: Tx, user_id: str) -> None:
    await tx.execute(LOCK_USER, user_id)


DELETE_SESSIONS = "DELETE FROM headrace.sessions WHERE user_id = $1"
DELETE_API_KEYS = "DELETE FROM headrace.api_keys WHERE user_id = $1"
DELETE_LINKS = "DELETE FROM headrace.account_links WHERE user_id = $1"
DELETE_SECOND_FACTOR = "DELETE FROM headrace.second_factors WHERE user_id = $1"
# Subjects end with the typed name in lower case; those of known networks have the network before it.
DELETE_THROTTLES = """
DELETE FROM headrace.login_throttles AS throttle USING (SELECT username FROM headrace.users WHERE id = $1) AS person
WHERE throttle.subject IN ('change:' || $1, 'account:' || person.username)
  OR (starts_with(throttle.subject, 'known:') AND right(throttle.subject, length(person.username) + 1)
      = ':' || person.username)
"""
# The stored answer of the registration shows the new user, and has no owner.
DELETE_REGISTRATION = """
DELETE FROM headrace.idempotency_keys
WHERE scope = 'accounts.register' AND user_id IS NULL AND response_json ->> 'id' = $1
"""


async def delete_credentials(tx: Tx, user_id: str) -> int:
    """Delete all credentials of the user; returns the number of rows."""
    statements = (
        DELETE_SESSIONS,
        DELETE_API_KEYS,
        DELETE_LINKS,
        DELETE_SECOND_FACTOR,
        DELETE_THROTTLES,
        DELETE_REGISTRATION,
    )
    return sum([await tx.count(statement, user_id) for statement in statements])


# The unique key (event, user, type) prevents a second notification of the same event.
NOTIFY = """
INSERT INTO headrace.notifications (user_id, type, title, body, payload_json, event_id)
VALUES ($1, 'ACCOUNT_DELETE_COMPLETED', 'Your account was deleted',
        'Your account, your files and your results were removed.', $2, $3)
ON CONFLICT (event_id, user_id, type) WHERE event_id IS NOT NULL DO NOTHING
"""


async def notify_completed(tx: Tx, deletion: Deletion, *, event_id: str) -> None:
    await tx.execute(NOTIFY, deletion.user_id, {"deletion_id": deletion.id}, event_id)


# -- reading

FIND_LAST = f"""
SELECT {COLUMNS} FROM headrace.account_deletions WHERE user_id = $1 ORDER BY created_at DESC, id DESC LIMIT 1
"""


async def find_last(tx: Tx, user_id: str) -> Deletion | None:
    row = await tx.fetchrow(FIND_LAST, user_id)
    return None if row is None else deletion_of(row)


COUNT_OVERDUE = """
SELECT count(*) FROM headrace.account_deletions
WHERE status IN ('WAITING', 'RUNNING') AND due_at < coalesce($2, now()) - $1::interval
"""


async def count_overdue(tx: Tx, *, by: timedelta, now: datetime | None = None) -> int:
    """The number of overdue deletions."""
    overdue: int = await tx.fetchval(COUNT_OVERDUE, by, now)
    return overdue


SELECT_DELETIONS = f"SELECT {COLUMNS} FROM headrace.account_deletions"


async def list_deletions(
    tx: Tx, *, status: DeletionStatus | None, older_than: Mark | None, limit: int
) -> list[Deletion]:
    """Deletions, newest first."""
    where = Where().eq("status", status).older_than(("created_at", "id"), older_than)
    rows = await tx.fetch(
        f"{SELECT_DELETIONS} {where.sql} ORDER BY created_at DESC, id DESC LIMIT ${where.next}", *where.args, limit
    )
    return [deletion_of(row) for row in rows]
