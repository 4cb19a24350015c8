"""Rate limits that all API processes share: GCRA, one row for each caller, by the database's clock.

The row holds one instant, ``tat`` (the theoretical arrival time), at which the caller has the whole allowance again.
Each request advances it by one interval; a request that would advance it beyond the burst is refused and changes
nothing. So no window has to start or reset, and a refusal has the exact time to wait.
"""

import math
import time
from collections import OrderedDict
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from ipaddress import ip_address, ip_network

from headrace import logs
from headrace.access import Count, RateLimit
from headrace.database import Database, Tx
from headrace.edge.errors import RateLimited
from headrace.errors import Unavailable

log = logs.get(__name__)

_MAX_CACHED_REFUSALS = 10_000


@dataclass(frozen=True)
class LimitConfig:
    """``burst`` requests at once, ``per_minute`` on average."""

    per_minute: int = 600
    burst: int = 120

    def __post_init__(self) -> None:
        if self.per_minute < 1 or self.burst < 1:
            raise ValueError("a rate limit lets at least one request through")

    @property
    def interval(self) -> timedelta:
        return self.rate.interval

    @property
    def window(self) -> timedelta:
        """The time in which a spent allowance is restored."""
        return self.rate.window

    @cached_property
    def rate(self) -> RateLimit:
        interval = timedelta(minutes=1) / self.per_minute
        return RateLimit(interval, interval * self.burst)


@dataclass(frozen=True, slots=True)
class Allowance:
    """The caller's remaining allowance after this request."""

    limit: int
    remaining: int
    reset: timedelta  # until the whole allowance is restored
    window: timedelta

    def headers(self) -> dict[str, str]:
        """The current IETF draft (``RateLimit``, ``RateLimit-Policy``) and the three fields of the older ones."""
        reset = math.ceil(self.reset.total_seconds())
        return {
            "RateLimit-Policy": f'"default";q={self.limit};w={max(1, round(self.window.total_seconds()))}',
            "RateLimit": f'"default";r={self.remaining};t={reset}',
            "RateLimit-Limit": str(self.limit),
            "RateLimit-Remaining": str(self.remaining),
            "RateLimit-Reset": str(reset),
        }


class Refused(RateLimited):
    """A refusal with the values of the rate limit headers."""

    def __init__(self, allowance: Allowance, retry_after: timedelta) -> None:
        super().__init__(RateLimited.__doc__, retry_after=retry_after)
        self.allowance = allowance


def counting(found: str, *, first: int, bucket: str = "bucket") -> str:
    """The statement that returns the rows of ``found`` and counts a request of each; its next two placeholders are the
    interval and the window. ``taken`` is null if the window is used up."""
    interval, window = f"${first}", f"${first + 1}"
    # The outer SELECT's snapshot precedes the write: after a refusal it shows the unchanged row. A row that shows no
    # room is not touched, so a flood of refused requests locks nothing.
    return f"""
WITH found AS MATERIALIZED (
  SELECT each.*, {bucket} AS counted_bucket FROM ({found}) AS each
), before AS MATERIALIZED (
  SELECT found.*, (SELECT r.tat FROM headrace.rate_limits AS r WHERE r.bucket = found.counted_bucket) AS tat FROM found
), taken AS (
  INSERT INTO headrace.rate_limits AS r (bucket, tat)
  SELECT counted_bucket, now() + {interval} FROM before
  WHERE coalesce(before.tat + {interval} <= now() + {window}, true)
  ON CONFLICT (bucket) DO UPDATE SET tat = greatest(r.tat, now()) + {interval}
    WHERE greatest(r.tat, now()) + {interval} <= now() + {window}
  RETURNING tat
)
SELECT before.*, (SELECT tat - now() FROM taken) AS taken, before.tat - now() AS before FROM before
"""


TAKE = counting("SELECT $1::text AS bucket", first=2)


