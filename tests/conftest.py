"""Databases for tests: real PostgreSQL, migrated once, copied for the tests that need one of their own.

``tx``  a transaction on a migrated database, rolled back at the end (``now()`` stands still in it: pass ``now=``)
``db``  a database as if fresh (``tests/databases.py``), for whatever commits, listens or needs two connections

Both connect as ``headrace_app``, the role the product runs as. The server is an embedded one in memory, kept in
``.pytest_cache`` from run to run (``tests/memory.py``); ``HEADRACE_TEST_DATABASE_URL`` names another server instead, as
a user who may create databases and roles.
"""

import asyncio
import functools
import gc
import itertools
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import httpcore2
import pytest
import structlog

from headrace import embedded_postgres
from headrace.audit import ANONYMOUS, ActorType, Who
from headrace.database import Database, DatabaseConfig, Tx
from headrace.testing.scratch import FAST_SETTINGS, ScratchServer, make_template
from tests.databases import Databases, Superuser
from tests.isolation import isolated, isolated_session
from tests.memory import in_memory, note_template
from tests.missing_programs import pytest_terminal_summary

if TYPE_CHECKING:
    import httpx2
    from fastapi import FastAPI

ROOT = Path(__file__).parent.parent
# Fixtures and hooks for every test.
__all__ = ["isolated", "isolated_session", "pytest_terminal_summary"]
# As in the Makefile, for those who call pytest themselves.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ["AWS_EC2_METADATA_DISABLED"] = "true"  # no test asks a cloud for keys
sys.dont_write_bytecode = False


# A shell has its jobs in the background ignore some signals, and whoever is started inherits that, but no handler: with
# one that does nothing our children hear what is sent to them, and we go on ignoring it.
for _signal in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    if signal.getsignal(_signal) is signal.SIG_IGN:
        signal.signal(_signal, lambda *_: None)


# An error that nobody foresaw, drawn with every local variable by structlog's default, takes seconds.
structlog.dev.ConsoleRenderer.get_active().exception_formatter = structlog.dev.plain_traceback


# Reading the system's certificates takes 20 ms of CPU, and hundreds of tests open clients that speak plain HTTP.
httpcore2.default_ssl_context = functools.cache(httpcore2.default_ssl_context)


def pytest_xdist_auto_num_workers() -> int:
    """`-n auto`: more than there are cores, for a good part of the time tests wait for others."""
    return (os.cpu_count() or 1) * 2


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Nothing that is loaded for the tests becomes garbage: nobody looks for it there, now or later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        gc.set_threshold(20_000, 20, 50)  # what a test leaves is small: collecting less often saves CPU


def pytest_unconfigure() -> None:
    gc.unfreeze()  # libraries in C complain of what is never taken down


# Share a browser and a whole site, which stands until the last of them is over.
_TOGETHER = {"console"}
# Where tests take seconds; the rest takes less all together.
_LONG_FOLDERS = {"attack", "docs", "e2e", "examples", "races", "removal", "testing"}
_LONG_FILES = {
    "test_afar", "test_audited", "test_bucket", "test_everything_is_audited", "test_generated_client", "test_waiting",
    "test_worker",
}  # fmt: skip


