"""SQL of a verification: events by the seals that cover them."""

from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime

from headrace.audit.seals import LEAF

SEALED_EVENTS = """
SELECT coalesce(sum(events), 0) FROM headrace.audit_seals WHERE number > $2 AND ($1::date IS NULL OR month = $1)
"""
UNSEALED = "SELECT count(*) FROM headrace.audit_events WHERE seq > $1"
# A generic plan does not know that the bounds cover the whole month: it would use another index for every seal, and
# take longer for larger months.
PLAN_FOR_THIS_MONTH = "SET LOCAL plan_cache_mode = force_custom_plan"
# Each seal's leaves as one bytea: a row for each event would cost more than its hash.
LEAVES = f"""
SELECT number, leaves
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS seal (number, after_seq, last_seq)
CROSS JOIN LATERAL (
  SELECT string_agg({LEAF}, ''::bytea ORDER BY seq) AS leaves
  FROM headrace.audit_events
  WHERE created_at >= $4 AND created_at < $5 AND seq > after_seq AND seq <= last_seq
) AS found
"""
EVENTS = f"""
SELECT id, {LEAF} AS leaf
FROM headrace.audit_events
WHERE seq > $1 AND seq <= $2 AND created_at >= $3 AND created_at < $4
ORDER BY seq
"""
BELOW = "SELECT id FROM headrace.audit_events WHERE seq <= 0 ORDER BY seq LIMIT 1"
FIRST_NUMBER = "SELECT coalesce(min(seq), 1) FROM headrace.audit_events"
LAST_NUMBER = "SELECT coalesce(max(seq), 0) FROM headrace.audit_events"
REPEATED = """
SELECT seq FROM headrace.audit_events WHERE seq > $1 AND seq <= $2 GROUP BY seq HAVING count(*) > 1 ORDER BY seq LIMIT 1
"""
OF_NUMBER = "SELECT id FROM headrace.audit_events WHERE seq = $1 ORDER BY id LIMIT 5"
ADDED = """
SELECT id FROM headrace.audit_events
WHERE created_at >= $1 AND created_at < $2 AND seq > $3 AND seq <= $4
ORDER BY seq LIMIT 1
"""


def bounds(month: date) -> tuple[datetime, datetime]:
    start = datetime(month.year, month.month, 1, tzinfo=UTC)
    return start, start.replace(year=start.year + start.month // 12, month=start.month % 12 + 1)


def unsealed_ranges(months: Mapping[date, int]) -> Iterator[tuple[datetime, datetime, int]]:
    """Time ranges that cover all events, each with its last sealed number."""
    at = datetime.min.replace(tzinfo=UTC)
    for month, last in sorted(months.items()):
        start, end = bounds(month)
        if at < start:
            yield at, start, 0
        yield start, end, last
        at = end
    yield at, datetime.max.replace(tzinfo=UTC), 0
