"""The trail's one INSERT."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from headrace.audit.model import Action, EventId, ResourceType
from headrace.database import Tx


@dataclass(frozen=True, slots=True)
class NewEvent:
    """A row of audit_events without its id and time."""

    action: Action
    resource_type: ResourceType
    resource: dict[str, object]
    user: dict[str, str]
    space_path: str | None
    diff_object: dict[str, object] | None
    client_ip: str | None
    user_agent: str | None
    request_method: str | None
    request_id: str | None
    data: dict[str, str] | None
    actor_type: str
    trace_id: str | None


# Events are dated by the database's clock, which is one for all machines. The id must hold the same millisecond, so it
# is completed here: the first ten of its 26 letters are the time, and $1 has the other sixteen. clock_timestamp()
# rather than now(), so that events of a long transaction are dated in order.
INSERT_EVENT = """
INSERT INTO headrace.audit_events (
  id, "timestamp", created_at, action, resource_type, resource, "user", space_path, diff_object,
  client_ip, user_agent, request_method, request_id, data, actor_type, trace_id
)
SELECT
  'aud_' || headrace.letters_of_millis(millis) || $1::text,
  millis, created_at, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15
FROM (  -- volatile, so evaluated once
  SELECT date_trunc('milliseconds', coalesce($2::timestamptz, clock_timestamp())) AS created_at
) AS clock
CROSS JOIN LATERAL (SELECT (extract(epoch FROM created_at) * 1000)::bigint AS millis) AS unix
RETURNING id
"""


async def insert_event(tx: Tx, tail: str, event: NewEvent, *, now: datetime | None = None) -> EventId:
    """Insert an event and return its id: the present millisecond, then ``tail``."""
    return EventId(
        await tx.fetchval(
            INSERT_EVENT,
            tail,
            now,
            event.action,
            event.resource_type,
            event.resource,
            event.user,
            event.space_path,
            event.diff_object,
            event.client_ip,
            event.user_agent,
            event.request_method,
            event.request_id,
            event.data,
            event.actor_type,
            event.trace_id,
        )
    )


# Uses the index on the identifier; the time bounds also prune partitions.
WAS_READ = """
SELECT EXISTS (
  SELECT FROM headrace.audit_events
  WHERE resource ->> 'identifier' = $2
    AND timestamp > (extract(epoch FROM now() - $7::interval) * 1000)::bigint AND created_at > now() - $7::interval
    AND action = 'read' AND resource_type = $1 AND "user" ->> 'uid' = $3 AND "user" ->> 'username' = $4
    AND client_ip IS NOT DISTINCT FROM $5 AND user_agent IS NOT DISTINCT FROM $6
)
"""
_REPEATED_READ_WINDOW = timedelta(minutes=10)


async def was_read_recently(
    tx: Tx,
    *,
    resource_type: str,
    identifier: str,
    uid: str,
    username: str,
    client_ip: str | None,
    user_agent: str | None,
) -> bool:
    """Whether this principal read it from this address within the last ten minutes."""
    seen: bool = await tx.fetchval(
        WAS_READ, resource_type, identifier, uid, username, client_ip, user_agent, _REPEATED_READ_WINDOW
    )
    return seen
