"""Who did what, to what, from where: one trail, written in the transaction of the change that it tells of."""

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

__all__ = [
    "ANONYMOUS",
    "SYSTEM",
    "Action",
    "ActorType",
    "EventId",
    "Principal",
    "PrincipalType",
    "Resource",
    "ResourceType",
    "Who",
    "record",
]
