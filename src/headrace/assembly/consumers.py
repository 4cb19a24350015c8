"""Who gets the events of the outbox."""

from collections.abc import Sequence

from headrace.outbox.consumers import Consumer


def consumers() -> Sequence[Consumer]:
    """In the order in which they are called, which is the order in which they lock rows. None so far: nobody reads the
    outbox yet."""
    return ()
