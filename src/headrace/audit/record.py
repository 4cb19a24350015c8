"""Writes audit events; the only code that does."""

from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from ipaddress import ip_address

from headrace import ids
from headrace.audit import redaction, store
from headrace.audit.diff import diff_object
from headrace.audit.model import Action, EventId, Resource, Who
from headrace.audit.text import clean, short
from headrace.database import Tx

_ID_TAIL = 16  # letters of an id after its millisecond
_MAX_USER_AGENT_LENGTH = 512
_MAX_FACT_LENGTH = 2_000


async def record(
    tx: Tx,
    who: Who,
    action: Action,
    resource: Resource,
    *,
    old: object | None = None,
    new: object | None = None,
    data: Mapping[str, str] | None = None,
    now: datetime | None = None,
) -> EventId | None:
    """Add an event to the trail, in the transaction of the change: both commit or neither does. Gives its id, or None
    if the transaction writes it with its COMMIT.

    ``old`` and ``new`` are the stored rows (records, mappings or dataclasses) before and after; only fields that
    ``redaction.FIELDS`` allows for this type are kept, and each side is cut to 64 KB. Nothing in a request can make
    this fail: text that PostgreSQL would refuse is cleaned, long text is truncated.
    """
    before, after = redaction.show(resource.type, old, new)
    event = store.NewEvent(
        action=action,
        resource_type=resource.type,
        resource={"type": resource.type, "identifier": short(resource.identifier, 255), "data": _facts(resource.data)},
        user={
            "uid": who.principal.uid,
            "username": short(who.principal.username, 255) or "",
            "type": who.principal.type,
        },
        space_path=short(resource.space_path, 512),
        diff_object=diff_object(before, after),
        client_ip=address(who.client_ip),
        user_agent=short(who.user_agent, _MAX_USER_AGENT_LENGTH),
        request_method=short(who.request_method, 16),
        request_id=short(who.request_id, 128),
        data=_facts(data) if data else None,
        actor_type=who.actor_type,
        trace_id=short(who.trace_id, 64),
    )
    return await store.insert_event(tx, ids.new("aud")[-_ID_TAIL:], event, now=now)


async def record_read(tx: Tx, who: Who, resource: Resource) -> None:
    """Record a read of another user's resource, unless the same principal read it in the same way within the last ten
    minutes: a program that polls a task reads it several times a second."""
    seen = await store.was_read_recently(
        tx,
        resource_type=resource.type,
        identifier=short(resource.identifier, 255) or "",
        uid=who.principal.uid,
        username=short(who.principal.username, 255) or "",
        client_ip=address(who.client_ip),
        user_agent=short(who.user_agent, _MAX_USER_AGENT_LENGTH),
    )
    if not seen:
        await record(tx, who, Action.READ, resource)


def _facts(data: Mapping[str, str]) -> dict[str, str]:
    return {
        clean(name): short(value, _MAX_FACT_LENGTH) or "" for name, value in redaction.without_secrets(data).items()
    }


@lru_cache(maxsize=1024)  # a few addresses send most requests
def address(text: str | None) -> str | None:
    """An address as inet reads it, without a zone; None otherwise (a Unix socket, a test client)."""
    try:
        return None if text is None else str(ip_address(text.partition("%")[0]))
    except ValueError:
        return None
