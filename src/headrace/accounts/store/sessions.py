"""SQL for sessions. Tokens are stored as SHA-256: 256 random bits need no slow hash."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from headrace.access import Count, RateLimit, Role
from headrace.accounts.model import Session, SessionId, UserId
from headrace.database import Row, Tx
from headrace.edge.limits import USER_BUCKET, counting
from headrace.sql import Mark, Where

COLUMNS = "id, user_id, client_ip, user_agent, created_at, last_seen_at, expires_at, revoked_at"


def session_of(row: Row) -> Session:
    return Session(**{name: row[name] for name in Session.__dataclass_fields__})


INSERT_SESSION = f"""
INSERT INTO headrace.sessions (id, user_id, token_hash, client_ip, user_agent, created_at, last_seen_at, expires_at)
SELECT $1, $2, $3, $4, $5, at, at, at + $6::interval FROM coalesce($7::timestamptz, now()) AS at
RETURNING {COLUMNS}
"""


async def insert_session(
    tx: Tx,
    session_id: SessionId,
    user_id: UserId,
    *,
    token_hash: bytes,
    client_ip: str | None,
    user_agent: str | None,
    lifetime: timedelta,
    now: datetime | None = None,
) -> Session:
    row = await tx.fetchrow(INSERT_SESSION, session_id, user_id, token_hash, client_ip, user_agent, lifetime, now)
    assert row is not None
    return session_of(row)


@dataclass(frozen=True, slots=True)
class Holder:
    """The user of a token or a key, and whether its time of last use is due for an update."""

    id: str
    user_id: UserId
    username: str | None
    role: Role
    scopes: frozenset[str] | None
    note_use: bool
    count: Count | None = None

    @classmethod
    def of(cls, row: Row, *, counted: bool) -> "Holder":
        scopes = row["scopes"]
        return cls(
            row["id"],
            row["user_id"],
            row["username"],
            Role(row["role"]),
            None if scopes is None else frozenset(scopes),
            row["note_use"],
            Count(row["taken"], row["before"]) if counted else None,
        )


# One lookup by a unique index; the WHERE has all conditions that end a session.
FIND_HOLDER = """
SELECT s.id, s.user_id, u.username, u.role, NULL::text AS scopes,
       s.last_seen_at <= coalesce($4, now()) - $3::interval AS note_use
FROM headrace.sessions AS s JOIN headrace.users AS u ON u.id = s.user_id
WHERE s.token_hash = $1 AND s.revoked_at IS NULL AND s.expires_at > coalesce($4, now())
  AND s.last_seen_at > coalesce($4, now()) - $2::interval AND u.status = 'ACTIVE'
"""


FIND_HOLDER_AND_COUNT = counting(FIND_HOLDER, first=5, bucket=USER_BUCKET)


async def find_holder(
    tx: Tx,
    token_hash: bytes,
    *,
    idle_lifetime: timedelta,
    seen_every: timedelta,
    now: datetime | None = None,
    limit: RateLimit | None = None,
) -> Holder | None:
    """The user of a session; with ``limit`` the same statement counts the request."""
    args = token_hash, idle_lifetime, seen_every, now
    if limit is None:
        row = await tx.fetchrow(FIND_HOLDER, *args)
    else:
        row = await tx.fetchrow(FIND_HOLDER_AND_COUNT, *args, limit.interval, limit.window)
    return None if row is None else Holder.of(row, counted=limit is not None)


# Of concurrent requests one writes; the others neither wait nor write.
NOTE_SEEN = """
UPDATE headrace.sessions SET last_seen_at = coalesce($3, now()) WHERE id = (
  SELECT id FROM headrace.sessions
  WHERE id = $1 AND last_seen_at <= coalesce($3, now()) - $2::interval FOR NO KEY UPDATE SKIP LOCKED
)
"""


async def note_seen(tx: Tx, session_id: str, *, every: timedelta, now: datetime | None = None) -> bool:
    return await tx.count(NOTE_SEEN, session_id, every, now) == 1


REVOKE_SESSION = f"""
UPDATE headrace.sessions SET revoked_at = greatest(created_at, coalesce($3, now()))
WHERE id = $1 AND user_id = $2 AND revoked_at IS NULL
RETURNING {COLUMNS}
"""


async def revoke_session(tx: Tx, session_id: str, user_id: str, *, now: datetime | None = None) -> Session | None:
    """End a session of this user; None if there is no such active session."""
    row = await tx.fetchrow(REVOKE_SESSION, session_id, user_id, now)
    return None if row is None else session_of(row)


# Locked in a fixed order, so that concurrent calls do not deadlock.
REVOKE_ALL = """
UPDATE headrace.sessions SET revoked_at = greatest(created_at, coalesce($3, now())) WHERE id IN (
  SELECT id FROM headrace.sessions WHERE user_id = $1 AND revoked_at IS NULL AND id IS DISTINCT FROM $2
  ORDER BY id FOR NO KEY UPDATE
)
"""


async def revoke_all(tx: Tx, user_id: str, *, besides: str | None = None, now: datetime | None = None) -> int:
    """End all sessions of this user except one; returns their number."""
    return await tx.count(REVOKE_ALL, user_id, besides, now)


# Kept for a while after their end, because throttling knows the networks of recent logins.
FORGET = """
DELETE FROM headrace.sessions WHERE id IN (
  SELECT id FROM headrace.sessions
  WHERE expires_at < coalesce($2, now()) - interval '60 days'
  LIMIT $1 FOR UPDATE SKIP LOCKED
)
"""


async def forget(tx: Tx, *, limit: int, now: datetime | None = None) -> int:
    """Delete at most ``limit`` sessions that ended long ago; returns their number."""
    return await tx.count(FORGET, limit, now)


# The condition of an active session, as in FIND_HOLDER. $1 replaces now() in tests, $2 is the idle lifetime.
_GOOD = """revoked_at IS NULL AND expires_at > coalesce($1::timestamptz, now())
  AND last_seen_at > coalesce($1::timestamptz, now()) - $2::interval"""

FIND_SESSION = f"SELECT {COLUMNS} FROM headrace.sessions WHERE id = $3 AND user_id = $4 AND {_GOOD}"


async def find_session(
    tx: Tx, session_id: str, user_id: str, *, idle_lifetime: timedelta, now: datetime | None = None
) -> Session | None:
    row = await tx.fetchrow(FIND_SESSION, now, idle_lifetime, session_id, user_id)
    return None if row is None else session_of(row)


SELECT_SESSIONS = f"SELECT {COLUMNS} FROM headrace.sessions"


async def list_sessions(
    tx: Tx,
    user_id: str,
    *,
    idle_lifetime: timedelta,
    older_than: Mark | None,
    limit: int,
    now: datetime | None = None,
) -> list[Session]:
    """The active sessions of this user, newest first."""
    where = Where(first=3).eq("user_id", user_id).older_than(("created_at", "id"), older_than)
    newest_first = f"ORDER BY created_at DESC, id DESC LIMIT ${where.next}"
    rows = await tx.fetch(
        f"{SELECT_SESSIONS} {where.sql} AND {_GOOD} {newest_first}", now, idle_lifetime, *where.args, limit
    )
    return [session_of(row) for row in rows]
