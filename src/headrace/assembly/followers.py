"""Whoever must move with a task."""

from headrace.schedules.following import ExecutionFollower
from headrace.tasks.catalog import StoredCatalog
from headrace.tasks.events import OutboxFollower
from headrace.tasks.followers import OUTBOX, OUTBOX_ALWAYS, SCHEDULES, Follower, Followers
from headrace.tasks.submit import Submitter


def followers(**others: Follower) -> Followers:
    """In the order in which they are called, which is the order in which they lock rows; ``others`` come first."""
    executions = ExecutionFollower()
    outbox = {OUTBOX: OutboxFollower(), OUTBOX_ALWAYS: OutboxFollower(always=True)}
    assembled = Followers({**others, **outbox, SCHEDULES: executions})
    # A run that ends starts the next one: so this follower submits, too, and whoever follows follows that as well.
    executions.submits_with(Submitter(StoredCatalog(), assembled))
    return assembled
