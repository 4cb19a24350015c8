"""Folders to start Headrace in. Whatever a test does, nothing may be left running there."""

import os
import pwd
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from headrace.embedded_postgres import EmbeddedConfig, Server, attach
from headrace.embedded_postgres import account as accounts
from headrace.embedded_postgres.account import Account
from headrace.embedded_postgres.errors import PrivilegesMissing
from headrace.testing.scratch import FAST_SETTINGS
from tests.e2e.program import Program, is_deserted, running_in
from tests.memory import room

DEBIAN = Path("/usr/lib/postgresql/15/bin")
# As docs/howto/own-postgres.md has it.
ROLES = """
CREATE ROLE headrace_migrator LOGIN PASSWORD 'choose-one' IN ROLE headrace_owner;
CREATE ROLE headrace_service LOGIN PASSWORD 'choose-another' IN ROLE headrace_app;
"""
MakeFolder = Callable[[], Path]
Start = Callable[..., Program]


@pytest.fixture
def make_folder() -> Iterator[MakeFolder]:
    """Makes empty folders with a space in the name, which vanish with the test."""
    made: list[Path] = []

    def make() -> Path:
        # Not pytest's own: other users must be able to enter, and the path must be short enough for a socket.
        folder = Path(tempfile.mkdtemp(prefix="head race ", dir=room())).resolve()
        folder.chmod(0o755)
        made.append(folder)
        return folder

    yield make
    left = {}
    for folder in made:
        if not is_deserted(folder):
            left[folder.name] = [" ".join(process.cmdline()) for process in running_in(folder)]
            for process in running_in(folder):
                process.kill()
        shutil.rmtree(folder)
    assert not left, left


@pytest.fixture
def debian(make_folder: MakeFolder) -> Iterator[Server]:
    """Debian's PostgreSQL 15 with an empty database and the two roles."""
    if not (DEBIAN / "postgres").exists():
        pytest.skip("PostgreSQL 15 is not installed here")
    with attach(EmbeddedConfig(make_folder() / ".headrace", binaries=DEBIAN, settings=FAST_SETTINGS)) as server:
        with psycopg.connect(server.superuser_url, autocommit=True) as connection:
            connection.execute(ROLES)
        yield server


def address(server: Server, user: str, password: str) -> str:
    return f"postgresql://{user}:{password}@127.0.0.1:{server.port}/headrace"


@pytest.fixture
def folder(make_folder: MakeFolder) -> Path:
    return make_folder()


@pytest.fixture
def start(make_folder: MakeFolder) -> Iterator[Start]:
    """Starts programs, and ends those that are left."""
    started: list[Program] = []

    def begin(*words: str, **how: Any) -> Program:
        started.append(Program(*words, **how))
        return started[-1]

    yield begin
    for program in started:
        program.close()


@pytest.fixture(scope="session")
def ordinary() -> Account:
    """An ordinary account for root to start programs as; it may read everywhere where it could not reach Python."""
    if os.geteuid() != 0:
        pytest.skip("we are an ordinary user anyway: every other test is this one")
    entry = pwd.getpwnam("nobody")
    nobody = Account(entry.pw_uid, entry.pw_gid, entry.pw_name)
    try:
        return accounts.with_reach(nobody, home=Path(__file__).parent, programs=[Path(sys.executable)])
    except PrivilegesMissing:
        pytest.skip("the account nobody cannot reach this checkout")
