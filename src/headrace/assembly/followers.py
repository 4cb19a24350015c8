"""The followers of tasks."""

from headrace.assets.config import FileConfig
from headrace.assets.results import ResultFollower
from headrace.billing.holds import BillingFollower
from headrace.schedules.following import ExecutionFollower
from headrace.tasks.catalog import StoredCatalog
from headrace.tasks.events import OutboxFollower
from headrace.tasks.followers import BILLING, OUTBOX, OUTBOX_ALWAYS, SCHEDULES, Follower, Followers
from headrace.tasks.submit import Submitter


def followers(files: FileConfig | None = None, /, **others: Follower) -> Followers:
    """In the order in which they are called, which is the order in which they lock rows; ``others`` come first.

    ``files`` has the retention of results.
    """
    executions = ExecutionFollower()
    first = {**others, "results": ResultFollower(files or FileConfig())}
    outbox = {OUTBOX: OutboxFollower(), OUTBOX_ALWAYS: OutboxFollower(always=True)}
    # Billing last: its locks are shared by all who submit for the same user, and schedules take theirs before it.
    assembled = Followers({**first, **outbox, SCHEDULES: executions, BILLING: BillingFollower()})
    # A run that ends starts the next one: so this follower submits, too, and needs the followers of what it submits.
    executions.submits_with(Submitter(StoredCatalog(), assembled))
    return assembled
