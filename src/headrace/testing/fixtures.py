"""Fixtures for pytest: a scratch database with Headrace's schema, and a worker for your own types.

>>> pytest_plugins = ["headrace.testing.fixtures"]  # in the conftest.py of your project's root

PostgreSQL is the embedded one (the extra ``embedded``), kept in ``.pytest_cache`` between runs; or the one at
``HEADRACE_TEST_DATABASE_URL``, with a user who may create databases and roles. It starts with the first test that uses
it.
"""

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from headrace.tasks.registry import Registry
from headrace.testing.scratch import (
    ScratchDatabase,
    ScratchServer,
    make_template,
    scratch_database,
    scratch_server,
)
from headrace.testing.users import make_user
from headrace.testing.worker import TestWorker

__all__ = ["headrace_database", "headrace_own_sql", "headrace_registry", "headrace_user", "headrace_worker"]

_SERVER = "HEADRACE_TEST_DATABASE_URL"


@pytest.fixture
def headrace_registry() -> Registry:
    """The task types of ``headrace_worker``: override it with a fixture of this name that returns your registry."""
    pytest.fail(
        "Define a fixture headrace_registry in your conftest.py that returns your registry.",
        pytrace=False,
    )


@pytest.fixture
def headrace_own_sql() -> str:
    """SQL that creates your own tables beside Headrace's: override it. It runs once, as a superuser, in a template."""
    return ""


@pytest.fixture(scope="session")
def _headrace_server(pytestconfig: pytest.Config) -> Iterator[ScratchServer]:
    cache: pytest.Cache | None = getattr(pytestconfig, "cache", None)  # gone with -p no:cacheprovider
    with ExitStack() as stack:
        folder = (
            Path(stack.enter_context(TemporaryDirectory())) / "headrace" if cache is None else cache.mkdir("headrace")
        )
        yield stack.enter_context(scratch_server(folder, given=os.environ.get(_SERVER)))


@pytest.fixture(scope="session")
def _headrace_template(_headrace_server: ScratchServer) -> Callable[[str], str]:
    @cache
    def made(own_sql: str) -> str:
        return asyncio.run(make_template(_headrace_server, own_sql=own_sql, own=_SERVER not in os.environ))

    return made


@pytest.fixture
def headrace_database(
    _headrace_server: ScratchServer, _headrace_template: Callable[[str], str], headrace_own_sql: str
) -> Iterator[ScratchDatabase]:
    """An empty database for this test, with Headrace's schema and your tables."""
    with scratch_database(_headrace_server, _headrace_template(headrace_own_sql)) as database:
        yield database


@pytest.fixture
def headrace_user(headrace_database: ScratchDatabase) -> Callable[..., str]:
    """Creates users with units for metered types: ``user_id = headrace_user(units=10)``."""
    return partial(make_user, headrace_database.url)


@pytest.fixture
def headrace_worker(
    headrace_database: ScratchDatabase, headrace_registry: Registry, tmp_path: Path
) -> Iterator[TestWorker]:
    """A worker on that database that runs the types of ``headrace_registry`` during the test."""
    with TestWorker(headrace_database.url, headrace_registry, scratch=tmp_path / "headrace-scratch") as worker:
        yield worker
