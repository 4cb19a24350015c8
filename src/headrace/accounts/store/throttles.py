"""SQL for failed logins. Pauses use the database's clock, for all processes."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from headrace.accounts.config import ThrottleConfig
from headrace.database import Tx


@dataclass(frozen=True, slots=True)
class Counted:
    """An attempt of a subject, counted as a failure until it succeeds."""

    subject: str
    failures: int
    pause: timedelta | None  # that a failure of this attempt begins
    at: datetime
    last_failed_at: datetime | None  # of the subject, before this attempt


# The row lock serializes attempts on one subject; the first one beyond the free failures begins a pause, and later ones
# find the subject paused and return no row. So only few of many parallel guesses are checked.
COUNT_ATTEMPT = """
INSERT INTO headrace.login_throttles AS t (subject, failures, first_failed_at, last_failed_at, blocked_until)
SELECT $1, 1, at, at, CASE WHEN $2 <= 1 THEN at + $3::interval END
FROM coalesce($6::timestamptz, now()) AS at
ON CONFLICT (subject) DO UPDATE SET (failures, first_failed_at, last_failed_at, blocked_until) = (
  SELECT
    n,
    CASE WHEN n = 1 THEN excluded.first_failed_at ELSE least(t.first_failed_at, excluded.first_failed_at) END,
    greatest(t.last_failed_at, excluded.last_failed_at),
    -- doubles with each failure; the cap is reached long before 2^30
    CASE WHEN n >= $2 THEN excluded.last_failed_at + least($4, $3 * power(2, least(n - $2, 30))) END
  FROM (SELECT CASE WHEN t.last_failed_at < excluded.last_failed_at - $5::interval THEN 1 ELSE t.failures + 1 END)
    AS counted (n)
)
WHERE coalesce(t.blocked_until <= excluded.last_failed_at, true)
RETURNING failures, blocked_until - coalesce($6::timestamptz, now()) AS pause, coalesce($6, now()) AS at,
  -- by the statement's snapshot: the former row
  (SELECT old.last_failed_at FROM headrace.login_throttles AS old WHERE old.subject = $1) AS last_failed_at
"""


async def count_attempt(
    tx: Tx, subject: str, config: ThrottleConfig, *, free: int, now: datetime | None = None
) -> Counted | None:
    """Count one attempt; None while the subject is paused."""
    row = await tx.fetchrow(
        COUNT_ATTEMPT, subject, free, config.block_first, config.block_max, config.forget_after, now
    )
    return None if row is None else Counted(subject, **row)


FIND_PAUSE = """
SELECT max(blocked_until) - coalesce($2, now()) FROM headrace.login_throttles
WHERE subject = ANY($1) AND blocked_until > coalesce($2, now())
"""


async def find_pause(tx: Tx, subjects: list[str], *, now: datetime | None = None) -> timedelta | None:
    """The time until none of these is paused; None if none is."""
    pause: timedelta | None = await tx.fetchval(FIND_PAUSE, subjects, now)
    return pause


CLEAR = "DELETE FROM headrace.login_throttles WHERE subject = $1"


async def clear(tx: Tx, subject: str) -> None:
    await tx.execute(CLEAR, subject)


# A pause begun by another attempt meanwhile stays: then the row has another count. The time of the last failure is
# restored as well, unless another attempt has moved it: otherwise an address with hourly logins would never forget its
# failures.
TAKE_BACK = """
UPDATE headrace.login_throttles
SET failures = failures - 1, blocked_until = CASE WHEN failures <> $2 THEN blocked_until END,
    last_failed_at = CASE WHEN last_failed_at = $3 THEN greatest($4, first_failed_at) ELSE last_failed_at END
WHERE subject = $1 AND failures > 0
"""


async def take_back(tx: Tx, counted: Counted) -> None:
    """Uncount one attempt that did not fail."""
    await tx.execute(TAKE_BACK, counted.subject, counted.failures, counted.at, counted.last_failed_at)


FORGET = """
DELETE FROM headrace.login_throttles WHERE subject IN (
  SELECT subject FROM headrace.login_throttles
  WHERE last_failed_at < coalesce($3, now()) - $1::interval AND coalesce(blocked_until < coalesce($3, now()), true)
  LIMIT $2 FOR UPDATE SKIP LOCKED
)
"""


async def forget(tx: Tx, *, older_than: timedelta, limit: int, now: datetime | None = None) -> int:
    """Delete at most ``limit`` rows without effect; returns their number. Safe to run at any time."""
    return await tx.count(FORGET, older_than, limit, now)
