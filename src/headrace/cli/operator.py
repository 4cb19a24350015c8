"""What an operator with access to the database does: as the product itself, and audited."""

import getpass
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

from headrace import ids, migrations
from headrace.access import Caller, Role
from headrace.audit import SYSTEM, ActorType, Who
from headrace.cli.output import progress
from headrace.cli.wiring import Place, database_of, load_settings, open_tasks, run
from headrace.database import Database
from headrace.settings import Settings
from headrace.tasks.service import Tasks

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Desk:
    """The database, the tasks in it, and who sits before them."""

    db: Database
    tasks: Tasks
    caller: Caller
    place: Place
    settings: Settings


def at_desk(command: str, act: Callable[[Desk], Awaitable[T]]) -> T:
    """Do this on the database of the settings."""
    settings = load_settings()
    with ExitStack() as stack:
        with progress("looking at the database") as report:
            place = stack.enter_context(database_of(settings, role=command, report=report))
        return run(_act(settings, place, command, act))


async def _act(settings: Settings, place: Place, command: str, act: Callable[[Desk], Awaitable[T]]) -> T:
    async with _open(settings, place, command) as desk:
        return await act(desk)


@asynccontextmanager
async def _open(settings: Settings, place: Place, command: str) -> AsyncIterator[Desk]:
    await migrations.verify_current(place.app)
    async with await Database.connect(place.app) as db:
        yield Desk(db, open_tasks(settings), Caller(operator(command), ids.SYSTEM_USER, Role.ADMIN), place, settings)


def operator(command: str) -> Who:
    """Whoever can reach the database acts as the product itself; the account on this machine is noted."""
    return Who(SYSTEM, ActorType.SYSTEM, user_agent=f"headrace {command} ({getpass.getuser()})")
