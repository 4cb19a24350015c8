"""What every command begins with: settings, an event loop, the database, and the local account as the operator."""

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from typing import Any, TypeVar

from headrace import logs, migrations, settings
from headrace.assembly.deployment import Deployment, database_of
from headrace.assembly.waiting import until_reachable
from headrace.audit import SYSTEM, ActorType, Who, local_account
from headrace.cli.output import LOOKING, progress, say
from headrace.settings import Settings

T = TypeVar("T")


def load_settings(**overrides: object) -> Settings:
    loaded = settings.load(**{name: value for name, value in overrides.items() if value is not None})
    logs.configure(format=loaded.log_format, level=loaded.log_level)
    return loaded


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run on uvloop, as every part of Headrace does."""
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


def operator(command: str) -> Who:
    """Database access carries the rights of the product itself; the audit trail names the local account."""
    name = local_account()
    principal = replace(SYSTEM, username=f"cli ({name})")
    return Who(principal, ActorType.SYSTEM, user_agent=f"headrace {command} ({name})")


@contextmanager
def current_database(settings: Settings, *, role: str, quiet: bool = False) -> Iterator[Deployment]:
    """The database of a process that stays: waits until it is reachable, and refuses a schema that is not current."""
    with ExitStack() as stack:
        with nullcontext(_show_nothing) if quiet else progress(LOOKING) as report:
            deployment = stack.enter_context(database_of(settings, role=role, report=report, notify=say))
            run(until_reachable(lambda: migrations.verify_current(deployment.app), notify=say))
        yield deployment


def _show_nothing(_: str) -> None:
    """For a child: its supervisor has shown the steps for all."""