@pytest.hookimpl(trylast=True)  # after those are gone that do not run
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest first: at the end of a run nobody shall wait for one of them.

    Each process is given a part of the list that hangs together, so each part begins with some of the long files.
    """
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        folder = item.path.parent
        files.setdefault(folder if folder.name in _TOGETHER else item.path, []).append(item)
    long = [file for file in files if file.parent.name in _LONG_FOLDERS or file.stem in _LONG_FILES | _TOGETHER]
    short = iter([item for file in files if file not in long for item in files[file]])
    parts = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    arranged: list[pytest.Item] = []
    for part in range(parts):
        arranged += [item for file in long[part::parts] for item in files[file]]
        arranged += itertools.islice(short, max(0, len(items) * (part + 1) // parts - len(arranged)))
    items[:] = [*arranged, *short]


@dataclass(frozen=True)
class TestServer(ScratchServer):
    """A PostgreSQL on which tests may do as they like."""

    __test__ = False
    folder: Path | None = None

    def url(self, database: str, *, role: str | None = None) -> str:
        parts = urlsplit(self.superuser_url)
        return urlunsplit(parts._replace(path=f"/{database}", query=f"role={role}" if role else ""))

    async def run(self, sql: str, *args: object, database: str = "postgres") -> list[asyncpg.Record]:
        connection = await asyncpg.connect(self.url(database))
        try:
            return await connection.fetch(sql, *args)
        finally:
            await connection.close()


@pytest.fixture(scope="session")
def server() -> Iterator[TestServer]:
    if url := os.environ.get("HEADRACE_TEST_DATABASE_URL"):
        yield TestServer(url)
        return
    with (
        in_memory(ROOT / ".pytest_cache" / "headrace") as folder,
        embedded_postgres.attach(embedded_postgres.EmbeddedConfig(data_dir=folder, settings=FAST_SETTINGS)) as running,
    ):
        yield TestServer(running.superuser_url, folder)


@pytest.fixture(scope="session")
def template(server: TestServer) -> str:
    """The name of a migrated database that nobody connects to, made once for each state of the migrations."""
    name = asyncio.run(make_template(server, own=server.folder is not None))
    if server.folder is not None:
        note_template(server.folder, name)
    return name


MakeDatabase = Callable[..., Awaitable[str]]


@pytest.fixture(scope="session")
def superuser(server: TestServer) -> Iterator[Superuser]:
    """Makes and drops databases, whichever event loop a test has."""
    with closing(Superuser(server.superuser_url)) as connected:
        yield connected


@pytest.fixture(scope="session")
def databases(server: TestServer, superuser: Superuser) -> Iterator[Databases]:
    made = Databases(server, superuser)
    yield made
    made.close()


@pytest.fixture
def make_database(databases: Databases) -> Iterator[MakeDatabase]:
    """Gives databases that are the test's until its end: ``await make_database(template=…)`` gives the name."""
    made: list[str] = []

    async def make(template: str = "template1") -> str:
        made.append(databases.take(template))
        return made[-1]

    yield make
    for name in made:
        databases.give_back(name)


@pytest.fixture
async def database_url(server: TestServer, template: str, make_database: MakeDatabase) -> str:
    """A fresh migrated database, as the application's role; for tests that start processes of their own."""
    return server.url(await make_database(template), role="headrace_app")


@pytest.fixture
async def db(database_url: str) -> AsyncIterator[Database]:
    async with await Database.connect(DatabaseConfig(database_url, role="test", pool_max=20)) as database:
        yield database


@pytest.fixture(scope="session")
def shared_database(superuser: Superuser, template: str) -> Iterator[str]:
    """One migrated database for all the rolled-back transactions of this test process."""
    name = f"headrace_test_{os.getpid()}_shared"
    superuser.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
    yield name
    superuser.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


@asynccontextmanager
async def rolled_back(url: str) -> AsyncIterator[Tx]:
    async with await Database.connect(DatabaseConfig(url, role="test", pool_max=1)) as database:
        with suppress(_RollBack):
            async with database.transaction() as tx:
                yield tx
                raise _RollBack


class _RollBack(Exception):
    pass


@pytest.fixture
async def tx(server: TestServer, shared_database: str) -> AsyncIterator[Tx]:
    async with rolled_back(server.url(shared_database, role="headrace_app")) as open_transaction:
        yield open_transaction


@pytest.fixture
async def owner_tx(server: TestServer, shared_database: str) -> AsyncIterator[Tx]:
    """The same as a superuser: what even they cannot do is refused by the database itself."""
    async with rolled_back(server.url(shared_database)) as open_transaction:
        yield open_transaction


async def may_date_events(tx: Tx) -> None:
    """For the rest of the transaction: only the owner of the trail writes events of another time than now."""
    await tx.execute("SET LOCAL ROLE NONE")


@pytest.fixture
def who() -> Who:
    """Somebody unknown who calls from a documentation address."""
    return Who(ANONYMOUS, ActorType.USER, client_ip="192.0.2.7", request_method="POST", request_id="req-test")


# -- people before an API: the module's own ``app``, on the database of the test


@pytest.fixture
async def ada(app: "FastAPI", db: Database) -> AsyncIterator["httpx2.AsyncClient"]:
    async with _calling(app, db, "ada") as client:
        yield client


@pytest.fixture
async def eve(app: "FastAPI", db: Database) -> AsyncIterator["httpx2.AsyncClient"]:
    """Somebody else."""
    async with _calling(app, db, "eve") as client:
        yield client


@pytest.fixture
async def root(app: "FastAPI", db: Database) -> AsyncIterator["httpx2.AsyncClient"]:
    """An administrator."""
    async with _calling(app, db, "root", role=",ADMIN") as client:
        yield client


@asynccontextmanager
async def _calling(app: "FastAPI", db: Database, name: str, *, role: str = "") -> AsyncIterator["httpx2.AsyncClient"]:
    from tests.edge import stand  # only those who ask for people load the web

    async with stand.client(app, Authorization=f"Bearer {await stand.user(db, name)}{role}") as client:
        yield client
