"""SQL of units by day: days that are over from ``usage_days``, the last ones from the ledger."""

from datetime import UTC, date, datetime, timedelta

from headrace.billing.model import UsedDay
from headrace.database import Tx

_SUMS = """(created_at AT TIME ZONE 'UTC')::date AS day,
  coalesce(sum(consume_unit) FILTER (WHERE status = 'COMMITTED'), 0)::bigint AS used,
  coalesce(sum(consume_unit) FILTER (WHERE status = 'RELEASED'), 0)::bigint AS released,
  count(DISTINCT task_id) FILTER (WHERE status = 'COMMITTED') AS tasks
FROM headrace.usage_ledger"""
HORIZON = "SELECT day FROM headrace.usage_days_horizon"
FROM_LEDGER = f"""
SELECT {_SUMS}
WHERE user_id = $1 AND created_at >= $2 AND created_at < $3 AND hold_id IS NOT NULL
GROUP BY day ORDER BY day
"""
FROM_DAYS = """
SELECT day, used, released, tasks FROM headrace.usage_days WHERE user_id = $1 AND day >= $2 AND day < $3 ORDER BY day
"""


async def used_by_day(tx: Tx, user_id: str, since: date, until: date) -> list[UsedDay]:
    """Days with settlements, from ``since`` and before ``until``, in UTC."""
    # Read first: it only ever grows, and the days before it stay.
    horizon: date = await tx.fetchval(HORIZON) or date.min
    rows = await tx.fetch(FROM_DAYS, user_id, since, min(until, horizon)) if since < horizon else []
    if horizon < until:
        rows += await tx.fetch(FROM_LEDGER, user_id, _midnight(max(since, horizon)), _midnight(until))
    return [UsedDay(row["day"], row["used"], row["released"], row["tasks"]) for row in rows]


# One process adds up at a time: the row is locked until its transaction ends.
LOCK_HORIZON = f"{HORIZON} FOR UPDATE"
FIRST_DAY = """
SELECT min(first)::date FROM unnest(ARRAY['COMMITTED', 'RELEASED']) AS which (status) CROSS JOIN LATERAL (
  SELECT created_at AT TIME ZONE 'UTC' AS first FROM headrace.usage_ledger
  WHERE status = which.status ORDER BY created_at LIMIT 1
) AS entry
"""
BEGIN = "INSERT INTO headrace.usage_days_horizon (day) VALUES ($1) ON CONFLICT DO NOTHING"
# The status, which only settlements and adjustments have, leads to the day's entries by an index.
ADD_UP = f"""
INSERT INTO headrace.usage_days (user_id, day, used, released, tasks)
SELECT user_id, {_SUMS}
WHERE status IN ('COMMITTED', 'RELEASED') AND created_at >= $1 AND created_at < $2 AND hold_id IS NOT NULL
GROUP BY user_id, day
ON CONFLICT (user_id, day) DO UPDATE SET used = excluded.used, released = excluded.released, tasks = excluded.tasks
"""
ADVANCE = "UPDATE headrace.usage_days_horizon SET day = $1"


async def add_up_next(tx: Tx, *, until: date) -> date | None:
    """Add up the first day that is not, if it is before ``until``; gives it, or None."""
    day: date | None = await tx.fetchval(LOCK_HORIZON)
    if day is None:
        await tx.execute(BEGIN, await tx.fetchval(FIRST_DAY) or until)
        day = await tx.fetchval(LOCK_HORIZON)
    assert day is not None
    if day >= until:
        return None
    following = day + timedelta(days=1)
    await tx.execute(ADD_UP, _midnight(day), _midnight(following))
    await tx.execute(ADVANCE, following)
    return day


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)
