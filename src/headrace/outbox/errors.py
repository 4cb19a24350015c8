"""What can go wrong with events."""

from headrace.errors import Conflict, NotFound


class OutboxEventNotFound(NotFound):
    """There is no such event, or it is no longer kept."""

    code = "outbox_event_not_found"


class ConsumerNotFound(NotFound):
    """No consumer of this name wants events."""

    code = "consumer_not_found"


class EventNotDead(Conflict):
    """Only an event that was given up can be revived; this one was published, or is still tried."""

    code = "event_not_dead"
