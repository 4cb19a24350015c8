"""The trail's one INSERT: ``headrace.write_audit_event``."""

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


WRITE_EVENT = "SELECT headrace.write_audit_event($1)"
WRITE_EVENT_AT_COMMIT = "SELECT headrace.write_audit_event({given})"


async def insert_event(tx: Tx, tail: str, event: NewEvent, *, now: datetime | None = None) -> EventId | None:
    """Insert an event and return its id: the present millisecond, then ``tail``. None if it is written with the COMMIT,
    which dates it."""
    given = {"tail": tail, "now": now, **{name: getattr(event, name) for name in NewEvent.__dataclass_fields__}}
    if tx.defer(WRITE_EVENT_AT_COMMIT, given):
        return None
    return EventId(await tx.fetchval(WRITE_EVENT, given))


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
