"""Holds, commits, parts, releases, grants, adjustments, retries in any order: the equations hold after every step."""

import asyncio
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from headrace.database import Database, DatabaseConfig
from tests.billing.machine import LedgerMachine, Run, Shop


@pytest.fixture
def shop(database_url: str) -> Iterator[tuple[Run, Shop]]:
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        db = loop.run_until_complete(Database.connect(DatabaseConfig(database_url, role="test", pool_max=6)))
        real = Shop(db)
        loop.run_until_complete(real.prepare())
        yield loop.run_until_complete, real
        loop.run_until_complete(db.close())


def drive(shop: tuple[Run, Shop], *, examples: int, steps: int, again: bool) -> None:
    run_state_machine_as_test(
        lambda: LedgerMachine(*shop),  # type: ignore[arg-type] # any factory will do
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            derandomize=again,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate],  # a race may go the other way next time
        ),
    )


def test_the_equations_hold_after_every_step(shop: tuple[Run, Shop]) -> None:  # W-10
    drive(shop, examples=5, steps=40, again=True)


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_the_equations_hold_for_thousands_of_steps(shop: tuple[Run, Shop]) -> None:  # W-10
    drive(shop, examples=150, steps=60, again=False)
