"""The site under chaos: a PostgreSQL of its own, and the product's real processes around it, kept up."""

import asyncio
import os
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.chaos.program import ADDRESS, JOURNAL
from tests.e2e.program import CHEAP, SECRET_KEY, Program
from tests.memory import room
from tests.races.engine_stand import ROOT, Line, Mortal

LEASE = 2.0
DISK = 1024 * 1024**2
SETTINGS = {
    **CHEAP,
    **SECRET_KEY,
    "HEADRACE_WORKER_LEASE": f"{LEASE:.0f}s",
    "HEADRACE_WORKER_POLL_INTERVAL": "300ms",
    "HEADRACE_WORKER_SHUTDOWN_TIMEOUT": "5s",
    "HEADRACE_SCHEDULER_POLL_INTERVAL": "500ms",
    "HEADRACE_SCHEDULER_MISFIRE_AFTER": "10s",
    "HEADRACE_AUDIT_SEAL_INTERVAL": "3s",
    "HEADRACE_API_RATE_LIMIT": "1000000",
    "HEADRACE_API_RATE_BURST": "1000000",
    "HEADRACE_PAYMENT_ORDER_LIFETIME": "1m",  # then those that were closed are asked about once more
    "HEADRACE_WEBHOOK_LOCAL_TARGETS": "true",
    "HEADRACE_WEBHOOK_RETRY_DELAYS": "1s,2s,3s",
    "HEADRACE_REMOVAL_PROCESSES": "0",
    "HEADRACE_FILES_INSPECTORS": "1",
    "HEADRACE_LOG_FORMAT": "json",
    "HEADRACE_TEST_TRACEBACK": "1",  # of what should not have happened
}
# Tables of the run's own.
TABLES = """
CREATE TABLE books.orders (id text PRIMARY KEY, task_id text NOT NULL);
GRANT SELECT, INSERT ON books.orders TO headrace_app;
"""
# The trigger makes commits slow while ``switches`` says so: what waits there can be cut off.
SLOW_COMMITS = """
CREATE TABLE books.switches (share float8 NOT NULL, seconds float8 NOT NULL);
INSERT INTO books.switches VALUES (0, 0);
GRANT SELECT ON books.switches TO headrace_app;
CREATE FUNCTION books.dawdle() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_sleep(seconds) FROM books.switches WHERE random() < share;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER dawdle AFTER INSERT OR UPDATE ON headrace.tasks DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION books.dawdle();
"""


@contextmanager
def small_disk() -> Iterator[tuple[Path, bool]]:
    """A folder on a file system of its own that can be filled, where one may be mounted; says whether it was."""
    folder = Path(tempfile.mkdtemp(prefix="hr-chaos-", dir=room())).resolve()
    folder.chmod(0o755)
    words = ["mount", "-t", "tmpfs", "-o", f"size={DISK},mode=755", "headrace-chaos", str(folder)]
    mounted = os.geteuid() == 0 and subprocess.run(words, capture_output=True, check=False).returncode == 0
    try:
        yield folder, mounted
    finally:
        if mounted:
            subprocess.run(["umount", str(folder)], capture_output=True, check=False)
        subprocess.run(["rm", "-rf", str(folder)], check=False)


@dataclass
class Role:
    """So many processes of one command. ``stopped`` ones are frozen until that moment."""

    words: tuple[str, ...]
    count: int
    settings: Mapping[str, str]
    logs: Path
    programs: list[Program] = field(default_factory=list)
    stopped: dict[Program, float] = field(default_factory=dict)

    def keep_up(self) -> list[Program]:
        """Start what is missing, wake who has slept enough; gives those that ended by themselves."""
        for program in [each for each, until in self.stopped.items() if time.monotonic() >= until]:
            self.wake(program)
        fallen = [each for each in self.programs if not each.running]
        for program in fallen:
            self.programs.remove(program)
        while len(self.programs) < self.count:
            self.programs.append(Program(*self.words, folder=ROOT, settings=self.settings))
        return fallen

    def kill(self, program: Program) -> None:
        self.stopped.pop(program, None)
        self.programs.remove(program)
        program.kill()
        self.close(program)

    def close(self, program: Program) -> None:
        """Keep what it said, for those who look for the reason."""
        (self.logs / f"{self.words[0]}-{program.process.pid}.log").write_text(program.out + program.err)
        program.close()

    def freeze(self, program: Program, seconds: float) -> None:
        program.process.send_signal(signal.SIGSTOP)
        self.stopped[program] = time.monotonic() + seconds

    def wake(self, program: Program) -> None:
        del self.stopped[program]
        program.process.send_signal(signal.SIGCONT)

    @property
    def awake(self) -> list[Program]:
        return [each for each in self.programs if each not in self.stopped and each.running]


