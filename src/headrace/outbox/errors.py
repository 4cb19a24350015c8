"""Errors of the outbox."""

from headrace.errors import Conflict, NotFound


class OutboxEventNotFound(NotFound):
    """There is no such event, or its retention has ended."""

    code = "outbox_event_not_found"


class ConsumerNotFound(NotFound):
    """There is no consumer of this name."""

    code = "consumer_not_found"


class EventNotDead(Conflict):
    """Only a dead event can be revived; this one was published, or is still retried."""

    code = "event_not_dead"
