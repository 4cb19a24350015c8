"""The previous release and this one side by side on one database, under load, up and back. W-19."""

import io
import json
import subprocess
import tarfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import psycopg
import pytest

from headrace.embedded_postgres import Server
from tests.conftest import ROOT
from tests.e2e.conftest import MakeFolder, address
from tests.e2e.program import CHEAP, SECRET_KEY, environment, eventually

# The newest commit that was released before this tree: move it with each release.
PREVIOUS = "1adbbc8c"
SHOP = """
from headrace import Registry, TaskContext

registry = Registry()


@registry.task("work", max_attempts=3)
async def work(context: TaskContext, payload: dict) -> int:
    return payload["number"]
"""
ROLES = {"worker": ("worker", "shop:registry"), "scheduler": ("scheduler",), "relay": ("relay",)}
STARTED = {"worker": "worker.entered", "scheduler": "firing schedules", "relay": "relaying events"}
BUSY = 7  # what `headrace migrate` exits with
# A release that only adds, as its `headrace migrate` leaves the database.
NEXT_RELEASE = (
    "ALTER TABLE headrace.tasks ADD COLUMN of_the_next_release text",
    "INSERT INTO headrace.schema_migrations (number, name, checksum, needs) "
    "SELECT 9999, 'next', repeat('0', 64), max(number) FROM headrace.schema_migrations",
)
COUNTS = """
SELECT count(*) FILTER (WHERE status = 'SUCCEEDED'), count(*), coalesce(sum(retries), 0)
FROM headrace.tasks WHERE task_type = 'work'
"""


class Release:
    """One release's programs against the database of the test."""

    def __init__(self, tree: Path, folder: Path, settings: dict[str, str], port: int) -> None:
        self._headrace = tree / ".venv" / "bin" / "headrace"
        self._folder = folder
        self._environment = environment({**settings, "HEADRACE_API_PORT": str(port), "PYTHONPATH": str(folder)})
        self.url = f"http://127.0.0.1:{port}"
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def run(self, *words: str, busy: bool = False) -> str | None:
        """What it prints; with ``busy`` None where it gave up because a table was busy."""
        done = subprocess.run(
            [self._headrace, *words],
            cwd=self._folder,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if busy and done.returncode == BUSY:
            return None
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self, *roles: str) -> None:
        for role in roles or ("api", *ROLES):
            with (self._folder / f"{role}.log").open("ab") as log:
                words = ROLES.get(role, (role,))
                self._running[role] = subprocess.Popen(
                    [self._headrace, *words], cwd=self._folder, env=self._environment, stdout=log, stderr=log
                )
        assert eventually(self._is_ready), self.logs()

    def begin(self) -> "Load":
        """Start everything, with an administrator who submits."""
        password = json.loads(self.run("admin", "create", "root", "--json") or "")["password"]
        self.start()
        login = httpx2.post(f"{self.url}/v1/auth/login", json={"username": "root", "password": password}, timeout=60)
        return Load(login.json()["token"], self.url)

    def _is_ready(self) -> bool:
        try:
            return httpx2.get(f"{self.url}/readyz").is_success
        except httpx2.TransportError:
            return False

    def check(self) -> None:
        ended = {role: process.returncode for role, process in self._running.items() if process.poll() is not None}
        assert not ended, self.logs()

    def kill(self, role: str) -> None:
        process = self._running.pop(role)
        process.kill()
        process.wait()

    def stop(self) -> None:
        for process in self._running.values():
            process.terminate()
        codes = {role: process.wait(60) for role, process in self._running.items()}
        self._running.clear()
        assert not any(codes.values()), (codes, self.logs())

    def end(self) -> None:
        for process in self._running.values():
            process.kill()
            process.wait()

    def logs(self) -> str:
        return "\n".join(path.read_text()[-2000:] for path in sorted(self._folder.glob("*.log")))


