"""What every request and every login looks up is found by an index, however many users there are."""

from datetime import UTC, datetime, timedelta
from ipaddress import ip_network

import pytest

from headrace import ids
from headrace.accounts import tokens
from headrace.accounts.store import api_keys, sessions, throttles, users
from headrace.database import Tx

NOW = datetime.now(UTC)
MINUTE, WEEK = timedelta(minutes=1), timedelta(days=7)

GENERATED = """
INSERT INTO headrace.users (id, username, password_hash, wechat_openid, created_at)
  SELECT 'u_' || n, 'user' || n, '!', 'o' || n, now() - n * interval '1 s' FROM generate_series(1, 20000) AS n;
INSERT INTO headrace.sessions (id, user_id, token_hash, client_ip, expires_at)
  SELECT 'ses_' || n, 'u_' || n, sha256(n::text::bytea), '192.0.2.7', now() + interval '30 days'
  FROM generate_series(1, 20000) AS n;
INSERT INTO headrace.api_keys (id, user_id, name, key_hash, key_hint)
  SELECT 'key_' || n, 'u_' || n, 'k', sha256(n::text::bytea), 'hint' FROM generate_series(1, 20000) AS n;
INSERT INTO headrace.rate_limits (bucket, tat) SELECT 'user:u_' || n, now() FROM generate_series(1, 20000) AS n;
INSERT INTO headrace.login_throttles (subject) SELECT 'account:' || n FROM generate_series(1, 20000) AS n;
ANALYZE headrace.users, headrace.sessions, headrace.api_keys, headrace.rate_limits, headrace.login_throttles;
SET LOCAL plan_cache_mode = force_generic_plan;
"""

QUERIES: dict[str, tuple[str, tuple[object, ...]]] = {
    "a session's token": (sessions.FIND_HOLDER, (tokens.digest("x"), WEEK, MINUTE, None)),
    "an API key": (api_keys.FIND_HOLDER, (tokens.digest("x"), MINUTE, None)),
    "a token that counts": (sessions.FIND_HOLDER_AND_COUNT, (tokens.digest("x"), WEEK, MINUTE, None, MINUTE, WEEK)),
    "an API key that counts": (api_keys.FIND_HOLDER_AND_COUNT, (tokens.digest("x"), MINUTE, None, MINUTE, WEEK)),
    "a login": (users.FIND_CANDIDATE, ("ada", ip_network("192.0.2.7/32"), WEEK, None, ids.SYSTEM_USER)),
    "a WeChat login": (users.FIND_BY_OPENID, ("o1",)),
    "a pause": (throttles.FIND_PAUSE, (["account:1", "address:1"], None)),
    "ending all sessions": (sessions.REVOKE_ALL, ("u_1", None, None)),
    "a user's sessions": (
        f"{sessions.SELECT_SESSIONS} WHERE user_id = $1 AND revoked_at IS NULL "
        "ORDER BY created_at DESC, id DESC LIMIT 21",
        ("u_1",),
    ),
    "all users": (f"{users.SELECT_USERS} ORDER BY created_at DESC, id DESC LIMIT $1", (21,)),
    "all users, later": (
        f"{users.SELECT_USERS} WHERE (created_at, id) < ($1, $2) ORDER BY created_at DESC, id DESC LIMIT $3",
        (NOW, "u_1", 21),
    ),
    "suspended users": (
        f"{users.SELECT_USERS} WHERE status = $1 ORDER BY created_at DESC, id DESC LIMIT $2",
        ("SUSPENDED", 21),
    ),
}


@pytest.fixture
async def many(owner_tx: Tx) -> Tx:
    await owner_tx.execute(GENERATED)
    return owner_tx


async def test_look_ups_use_their_index(many: Tx) -> None:
    for name, (sql, args) in QUERIES.items():
        plan = "\n".join(row[0] for row in await many.fetch(f"EXPLAIN {sql}", *args))
        assert "Index" in plan, name
        assert "Seq Scan" not in plan, f"{name}:\n{plan}"