async def take(db: Database, bucket: str, config: LimitConfig) -> Allowance:
    """Count one request of this caller, or raise ``RateLimited``. It counts regardless of the request's result."""
    (row,) = await db.fetch_alone(TAKE, bucket, config.interval, config.window)
    return allowance_of(Count(row["taken"], row["before"]), config)


def allowance_of(count: Count, config: LimitConfig) -> Allowance:
    """What is left after this request, or ``RateLimited``."""
    if count.taken is not None:
        left = (config.window - count.taken) // config.interval
        return Allowance(config.burst, max(0, left), count.taken, config.window)
    before = count.before or config.window  # no row before: others used the allowance while this one waited
    wait = max(before + config.interval - config.window, timedelta(milliseconds=1))
    raise Refused(Allowance(config.burst, 0, before, config.window), wait)


async def count_in(tx: Tx, bucket: str, *, every: timedelta, burst: int) -> timedelta | None:
    """Count one use in the caller's transaction: ``burst`` at once, and one more per ``every``. Returns None if
    counted, else the time to wait."""
    row = await tx.fetchrow(TAKE, bucket, every, every * burst)
    assert row is not None
    if row["taken"] is not None:
        return None
    before: timedelta = row["before"] or every * burst
    return max(before + every - every * burst, timedelta(milliseconds=1))


FORGET = """
DELETE FROM headrace.rate_limits WHERE bucket IN (
  SELECT bucket FROM headrace.rate_limits WHERE tat < now() - interval '1 minute' LIMIT $1 FOR UPDATE SKIP LOCKED
)
"""


async def forget(tx: Tx, limit: int) -> int:
    """Delete rows of callers with a full allowance; returns their number. Safe to run at any time."""
    return await tx.count(FORGET, limit)


class Limiter:
    """The rate limit of one process."""

    def __init__(self, db: Database, config: LimitConfig) -> None:
        self._db = db
        self._config = config
        self._refused: OrderedDict[str, tuple[float, Allowance]] = OrderedDict()

    async def check(self, bucket: str) -> Allowance | None:
        """Count one request or raise ``RateLimited``; None when the database is away."""
        if (still := self._still_refused(bucket)) is not None:
            raise still
        try:
            return await take(self._db, bucket, self._config)
        except Refused as refused:
            self._remember(bucket, refused)
            raise
        except Unavailable as exc:
            # Requests that need the database fail by themselves; the others are served without a limit.
            log.warning("limits.unavailable", error=exc.code)
            return None

    @property
    def rate(self) -> RateLimit:
        return self._config.rate

    def judge(self, count: Count) -> Allowance | None:
        """The allowance of a request that its authentication has counted, or ``RateLimited``; None when the database
        could not count it."""
        return allowance_of(count, self._config) if count.known else None

    def _still_refused(self, bucket: str) -> Refused | None:
        # A refusal changes nothing, so it is repeated from memory until its time: a flood stays cheap.
        if (found := self._refused.get(bucket)) is None:
            return None
        until, allowance = found
        if (left := until - time.monotonic()) <= 0:
            del self._refused[bucket]
            return None
        return Refused(allowance, timedelta(seconds=left))

    def _remember(self, bucket: str, refused: Refused) -> None:
        assert refused.retry_after is not None
        self._refused[bucket] = time.monotonic() + refused.retry_after.total_seconds(), refused.allowance
        while len(self._refused) > _MAX_CACHED_REFUSALS:
            self._refused.popitem(last=False)


USER_BUCKET = "'user:' || user_id"
"""The bucket of a user in SQL, as ``bucket_of`` names it."""


def bucket_of(*, user_id: str | None, client_ip: str | None) -> str:
    """The counted subject: the user, or the address; for IPv6 the /64, the usual size of one customer."""
    if user_id is not None:
        return f"user:{user_id}"
    if client_ip is None:
        return "address:unknown"
    address = ip_address(client_ip)
    return f"address:{ip_network((address, 64), strict=False) if address.version == 6 else address}"
