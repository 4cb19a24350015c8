"""A worker, a scheduler, a relay or an API that is started while PostgreSQL restarts waits for it."""

import asyncio
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest

from tests.cli.conftest import Place
from tests.e2e.program import Program, eventually, patience
from tests.races.engine_stand import Line

PROGRAM = """
from headrace.tasks.registry import Registry

registry = Registry()

@registry.task("greet")
async def greet(context, payload): ...
"""
COMMANDS = [
    ("worker", "shop:registry"),
    ("worker", "shop:registry", "--processes", "2"),
    ("scheduler",),
    ("relay",),
    ("api",),
]
UP: dict[tuple[str, ...], str] = {
    ("scheduler",): "firing schedules",
    ("relay",): "relaying events",
    COMMANDS[-1]: "API at http://",
}
STARTING_UP = b"SFATAL\0VFATAL\0C57P03\0Mthe database system is starting up\0\0"


@contextmanager
def away(place: Place) -> Iterator[tuple[socket.socket, str]]:
    """An address where nobody listens yet, and the URL of the database there."""
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        parts = urlsplit(place.app_url)
        host = f"{parts.netloc.rpartition('@')[0]}@127.0.0.1:{door.getsockname()[1]}"
        yield door, urlunsplit(parts._replace(netloc=host))


@contextmanager
def started(words: tuple[str, ...], folder: Path, place: Place, url: str) -> Iterator[Program]:
    (folder / "shop.py").write_text(PROGRAM)
    program = Program(*words, folder=folder, settings={**place.settings, "HEADRACE_DATABASE_URL": url})
    try:
        assert eventually(lambda: "Waiting for it" in program.err or not program.running, within=patience(30))
        assert program.running, program.err
        yield program
    finally:
        program.close()


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
async def test_it_begins_when_the_database_is_back(words: tuple[str, ...], tmp_path: Path, migrated: Place) -> None:
    up = UP.get(words, "worker.entered")
    with away(migrated) as (door, url), started(words, tmp_path, migrated, url) as program:
        line = Line(migrated.app_url)
        back = await asyncio.start_server(line.carry, sock=door.dup())
        try:
            arrived = await asyncio.to_thread(
                eventually, lambda: up in program.err or not program.running, within=patience(40)
            )
            assert arrived, program.err
            assert program.running, program.err
            assert "cannot be reached: start it, or correct HEADRACE_DATABASE_URL. Waiting for it" in program.err
            program.process.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(program.process.wait, patience(30)) == 0
        finally:
            back.close()
            await line.close()


@pytest.mark.long
@pytest.mark.parametrize("words", [("scheduler",), COMMANDS[-1]], ids=" ".join)
async def test_it_begins_also_when_every_other_connection_is_refused(
    words: tuple[str, ...], tmp_path: Path, migrated: Place
) -> None:
    """An API and a scheduler exited when PostgreSQL was away at their start, or was only starting up."""
    line = Line(migrated.app_url)
    count = 0

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal count
        count += 1
        if count % 2 == 0:
            await line.carry(reader, writer)
            return
        await reader.read(8)  # whether TLS is wanted
        writer.write(b"N")
        await reader.read(1)
        writer.write(b"E" + (len(STARTING_UP) + 4).to_bytes(4) + STARTING_UP)
        writer.close()

    with away(migrated) as (door, url), started(words, tmp_path, migrated, url) as program:
        back = await asyncio.start_server(carry, sock=door.dup())
        try:
            up = UP[words]
            await asyncio.to_thread(eventually, lambda: up in program.err or not program.running, within=patience(60))
            assert program.running, program.err
            assert up in program.err, program.err
            program.process.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(program.process.wait, patience(30)) == 0
        finally:
            back.close()
            await line.close()


@pytest.mark.parametrize("words", [COMMANDS[0], *COMMANDS[2:]], ids=" ".join)
def test_ctrl_c_ends_the_waiting(words: tuple[str, ...], tmp_path: Path, migrated: Place) -> None:
    with away(migrated) as (_, url), started(words, tmp_path, migrated, url) as program:
        program.process.send_signal(signal.SIGINT)
        assert program.process.wait(patience(20)) == 130
