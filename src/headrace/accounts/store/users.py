"""SQL for users. The system's own user cannot be read or changed here."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import IPv4Network, IPv6Network

from asyncpg import UniqueViolationError

from headrace import ids
from headrace.access import PreconditionFailed, Role
from headrace.accounts.errors import UsernameTaken
from headrace.accounts.model import NewUser, User, UserStatus
from headrace.database import Row, Tx
from headrace.sql import Mark, Where

COLUMNS = """id, username, email, mobile, status, role, version, created_at, updated_at, deleted_at, last_login_at,
  second_factor_at, password_hash, wechat_openid"""


def user_of(row: Row) -> User:
    fields = {name: row[name] for name in User.__dataclass_fields__}
    return User(**fields | {"status": UserStatus(row["status"]), "role": Role(row["role"])})


INSERT_USER = f"""
INSERT INTO headrace.users (id, username, email, password_hash, role) VALUES ($1, $2, $3, $4, $5)
RETURNING {COLUMNS}
"""


async def insert_user(tx: Tx, new: NewUser) -> User:
    """Insert a user; ``UsernameTaken`` if the name is in use, in any case."""
    try:
        row = await tx.fetchrow(INSERT_USER, ids.new("u"), new.username, new.email, new.password_hash, new.role)
    except UniqueViolationError as exc:
        if exc.constraint_name != "idx_users_username":
            raise
        raise UsernameTaken(field="username") from exc
    assert row is not None
    return user_of(row)


# DO NOTHING returns no row when another login of the same user was first; it waits for that transaction's commit.
INSERT_WECHAT_USER = f"""
INSERT INTO headrace.users (id, wechat_openid) VALUES ($1, $2)
ON CONFLICT ON CONSTRAINT uk_users_wechat_openid DO NOTHING
RETURNING {COLUMNS}
"""


async def insert_wechat_user(tx: Tx, openid: str) -> User | None:
    row = await tx.fetchrow(INSERT_WECHAT_USER, ids.new("u"), openid)
    return None if row is None else user_of(row)


FIND_BY_OPENID = f"SELECT {COLUMNS} FROM headrace.users WHERE wechat_openid = $1"


async def find_by_openid(tx: Tx, openid: str) -> User | None:
    row = await tx.fetchrow(FIND_BY_OPENID, openid)
    return None if row is None else user_of(row)


FIND_USER = f"SELECT {COLUMNS} FROM headrace.users WHERE id = $1 AND id <> $2"


async def find_user(tx: Tx, user_id: str) -> User | None:
    row = await tx.fetchrow(FIND_USER, user_id, ids.SYSTEM_USER)
    return None if row is None else user_of(row)


LOCK_USER = f"""
SELECT {COLUMNS} FROM headrace.users WHERE id = $1 AND id <> $2 AND status <> 'DELETED' FOR NO KEY UPDATE
"""


async def lock_user(tx: Tx, user_id: str) -> User | None:
    """The user, locked until this transaction ends."""
    row = await tx.fetchrow(LOCK_USER, user_id, ids.SYSTEM_USER)
    return None if row is None else user_of(row)


@dataclass(frozen=True, slots=True)
class Candidate:
    """The user of a name, and whether they logged in from this network recently."""

    user: User
    known_here: bool


FIND_CANDIDATE = f"""
SELECT {COLUMNS}, EXISTS (
  SELECT FROM headrace.sessions AS s
  WHERE s.user_id = users.id AND s.created_at > coalesce($4, now()) - $3::interval AND s.client_ip <<= $2::cidr
) AS known_here
FROM headrace.users WHERE lower(username) = lower($1) AND id <> $5
"""


async def find_candidate(
    tx: Tx,
    username: str,
    network: IPv4Network | IPv6Network | None,
    *,
    known_for: timedelta,
    now: datetime | None = None,
) -> Candidate | None:
    row = await tx.fetchrow(FIND_CANDIDATE, username, network, known_for, now, ids.SYSTEM_USER)
    return None if row is None else Candidate(user_of(row), row["known_here"])


# The checked hash is in the WHERE: a password or a second factor changed meanwhile refuses the login.
RECORD_LOGIN = f"""
UPDATE headrace.users SET last_login_at = coalesce($4, now()), password_hash = coalesce($3, password_hash)
WHERE id = $1 AND status = 'ACTIVE' AND password_hash IS NOT DISTINCT FROM $2
  AND second_factor_at IS NOT DISTINCT FROM $5