@dataclass
class Ambush:
    """The API that gets the next request of this step is killed so long after it was sent."""

    step: str
    delay: float
    victim: Program | None = None


class Site:
    """Half of the workers and schedulers reach the database over a line that can be cut; the rest directly."""

    def __init__(
        self, mortal: Mortal, line: Line, logs: Path, *, home: Path, disk: Path | None, more: Mapping[str, str]
    ) -> None:
        self.mortal = mortal
        self.line = line
        self.disk = disk
        self.files = home / "files"
        self.ambush: Ambush | None = None
        self._more = {**more, "HEADRACE_FILES_URL": str(self.files), "HEADRACE_DATA_DIR": str(home / "data")}
        self.journal = logs / "journal"
        self.journal.touch()
        self.fallen: Counter[str] = Counter()
        worker, scheduler = ("worker", "tests.chaos.program:registry", "--concurrency", "8"), ("scheduler",)
        direct, over_line = self.settings(mortal.url), self.settings(line.url)
        remover, media = ("worker", "--queues", "media"), {"HEADRACE_REMOVAL_PROCESSES": "1"}
        self.roles = {
            "api": [Role(("api",), 1, direct, logs), Role(("api",), 1, over_line, logs)],
            "worker": [Role(worker, 2, direct, logs), Role(worker, 1, over_line, logs)],
            "scheduler": [Role(scheduler, 1, direct, logs), Role(scheduler, 1, over_line, logs)],
            "relay": [Role(("relay",), 1, direct, logs), Role(("relay",), 1, over_line, logs)],
            "media": [Role(remover, 1, {**direct, **media}, logs)],
        }

    def settings(self, url: str) -> dict[str, str]:
        return {**SETTINGS, **self._more, "HEADRACE_DATABASE_URL": url, JOURNAL: str(self.journal), ADDRESS: url}

    def each(self, *names: str) -> list[Role]:
        return [role for name in names or self.roles for role in self.roles[name]]

    def apis(self) -> dict[str, Program]:
        """The APIs that have said where they listen."""
        found = [program for role in self.each("api") for program in role.awake if "API at" in program.err]
        return {program.url(within=0): program for program in found}

    def databases(self) -> list[str]:
        return [self.mortal.url, self.line.url]

    def spring(self, step: str, url: str) -> None:
        """A request of this step is about to be sent there: perhaps somebody waits for it."""
        if self.ambush is not None and self.ambush.step == step and self.ambush.victim is None:
            self.ambush.victim = self.apis().get(url)

    async def keep_up(self) -> None:
        while True:
            for role in self.each():
                for program in role.keep_up():
                    said = [line for line in program.err.splitlines() if '"event": "process.failed"' in line]
                    why = (said or program.err.splitlines() or ["(nothing said)"])[-1]
                    self.fallen[f"{role.words[0]} exited with {program.process.returncode}: {why[:300]}"] += 1
                    role.close(program)
            await asyncio.sleep(0.1)

    def heal(self) -> None:
        """Nothing is harmed any more; what was killed is started by ``keep_up``."""
        self.line.dead, self.line.delay = False, 0.0
        if self.disk is not None:
            (self.disk / "ballast").unlink(missing_ok=True)
        for role in self.each():
            for program in list(role.stopped):
                role.wake(program)

    def end(self) -> dict[str, int]:
        """Stop everything in good order; gives how many ended with each status."""
        programs = [(role, program) for role in self.each() for program in role.programs]
        ends: Counter[str] = Counter()
        for _, program in programs:
            if program.running:
                program.process.send_signal(signal.SIGTERM)
        for role, program in programs:
            try:
                ends[f"{role.words[0]} ended with {program.process.wait(30)}"] += 1
            except subprocess.TimeoutExpired:
                ends[f"{role.words[0]} did not end within 30 s"] += 1
            role.close(program)
        return dict(ends)

    def left_running(self, within: float = 15) -> list[str]:
        """Processes of this run that outlive it, such as children of a worker that was killed; they have a moment."""
        deadline = time.monotonic() + within
        while (found := self._ours()) and time.monotonic() < deadline:
            time.sleep(0.2)
        return found

    def _ours(self) -> list[str]:
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.environ().get(JOURNAL) == str(self.journal) and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(" ".join(process.cmdline())[:200])
        return found
