"""Everything that can be done to tasks, in any order and two at a time, against the database and against a plain model.

Each step does something for real, through the functions that workers, reapers and people use, and then all rows are
compared with the model. Claims are never forgotten: any later step may be that of a worker which lost its lease long
ago. In a race both ways round are allowed, and nothing else.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from headrace.database import Database, DatabaseConfig
from tests.tasks.state_machine.engine import Engine
from tests.tasks.state_machine.machine import Machine


@pytest.fixture
def engine(database_url: str) -> Iterator[tuple[Callable[[Awaitable[Any]], Any], Engine]]:
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        db = loop.run_until_complete(Database.connect(DatabaseConfig(database_url, role="test", pool_max=4)))
        real = Engine(db)
        loop.run_until_complete(real.prepare())
        yield loop.run_until_complete, real
        loop.run_until_complete(db.close())


def drive(engine: tuple[Callable[[Awaitable[Any]], Any], Engine], *, examples: int, steps: int, again: bool) -> None:
    run_state_machine_as_test(
        lambda: Machine(*engine),  # type: ignore[arg-type] # any factory will do
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            derandomize=again,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            # A race may go the other way next time: a failure cannot be made smaller, its steps are the report.
            phases=[Phase.generate],
        ),
    )


def test_the_engine_does_what_the_model_says(engine: tuple[Callable[[Awaitable[Any]], Any], Engine]) -> None:
    drive(engine, examples=12, steps=40, again=True)


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_the_engine_does_what_the_model_says_for_thousands_of_steps(
    engine: tuple[Callable[[Awaitable[Any]], Any], Engine],
) -> None:
    drive(engine, examples=200, steps=60, again=False)


def test_a_delayed_task_that_is_due_comes_before_tasks_submitted_earlier(
    engine: tuple[Callable[[Awaitable[Any]], Any], Engine],
) -> None:
    machine = Machine(*engine)
    machine.begin()
    machine.submit(specs=[("once", 0, True, "b"), ("once", 0, False, "a")])
    machine.time_passes()
    machine.take(choice=0, most=1)
    machine.teardown()
