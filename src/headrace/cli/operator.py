"""What an operator with access to the database does: as the product itself, and audited."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

from headrace import ids, migrations
from headrace.access import Caller, Role
from headrace.assembly.deployment import Deployment, database_of
from headrace.assembly.tasks import open_tasks
from headrace.cli.output import LOOKING, progress
from headrace.cli.session import load_settings, operator, run
from headrace.database import Database
from headrace.settings import Settings
from headrace.tasks.service import Tasks

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class OperatorSession:
    """The database, the tasks in it, and who sits before them."""

    db: Database
    tasks: Tasks
    caller: Caller
    deployment: Deployment
    settings: Settings


def as_operator(command: str, act: Callable[[OperatorSession], Awaitable[T]]) -> T:
    """Do this on the database of the settings."""
    settings = load_settings()
    with ExitStack() as stack:
        with progress(LOOKING) as report:
            deployment = stack.enter_context(database_of(settings, role=command, report=report))
        return run(_act(settings, deployment, command, act))


async def _act(
    settings: Settings, deployment: Deployment, command: str, act: Callable[[OperatorSession], Awaitable[T]]
) -> T:
    async with _open(settings, deployment, command) as session:
        return await act(session)


@asynccontextmanager
async def _open(settings: Settings, deployment: Deployment, command: str) -> AsyncIterator[OperatorSession]:
    await migrations.verify_current(deployment.app)
    async with await Database.connect(deployment.app) as db:
        yield OperatorSession(
            db, open_tasks(settings), Caller(operator(command), ids.SYSTEM_USER, Role.ADMIN), deployment, settings
        )
