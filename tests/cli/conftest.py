"""Commands in this process, where only what they say and do matters; ``tests/e2e/program.py`` has those that start one.

A command has databases of the tests' own server, so that no test here waits for a PostgreSQL to start.
"""

import contextlib
import io
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from headrace.cli import app
from tests.conftest import MakeDatabase, TestServer
from tests.e2e.program import CHEAP, SECRET_KEY, Done
from tests.isolation import logging_restored

Call = Callable[..., Done]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """``call("migrate", "--status", settings=…)`` is the command line, in an empty folder without other settings."""
    for name in list(os.environ):
        if name.startswith("HEADRACE_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)

    def run(*words: str, settings: Mapping[str, str] | None = None, stdin: str = "") -> Done:
        streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2)]
        code = 0
        with (
            pytest.MonkeyPatch.context() as patch,
            logging_restored(),
            contextlib.redirect_stdout(streams[0]),
            contextlib.redirect_stderr(streams[1]),
        ):
            patch.setattr(sys, "argv", ["headrace", *words])
            patch.setattr(sys, "stdin", io.StringIO(stdin))
            for name, value in (settings or {}).items():
                patch.setenv(name, value)
            try:
                app.main()
            except SystemExit as exc:
                code = exc.code if isinstance(exc.code, int) else int(exc.code is not None)
        out, err = (stream.buffer.getvalue().decode() for stream in streams)
        return Done(code, out, err)

    return run


@dataclass(frozen=True)
class Place:
    """A database for commands, and the settings that name it."""

    name: str
    app_url: str
    owner_url: str

    @property
    def settings(self) -> dict[str, str]:
        return {
            **CHEAP,
            **SECRET_KEY,
            "HEADRACE_DATABASE_URL": self.app_url,
            "HEADRACE_DATABASE_OWNER_URL": self.owner_url,
        }


@pytest.fixture
async def empty(server: TestServer, template: str, make_database: MakeDatabase) -> Place:
    """A database without a schema. The template stands for the roles, which belong to the whole server."""
    name = await make_database()
    return Place(name, server.url(name, role="headrace_app"), server.url(name))


@pytest.fixture
async def migrated(server: TestServer, template: str, make_database: MakeDatabase) -> Place:
    name = await make_database(template)
    return Place(name, server.url(name, role="headrace_app"), server.url(name))


@pytest.fixture
async def future(server: TestServer, migrated: Place) -> Place:
    """A database from which a newer program has removed something."""
    await server.run(
        "INSERT INTO headrace.schema_migrations (number, name, checksum, needs)"
        " VALUES (9999, 'teleport', repeat('0', 64), 9999)",
        database=migrated.name,
    )
    return migrated
