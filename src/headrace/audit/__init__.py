"""Who did what, to what, from where: one trail, written in the transaction of the change that it tells of."""

from typing import TYPE_CHECKING

from headrace import lazily
from headrace.audit.model import (
    ANONYMOUS,
    SYSTEM,
    Action,
    ActorType,
    EventId,
    Principal,
    PrincipalType,
    Resource,
    ResourceType,
    Who,
)
from headrace.audit.record import record

if TYPE_CHECKING:
    from headrace.audit.errors import EventNotFound, ImportRefused, NotSealed, SearchInvalid
    from headrace.audit.events import Event, EventFilter, count_events, get_event, list_events, pages
    from headrace.audit.exporting import ExportFormat, as_json, render
    from headrace.audit.findings import Finding, Flaw, verify_rows
    from headrace.audit.heads import Head, KeptHeads, Signature
    from headrace.audit.proving import prove
    from headrace.audit.sealing import Sealed, Sealer
    from headrace.audit.seals import Seal, forget_leaves, unsealed_for
    from headrace.audit.signing import SigningKey, read_key, write_key
    from headrace.audit.verifying import Against, Verified, verify

__all__ = [
    "ANONYMOUS",
    "SYSTEM",
    "Action",
    "ActorType",
    "Against",
    "Event",
    "EventFilter",
    "EventId",
    "EventNotFound",
    "ExportFormat",
    "Finding",
    "Flaw",
    "Head",
    "ImportRefused",
    "KeptHeads",
    "NotSealed",
    "Principal",
    "PrincipalType",
    "Resource",
    "ResourceType",
    "Seal",
    "Sealed",
    "Sealer",
    "SearchInvalid",
    "Signature",
    "SigningKey",
    "Verified",
    "Who",
    "as_json",
    "count_events",
    "forget_leaves",
    "get_event",
    "list_events",
    "pages",
    "prove",
    "read_key",
    "record",
    "render",
    "unsealed_for",
    "verify",
    "verify_rows",
    "write_key",
]

# Whoever records loads what recording needs, and no more.
__getattr__ = lazily.names_of(
    __name__,
    {
        "errors": "EventNotFound ImportRefused NotSealed SearchInvalid",
        "events": "Event EventFilter count_events get_event list_events pages",
        "exporting": "ExportFormat as_json render",
        "findings": "Finding Flaw verify_rows",
        "heads": "Head KeptHeads Signature",
        "proving": "prove",
        "sealing": "Sealed Sealer",
        "seals": "Seal forget_leaves unsealed_for",
        "signing": "SigningKey read_key write_key",
        "verifying": "Against Verified verify",
    },
)
