"""For the engine's races: a PostgreSQL that may be killed, a crew of worker processes, and somebody who harms them."""

import asyncio
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import asyncpg

from headrace import embedded_postgres, ids
from headrace.database import Database
from headrace.embedded_postgres import postmaster
from headrace.embedded_postgres.model import Layout
from headrace.errors import Unavailable
from headrace.tasks.catalog import KnownType
from headrace.tasks.followers import Followers
from headrace.tasks.model import TaskSpec
from headrace.tasks.submit import Submitter
from tests.clusters import copy_cluster, migrated_cluster
from tests.memory import room
from tests.races.engine_program import Options

ROOT = Path(__file__).parent.parent.parent

BOOKS = """
CREATE SCHEMA books;
CREATE TABLE books.counters (
  task_id text PRIMARY KEY, finishing integer NOT NULL DEFAULT 0, apart integer NOT NULL DEFAULT 0
);
CREATE TABLE books.attempts (task_id text, attempt integer, worker integer, claimed_at timestamptz, at timestamptz);
GRANT USAGE ON SCHEMA books TO headrace_app;
GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA books TO headrace_app;
"""


class Mortal:
    """A PostgreSQL of a test's own that syncs what it commits, and that its keeper brings back when it is killed."""

    def __init__(self, server: embedded_postgres.Server, home: Path) -> None:
        self.url = server.app_url
        self.superuser_url = server.superuser_url.removesuffix("/postgres") + "/headrace"
        self._layout = Layout(home)

    async def run(self, sql: str) -> None:
        connection = await asyncpg.connect(self.superuser_url)
        try:
            await connection.execute(sql)
        finally:
            await connection.close()

    @property
    def pid(self) -> int:
        """Of the postmaster."""
        running = postmaster.find(self._layout)
        assert running is not None
        return running.pid

    def kill(self, how: signal.Signals = signal.SIGKILL) -> int:
        """Kill the postmaster, or have it shut down fast (SIGINT) or at once (SIGQUIT); gives its process id."""
        pid = self.pid
        os.kill(pid, how)
        return pid


@contextmanager
def own_folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="hr-", dir=room())).resolve()
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@contextmanager
def mortal_server(where: Path | None = None) -> Iterator[Mortal]:
    with nullcontext(where) if where else own_folder() as folder:
        copy_cluster(migrated_cluster(), folder / "postgres")
        config = embedded_postgres.EmbeddedConfig(
            folder / "postgres", settings={"fsync": "on", "synchronous_commit": "on", "max_connections": "200"}
        )
        with embedded_postgres.attach(config) as server:
            mortal = Mortal(server, folder / "postgres")
            asyncio.run(mortal.run(BOOKS))
            yield mortal


class Program:
    """One worker process. ``harmed`` once we killed it; one that ends without that has failed by itself."""

    def __init__(self, options: Options, log: Path) -> None:
        self.harmed = False
        self.stopped = False
        self._marks = Path(options.marks)
        with log.open("ab") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", options.program, json.dumps(asdict(options))],
                cwd=ROOT,
                stdout=errors,
                stderr=errors,
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def has_worked(self) -> bool:
        """Whether a handler has run in it: one that is killed before that proves nothing."""
        return (self._marks / str(self.pid)).exists()

    def kill(self) -> float:
        """Kill it and wait until it is gone; gives the moment before the blow."""
        at = time.monotonic()
        self.harmed = True
        self.process.kill()
        self.process.wait(60)
        return at

    def freeze(self) -> None:
        self.stopped = True
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.stopped = False
        self.process.send_signal(signal.SIGCONT)

    def finish(self, within: float = 60) -> int:
        """Stop it in good order; gives its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(within)


@dataclass
class Crew:
    """So many worker processes, kept up."""

    options: Options
    log: Path
    programs: list[Program] = field(default_factory=list)
    buried: list[Program] = field(default_factory=list)

    def start(self, count: int) -> None:
        self.programs += [Program(self.options, self.log) for _ in range(count)]

    def kill(self, program: Program) -> float:
        """Kill one, and put another in its place."""
        at = program.kill()
        self.programs.remove(program)
        self.buried.append(program)
        self.start(1)
        return at

    def thaw(self) -> None:
        for program in self.programs:
            if program.stopped:
                program.thaw()

    @property
    def fallen(self) -> list[Program]:
        """Those that ended though nobody harmed them."""
        return [each for each in self.programs if each.process.poll() is not None and not each.harmed]

    def end(self) -> None:
        for program in self.programs:
            program.process.kill()
            program.process.wait(60)


@asynccontextmanager
async def crew(options: Options, log: Path, *, size: int) -> AsyncIterator[Crew]:
    team = Crew(options, log)
    try:
        team.start(size)
        yield team
    except BaseException as exc:
        exc.add_note(f"the workers' log ends:\n{log.read_text()[-8000:]}")
        raise
    finally:
        team.end()


class AnyType:
    """A catalog for a submitter without the code: every name is a type, limited by the payload's key if it has one."""

    constant = True

    async def check_registered(self, tx: object, name: str) -> None: ...

    async def get(self, tx: object, name: str) -> KnownType:  # noqa: ARG002
        return KnownType(
            name=name,
            queue="default",
            priority=0,
            max_attempts=1000,
            timeout_seconds=None,
            emits_events=False,
            check_payload=lambda payload: payload,
            limit_key="payload.key",
        )