RETURNING {COLUMNS}
"""


async def record_login(tx: Tx, user: User, *, rehashed: str | None = None, now: datetime | None = None) -> User | None:
    """Record the login; None if the user was suspended or changed its credentials since the check."""
    row = await tx.fetchrow(RECORD_LOGIN, user.id, user.password_hash, rehashed, now, user.second_factor_at)
    return None if row is None else user_of(row)


SET_PASSWORD = f"""
UPDATE headrace.users SET password_hash = $3, version = version + 1
WHERE id = $1 AND version = $2 AND username IS NOT NULL
RETURNING {COLUMNS}
"""


async def set_password(tx: Tx, user: User, password_hash: str) -> User:
    return _changed(await tx.fetchrow(SET_PASSWORD, user.id, user.version, password_hash))


SET_MOBILE = f"""
UPDATE headrace.users SET mobile = $3, version = version + 1 WHERE id = $1 AND version = $2 RETURNING {COLUMNS}
"""


async def set_mobile(tx: Tx, user: User, mobile: str | None) -> User:
    return _changed(await tx.fetchrow(SET_MOBILE, user.id, user.version, mobile))


SET_EMAIL = f"""
UPDATE headrace.users SET email = $3, version = version + 1 WHERE id = $1 AND version = $2 RETURNING {COLUMNS}
"""


async def set_email(tx: Tx, user: User, email: str | None) -> User:
    return _changed(await tx.fetchrow(SET_EMAIL, user.id, user.version, email))


SET_SECOND_FACTOR = f"""
UPDATE headrace.users SET second_factor_at = CASE WHEN $3 THEN now() END, version = version + 1
WHERE id = $1 AND version = $2
RETURNING {COLUMNS}
"""


async def set_second_factor(tx: Tx, user: User, *, on: bool) -> User:
    return _changed(await tx.fetchrow(SET_SECOND_FACTOR, user.id, user.version, on))


SET_STATUS = f"""
UPDATE headrace.users SET status = $3, version = version + 1 WHERE id = $1 AND version = $2 RETURNING {COLUMNS}
"""


async def set_status(tx: Tx, user: User, status: UserStatus) -> User:
    return _changed(await tx.fetchrow(SET_STATUS, user.id, user.version, status))


SET_ROLE = f"""
UPDATE headrace.users SET role = $3, version = version + 1 WHERE id = $1 AND version = $2 RETURNING {COLUMNS}
"""


async def set_role(tx: Tx, user: User, role: Role) -> User:
    return _changed(await tx.fetchrow(SET_ROLE, user.id, user.version, role))


def _changed(row: Row | None) -> User:
    if row is None:
        raise PreconditionFailed
    return user_of(row)


# The system's row always exists, so it can represent the set of administrators, even an empty one. NO KEY: inserts that
# refer to the system's user are not blocked.
LOCK_ADMINS = "SELECT FROM headrace.users WHERE id = $1 FOR NO KEY UPDATE"


async def lock_admins(tx: Tx) -> None:
    """Serialize changes of administrators until this transaction ends. Take this lock first."""
    await tx.execute(LOCK_ADMINS, ids.SYSTEM_USER)


ADMIN_EXISTS = """
SELECT EXISTS (
  SELECT FROM headrace.users WHERE role = 'ADMIN' AND status = 'ACTIVE' AND id <> $1 AND id IS DISTINCT FROM $2
)
"""


async def admin_exists(tx: Tx, *, besides: str | None = None) -> bool:
    """Whether there is an active administrator (besides this one)."""
    exists: bool = await tx.fetchval(ADMIN_EXISTS, ids.SYSTEM_USER, besides)
    return exists


# The planner flattens the inner SELECT; it leaves the WHERE to the filters.
SELECT_USERS = f"SELECT {COLUMNS} FROM (SELECT * FROM headrace.users WHERE id <> '{ids.SYSTEM_USER}') AS people"


async def list_users(
    tx: Tx, *, status: UserStatus | None, role: Role | None, older_than: Mark | None, limit: int
) -> list[User]:
    """Users, newest first."""
    where = Where().eq("status", status).eq("role", role).older_than(("created_at", "id"), older_than)
    rows = await tx.fetch(
        f"{SELECT_USERS} {where.sql} ORDER BY created_at DESC, id DESC LIMIT ${where.next}", *where.args, limit
    )
    return [user_of(row) for row in rows]


FIND_BY_NAME = f"SELECT {COLUMNS} FROM headrace.users WHERE lower(username) = lower($1) AND id <> $2"


async def find_by_name(tx: Tx, username: str) -> User | None:
    row = await tx.fetchrow(FIND_BY_NAME, username, ids.SYSTEM_USER)
    return None if row is None else user_of(row)


LIST_NAMES = "SELECT id, username FROM headrace.users WHERE id = ANY($1)"


async def list_names(tx: Tx, user_ids: Sequence[str]) -> dict[str, str | None]:
    return {row["id"]: row["username"] for row in await tx.fetch(LIST_NAMES, list(user_ids))}
