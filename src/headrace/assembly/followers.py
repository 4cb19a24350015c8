"""Whoever must move with a task."""

from headrace.assets.config import FileConfig
from headrace.assets.results import ResultFollower
from headrace.schedules.following import ExecutionFollower
from headrace.tasks.catalog import StoredCatalog
from headrace.tasks.events import OutboxFollower
from headrace.tasks.followers import SCHEDULES, Follower, Followers
from headrace.tasks.submit import Submitter


def followers(files: FileConfig | None = None, /, **others: Follower) -> Followers:
    """In the order in which they are called, which is the order in which they lock rows; ``others`` come first.

    ``files`` says how long results stay.
    """
    executions = ExecutionFollower()
    assembled = Followers(
        {**others, "results": ResultFollower(files or FileConfig()), "outbox": OutboxFollower(), SCHEDULES: executions}
    )
    # A run that ends starts the next one: so this follower submits, too, and whoever follows follows that as well.
    executions.submits_with(Submitter(StoredCatalog(), assembled))
    return assembled