ADD_COUNTERS = "INSERT INTO books.counters (task_id) SELECT unnest($1::text[]) ON CONFLICT DO NOTHING"


async def submit(
    db: Database, name: str, payloads: Sequence[Any], *, batch: int, counters: bool = False, **spec: Any
) -> list[str]:
    """Submit tasks in transactions of ``batch``, each again until the database has said that it has them."""
    submitter = Submitter(AnyType(), Followers())
    submitted: list[str] = []
    for start in range(0, len(payloads), batch):
        key = ids.new("req")
        specs = [
            TaskSpec(name, payload, idempotency_key=f"{key}-{number}", **spec)
            for number, payload in enumerate(payloads[start : start + batch])
        ]
        while True:
            try:
                async with db.transaction() as tx:
                    made = await submitter.submit_many(tx, specs, user_id=ids.SYSTEM_USER)
                    if counters:
                        await tx.execute(ADD_COUNTERS, made)
                break
            except Unavailable:  # perhaps it was committed all the same: the key finds out
                await asyncio.sleep(0.1)
        submitted += made
    return submitted


async def count_over(db: Database) -> int:
    over: int = (await db.fetch_alone("SELECT count(*) FROM headrace.tasks WHERE finished_at IS NOT NULL"))[0][0]
    return over


async def until_over(db: Database, count: int, *, within: float) -> float:
    """Wait until so many tasks are over; gives the seconds it took."""
    began = time.monotonic()
    while True:
        over = 0
        with suppress(Unavailable):
            over = await count_over(db)
        if over == count:
            return time.monotonic() - began
        if time.monotonic() - began > within:
            left = await db.fetch_alone(LEFT)
            raise AssertionError(f"{count - over} tasks are not over after {within:.0f} s: {[*map(dict, left)]}")
        await asyncio.sleep(0.05)


LEFT = """
SELECT q.*, w.id, w.ended_at, w.ending, now() - w.heartbeat_at AS silent_for, now() - q.claimed_at AS held_for
FROM headrace.task_queue AS q LEFT JOIN headrace.workers AS w ON w.number = q.worker
ORDER BY q.seq LIMIT 5
"""


async def harm(
    team: Crew, calm: asyncio.Event, *, choice: random.Random, lease: float, most: int | None = None
) -> None:
    """Kill and freeze at random, and kill at least one, and not more than ``most``: on a busy machine, where everything
    takes long, a storm would go on to kill whoever has just come up. A frozen one sleeps for up to two leases, so that
    some lose theirs and some do not."""
    thaw_at: dict[Program, float] = {}
    while not (calm.is_set() and team.buried):
        await asyncio.sleep(choice.uniform(0.1, 0.8))
        for program in [each for each, at in thaw_at.items() if time.monotonic() >= at]:
            del thaw_at[program]
            if program in team.programs:
                program.thaw()
        working = [each for each in team.programs if each.has_worked]
        if not working:
            continue
        victim = choice.choice(working)
        if not team.buried or (choice.random() < 0.4 and (most is None or len(team.buried) < most)):
            thaw_at.pop(victim, None)
            team.kill(victim)
        elif victim not in thaw_at:
            victim.freeze()
            thaw_at[victim] = time.monotonic() + choice.uniform(0.1, 2 * lease)
    team.thaw()


class Line:
    """The network between a program and its database. While it is dead nothing arrives, and nobody is told; ``delay``
    makes it slow, and ``cut`` ends every connection at once."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname, parts.port
        self._parts = parts
        self.url = ""
        self.dead = False
        self.delay = 0.0
        self._ends: set[asyncio.StreamWriter] = set()
        self._carriers: set[asyncio.Task[None]] = set()

    def listen_at(self, port: int) -> None:
        user, _, _ = self._parts.netloc.rpartition("@")
        self.url = urlunsplit(self._parts._replace(netloc=f"{user}@127.0.0.1:{port}"))

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there_reader, there_writer = await asyncio.open_connection(self._host, self._port)
        except OSError:  # the database is away
            writer.close()
            return
        self._ends |= {writer, there_writer}
        for source, target in ((reader, there_writer), (there_reader, writer)):
            carrier = asyncio.create_task(self._carry(source, target))
            self._carriers.add(carrier)
            carrier.add_done_callback(self._carriers.discard)

    async def _carry(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(65_536):
                if self.delay:
                    await asyncio.sleep(self.delay)
                while self.dead:
                    await asyncio.sleep(0.02)
                target.write(data)
                await target.drain()
        target.close()
        self._ends.discard(target)

    def cut(self) -> int:
        """Break every connection, as a router that forgets them does; gives how many."""
        ends = list(self._ends)
        for end in ends:
            end.transport.abort()
        return len(ends) // 2

    async def close(self) -> None:
        for carrier in list(self._carriers):
            carrier.cancel()
        await asyncio.gather(*self._carriers, return_exceptions=True)


@asynccontextmanager
async def line_to(url: str) -> AsyncIterator[Line]:
    line = Line(url)
    listener = await asyncio.start_server(line.carry, "127.0.0.1", 0)
    line.listen_at(listener.sockets[0].getsockname()[1])
    try:
        yield line
    finally:
        listener.close()
        await line.close()
