"""SQL for links that are sent by e-mail."""

from datetime import datetime, timedelta

from headrace import ids
from headrace.accounts.model import Link, LinkPurpose, User, UserId
from headrace.accounts.store.users import COLUMNS as USER_COLUMNS
from headrace.accounts.store.users import user_of
from headrace.database import Row, Tx

# With more accounts of one address, the rest get no link: their owner asks by username.
MAX_ACCOUNTS = 5

# Two index lookups; with OR, the planner would have to combine them.
FIND_ACCOUNTS = f"""
SELECT {USER_COLUMNS} FROM headrace.users
WHERE id IN (
  SELECT id FROM headrace.users WHERE lower(username) = lower($1)
  UNION
  SELECT id FROM headrace.users WHERE lower(email) = lower($2) AND email IS NOT NULL
) AND status = 'ACTIVE' AND email IS NOT NULL AND password_hash IS NOT NULL AND id <> $3
ORDER BY id LIMIT {MAX_ACCOUNTS}
"""


async def find_accounts(tx: Tx, username: str, email: str) -> list[User]:
    """Active accounts with this name or e-mail address that can receive a link."""
    return [user_of(row) for row in await tx.fetch(FIND_ACCOUNTS, username, email, ids.SYSTEM_USER)]


COUNT_RECENT = """
SELECT count(*) FROM headrace.account_links
WHERE user_id = $1 AND purpose = $2 AND created_at > coalesce($3, now()) - interval '1 hour'
"""


async def count_recent(tx: Tx, user_id: str, purpose: LinkPurpose, *, now: datetime | None = None) -> int:
    """The number of unused links of the last hour. The caller has locked the user."""
    number: int = await tx.fetchval(COUNT_RECENT, user_id, purpose, now)
    return number


INSERT = """
INSERT INTO headrace.account_links (id, user_id, purpose, token_hash, email, created_at, expires_at)
VALUES ($1, $2, $3, $4, $5, coalesce($7, now()), coalesce($7, now()) + $6::interval)
"""


async def insert_link(
    tx: Tx,
    user_id: str,
    purpose: LinkPurpose,
    *,
    token_hash: bytes,
    email: str,
    lifetime: timedelta,
    now: datetime | None = None,
) -> None:
    await tx.execute(INSERT, ids.new("lnk"), user_id, purpose, token_hash, email, lifetime, now)


FIND = """
SELECT id, user_id, purpose, email FROM headrace.account_links
WHERE token_hash = $1 AND purpose = $2 AND expires_at > coalesce($3, now())
"""


async def find_link(tx: Tx, token_hash: bytes, purpose: LinkPurpose, *, now: datetime | None = None) -> Link | None:
    return _link_of(await tx.fetchrow(FIND, token_hash, purpose, now))


# The expiry is compared again: the password was hashed in the meantime.
USE = """
DELETE FROM headrace.account_links WHERE id = $1 AND expires_at > coalesce($2, now())
RETURNING id, user_id, purpose, email
"""


async def use_link(tx: Tx, link_id: str, *, now: datetime | None = None) -> Link | None:
    """Delete the link; None if it was used or has expired. The caller has locked the user."""
    return _link_of(await tx.fetchrow(USE, link_id, now))


DELETE_OF_USER = "DELETE FROM headrace.account_links WHERE user_id = $1"


async def delete_links(tx: Tx, user_id: str) -> int:
    return await tx.count(DELETE_OF_USER, user_id)


# An hour is what count_recent looks at.
FORGET = """
DELETE FROM headrace.account_links WHERE id IN (
  SELECT id FROM headrace.account_links
  WHERE created_at < coalesce($2, now()) - interval '1 hour' AND expires_at < coalesce($2, now())
  ORDER BY created_at LIMIT $1 FOR UPDATE SKIP LOCKED
)
"""


async def forget(tx: Tx, *, limit: int, now: datetime | None = None) -> int:
    """Delete at most ``limit`` expired links; returns their number. For maintenance."""
    return await tx.count(FORGET, limit, now)


def _link_of(row: Row | None) -> Link | None:
    if row is None:
        return None
    return Link(row["id"], UserId(row["user_id"]), LinkPurpose(row["purpose"]), row["email"])