class Load:
    """Submits over REST without a pause; every answer but 201 is an error."""

    def __init__(self, token: str, *urls: str) -> None:
        self.urls = urls
        self.taken: set[str] = set()
        self.errors: list[str] = []
        self._token = token
        self._over = threading.Event()

    @contextmanager
    def running(self) -> Iterator[None]:
        threads = [threading.Thread(target=self._submit, args=(number,)) for number in range(2)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._over.set()
            for thread in threads:
                thread.join()

    def _submit(self, own: int) -> None:
        with httpx2.Client(headers={"Authorization": f"Bearer {self._token}"}, timeout=60) as client:
            number = 0
            while not self._over.is_set():
                number += 1
                url = self.urls[number % len(self.urls)]
                body = {"type": "work", "title": "work", "payload": {"number": number}}
                try:
                    key = {"Idempotency-Key": f"{own}-{number}"}
                    answer = client.post(f"{url}/v1/tasks", json=body, headers=key)
                except httpx2.TransportError as exc:
                    self.errors.append(f"{url}: {exc!r}")
                    continue
                if answer.status_code == 201:
                    self.taken.add(answer.json()["id"])
                else:
                    self.errors.append(f"{url}: {answer.status_code} {answer.text}")

    def until_more(self, count: int) -> None:
        before = len(self.taken)
        assert eventually(lambda: len(self.taken) >= before + count or self.errors), "the load does not come through"
        assert not self.errors, self.errors[:5]


@pytest.fixture
def previous(make_folder: MakeFolder) -> Path:
    """The previous release, installed as its own scripts do."""
    packed = subprocess.run(["git", "archive", PREVIOUS], cwd=ROOT, capture_output=True, check=False)
    if packed.returncode != 0:
        pytest.skip(f"this clone does not have {PREVIOUS}: fetch its history")
    tree = make_folder() / "release"
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(tree)
    made = subprocess.run(
        ["scripts/setup", "light"],
        cwd=tree,
        env=environment({"HEADRACE_SKIP_CONSOLE": "1", "HEADRACE_SKIP_WEIGHTS": "1"}),
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode != 0:
        pytest.skip(f"its packages cannot be had: {made.stderr[-200:]}")
    return tree


def settings_for(server: Server, folder: Path) -> dict[str, str]:
    return {
        **CHEAP,
        **SECRET_KEY,
        "HEADRACE_DATABASE_URL": address(server, "headrace_service", "choose-another"),
        "HEADRACE_DATABASE_OWNER_URL": address(server, "headrace_migrator", "choose-one"),
        "HEADRACE_DATA_DIR": str(folder / "data"),
        "HEADRACE_API_RATE_LIMIT": "1000000",
        "HEADRACE_API_RATE_BURST": "1000000",
    }


def all_over(connection: "psycopg.Connection[tuple[int, ...]]") -> bool:
    succeeded, tasks, _ = connection.execute(COUNTS).fetchone() or (0, 1, 0)
    return bool(succeeded == tasks)


def newest_in(tree: Path) -> int:
    """The number of a release's newest migration."""
    return max(int(path.name[:4]) for path in (tree / "src" / "headrace" / "migrations").glob("[0-9]*.up.sql"))


def until_done(release: Release, *words: str) -> None:
    """Again while the load keeps a table busy: a migration gives up after seconds and changes nothing."""
    assert eventually(lambda: release.run(*words, busy=True) is not None, within=300), "always busy"


@pytest.mark.slow
def test_the_previous_release_runs_beside_this_one_up_and_back(
    previous: Path, make_folder: MakeFolder, debian: Server
) -> None:
    folder = make_folder()
    (folder / "shop.py").write_text(SHOP)
    settings = settings_for(debian, folder)
    old, new = (Release(tree, folder, settings, port) for tree, port in ((previous, 18181), (ROOT, 18182)))
    try:
        old.run("migrate")
        load = old.begin()
        with load.running():
            load.until_more(50)
            new.run("migrate")
            load.until_more(200)  # the old one alone on the new schema
            new.start()
            load.urls = (old.url, new.url)
            load.until_more(200)  # side by side
            load.urls = (old.url,)
            time.sleep(1)  # requests under way at the new one
            new.stop()
            load.until_more(200)  # back
            until_done(new, "migrate", "--down", "--to", str(newest_in(previous)), "--yes")
            load.until_more(200)  # with its own schema and functions
            old.check()
            until_done(new, "migrate")
            new.start()
            load.urls = (new.url,)
            time.sleep(1)
            old.check()
            old.stop()
            new.kill("worker")  # a crash beside the load
            new.start("worker")
            load.until_more(100)
            new.check()
        with psycopg.connect(debian.url_for_superuser, autocommit=True) as connection:
            assert eventually(lambda: all_over(connection), within=120), connection.execute(COUNTS).fetchone()
            assert (connection.execute(COUNTS).fetchone() or (0, 0))[1] == len(load.taken)
        new.stop()
    finally:
        old.end()
        new.end()


@pytest.mark.slow
def test_crashed_processes_of_this_release_start_again_beside_the_next_one(
    make_folder: MakeFolder, debian: Server
) -> None:
    """A process of the release before, once crashed, was lost until all were replaced: `schema_too_new`."""
    folder = make_folder()
    (folder / "shop.py").write_text(SHOP)
    this = Release(ROOT, folder, settings_for(debian, folder), 18183)
    try:
        this.run("migrate")
        load = this.begin()
        with load.running(), psycopg.connect(debian.url_for_superuser, autocommit=True) as connection:
            load.until_more(50)
            for statement in NEXT_RELEASE:
                connection.execute(statement)
            for role, said in STARTED.items():
                this.kill(role)
                this.start(role)
                log = folder / f"{role}.log"
                assert eventually(lambda log=log, said=said: log.read_text().count(said) == 2), this.logs()  # type: ignore[misc]
            load.until_more(100)
            this.check()
        with psycopg.connect(debian.url_for_superuser, autocommit=True) as connection:
            assert eventually(lambda: all_over(connection), within=120), connection.execute(COUNTS).fetchone()
        this.stop()
    finally:
        this.end()
