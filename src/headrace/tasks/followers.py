"""Followers: called with a batch of transitions, inside the transaction that makes them.

``tasks`` knows none of them. The assembly registers each follower once under a name; a task type lists its followers.
A type without followers pays nothing.

They are called in the order of their registration, whatever a batch holds: they lock rows, and two batches that called
them in two orders would wait for each other.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from headrace.database import Tx
from headrace.tasks.catalog import KnownType
from headrace.tasks.errors import FollowerMissing
from headrace.tasks.model import Change, Transition

# Who moves with what a schedule has fired, whatever its type.
SCHEDULES = "schedules"
# The follower that holds the price of a task, for every type.
BILLING = "billing"
# Who writes down the result file that a handler saved, whatever its type.
RESULTS = "results"
# The follower for events that have a subscriber, and the one for events that are always written.
OUTBOX = "outbox"
OUTBOX_ALWAYS = "outbox.always"
_NOT_EVENTS = frozenset({Change.PROGRESSED, Change.EXTENDED})


class Follower(Protocol):
    async def follow(self, tx: Tx, transitions: Sequence[Transition]) -> None:
        """Make the changes that belong to these moves in this transaction; raising rolls all of it back.

        ``BadResult`` fails the task whose result it is, for good; any other refusal is retried.
        """


class Followers:
    """Followers by name, in the order in which they are called, and which of them a type has."""

    def __init__(self, by_name: Mapping[str, Follower] | None = None) -> None:
        self._by_name = dict(by_name or {})

    def require(self, types: Iterable[KnownType]) -> None:
        """Refuse types whose followers this process lacks: when it starts, and not when a task of theirs ends."""
        for known in types:
            self._check(known.name, known.followers)

    def _check(self, type_name: str, names: Iterable[str]) -> None:
        missing = [name for name in names if name not in self._by_name]
        if missing:
            raise FollowerMissing(
                f"{type_name} is followed by {', '.join(missing)}, which this process does not have; it has "
                f"{', '.join(self._by_name) or 'none'}."
            )

    def of(self, known: KnownType) -> tuple[str, ...]:
        """Those that a type has; what a schedule has fired is followed by the schedules, too."""
        if not known.emits_events or OUTBOX not in self._by_name:
            return known.followers
        always = known.emits_always and OUTBOX_ALWAYS in self._by_name
        return (OUTBOX_ALWAYS if always else OUTBOX, *known.followers)

    def emits(self, known: KnownType) -> bool:
        """Whether it writes events only for subscribers. If it is the only follower, the statements of the engine write
        the events themselves, and a type without subscribers costs nothing extra."""
        return self.of(known)[:1] == (OUTBOX,)

    def only_events(self, known: KnownType) -> bool:
        """Whether its events are all that a type's own followers have to do, with subscribers or without: then the
        statement that stores a task writes them."""
        return self.of(known) in ((), (OUTBOX,), (OUTBOX_ALWAYS,))

    def needs_no_call(self, known: KnownType) -> bool:
        """Whether no follower has to be called: there is none, or only events, which the engine's statements emit."""
        return self.of(known) in ((), (OUTBOX,))

    def _of(self, known: KnownType, moved: Transition) -> tuple[str, ...]:
        names = self.of(known)
        if moved.change in _NOT_EVENTS:
            names = known.followers
        if moved.saved is not None and RESULTS not in names:
            names = (*names, RESULTS)
        if moved.schedule_uid is not None and SCHEDULES in self._by_name:
            names = (*names, SCHEDULES)
        # Also without a ledger to hold units: unpaid work is refused rather than done for free.
        return names if moved.units is None else (*names, BILLING)

    async def follow(
        self, tx: Tx, moves: Iterable[tuple[KnownType, Transition]], *, events_written: bool = False
    ) -> None:
        """Call each follower once with all the moves that are its business, in the order they were made; but for those
        of events if these are written."""
        batches: dict[str, list[Transition]] = {}
        for known, transition in moves:
            names = self._of(known, transition)
            self._check(known.name, names)
            for name in names:
                batches.setdefault(name, []).append(transition)
        for name, follower in self._by_name.items():
            if events_written and name in (OUTBOX, OUTBOX_ALWAYS):
                continue
            if batch := batches.get(name):
                await follower.follow(tx, batch)
