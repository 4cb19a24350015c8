"""The base install is enough for the client, the registry, a worker, `headrace.testing` and commands with --url.

The fast tests hide every library outside the base from a process of this environment; the slow one builds the wheel and
installs the base into an empty environment. `import headrace` in 2026 brought 46 packages, FastAPI among them.
"""

import asyncio
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib import metadata
from pathlib import Path

import pytest

from headrace.database import Database
from tests.conftest import ROOT

MAX_PACKAGES = 30
SERVER_ONLY = {"argon2-cffi", "cryptography", "fastapi", "multipart", "obstore", "starlette", "uvicorn"}

IMPORTS = """\
import headrace
import headrace.testing
for name in headrace.__all__:
    getattr(headrace, name)
"""
PROGRAM = """\
from headrace import Registry, TaskContext

registry = Registry()


@registry.task("greet")
async def greet(context: TaskContext, payload: dict[str, str]) -> str:
    return "Hello " + payload["name"]
"""
SUBMIT = """\
import asyncio
import os

from headrace import Headrace
from shop import registry


async def main() -> None:
    async with Headrace(os.environ["HEADRACE_DATABASE_URL"], registry) as headrace:
        task = await headrace.submit("greet", {"name": "Ada"})
        print((await headrace.wait(task)).result)


asyncio.run(main())
"""
HIDING = """\
import sys
from importlib.machinery import PathFinder


class Visible:
    find_distributions = PathFinder.find_distributions

    @staticmethod
    def find_spec(name, path=None, target=None):
        return None if name.partition(".")[0] in HIDDEN else PathFinder.find_spec(name, path, target)


sys.meta_path[:] = [Visible if finder is PathFinder else finder for finder in sys.meta_path]
"""


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def base_packages() -> set[str]:
    """The base of Headrace and all that it requires, without any extra of ours."""
    found: set[str] = set()
    waiting = ["headrace"]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        try:
            requires = metadata.requires(name) or []
        except metadata.PackageNotFoundError:  # for another system or version of Python
            continue
        found.add(name)
        waiting += [canonical(re.split(r"[^\w.-]", line)[0]) for line in requires if "extra ==" not in line]
    return found


class Server(BaseHTTPRequestHandler):
    """Answers as an API without tasks."""

    def do_GET(self) -> None:
        body = json.dumps({"items": [], "next_cursor": None}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None: ...  # noqa: A002 - the base class's name


@pytest.fixture
def api() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Server) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def base(tmp_path: Path) -> "Program":
    """This environment's Python, which finds none of the libraries outside the base."""
    kept = base_packages()
    hidden = {
        module
        for module, names in metadata.packages_distributions().items()
        if not kept & {canonical(name) for name in names}
    }
    folder = tmp_path / "hiding"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(f"HIDDEN = {sorted(hidden)!r}\n{HIDING}")
    return Program(Path(sys.executable), tmp_path, str(folder))


class Program:
    def __init__(self, python: Path, folder: Path, path: str = "") -> None:
        self.python = python
        self._folder = folder
        (folder / "shop.py").write_text(PROGRAM)
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
        self.environment = kept | {"PYTHONPATH": os.pathsep.join(filter(None, (path, str(folder))))}

    def run(self, *words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [self.python, *words],
            cwd=self._folder,
            env=self.environment | environment,
            capture_output=True,
            text=True,
            check=False,
        )

    async def run_worker(self, db: Database, database_url: str) -> object:
        """The result of a task that this program's worker has run."""
        worker = await asyncio.create_subprocess_exec(
            *(str(self.python), "-m", "headrace", "worker", "shop:registry"),
            cwd=self._folder,
            env=self.environment | {"HEADRACE_DATABASE_URL": database_url},
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            while not await db.fetch_alone("SELECT FROM headrace.task_types WHERE name = 'greet'"):
                assert worker.returncode is None, (await worker.communicate())[1].decode()
                await asyncio.sleep(0.05)
            done = await asyncio.to_thread(self.run, "-c", SUBMIT, HEADRACE_DATABASE_URL=database_url)
            assert done.returncode == 0, done.stderr
            return done.stdout.strip()
        finally:
            if worker.returncode is None:
                worker.terminate()
            await worker.communicate()


def test_the_base_has_no_library_of_the_server() -> None:
    packages = base_packages()
    assert not packages & SERVER_ONLY
    assert len(packages) <= MAX_PACKAGES, sorted(packages)


def test_the_base_imports_every_public_name(base: Program) -> None:
    done = base.run("-c", IMPORTS)
    assert done.returncode == 0, done.stderr


async def test_a_worker_needs_the_base_only(base: Program, db: Database, database_url: str) -> None:
    assert await base.run_worker(db, database_url) == "Hello Ada"


@pytest.mark.parametrize("json_option", [(), ("--json",)], ids=["table", "json"])
def test_commands_with_url_need_the_base_only(base: Program, api: str, json_option: tuple[str, ...]) -> None:
    done = base.run("-m", "headrace", "tasks", "list", "--url", api, "--key", "hrk_x", *json_option)
    assert (done.returncode, done.stderr) == (0, "")


def test_errors_of_commands_with_url_need_the_base_only(base: Program) -> None:
    done = base.run("-m", "headrace", "tasks", "list", "--url", "http://127.0.0.1:9", "--key", "hrk_x", "--json")
    assert done.returncode == 7
    assert json.loads(done.stdout)["status"] == 503


@pytest.mark.parametrize("words", [("api",), ("up",), ("webhooks", "listen")], ids=" ".join)
def test_one_line_names_the_missing_extra(base: Program, words: tuple[str, ...]) -> None:
    done = base.run("-m", "headrace", *words)
    assert done.returncode == 7
    [line] = done.stderr.splitlines()
    assert re.fullmatch(
        r"headrace: This needs \w+ of the extra `server` \(the API, .*\), which is not installed: "
        r"run `pip install .*`\.",
        line,
    )


@pytest.mark.slow  # builds the wheel and downloads 29 packages
async def test_the_wheel_alone_runs_a_worker(tmp_path: Path, api: str, db: Database, database_url: str) -> None:
    build = [sys.executable, "-m", "build", "--wheel", "--outdir", str(tmp_path), str(ROOT)]
    built = subprocess.run(
        build,
        env=os.environ | {"HEADRACE_SKIP_CONSOLE": "1", "HEADRACE_SKIP_WEIGHTS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if "ConnectionError" in built.stderr + built.stdout or "No matching distribution" in built.stderr + built.stdout:
        pytest.skip("no package index can be reached")
    assert built.returncode == 0, built.stdout + built.stderr
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    base = Program(tmp_path / "venv" / "bin" / "python", tmp_path)
    [wheel] = tmp_path.glob("*.whl")
    install = ("-m", "pip", "install", "--quiet", "--constraint", str(constraints(tmp_path)), str(wheel))
    installed = base.run(*install, **{name: value for name, value in os.environ.items() if name.startswith("PIP_")})
    assert installed.returncode == 0, installed.stderr
    listed = json.loads(base.run("-m", "pip", "list", "--format", "json").stdout)
    names = {canonical(each["name"]) for each in listed} - {"pip", "setuptools", "wheel"}
    assert names <= base_packages()

    assert base.run("-c", IMPORTS).returncode == 0
    assert await base.run_worker(db, database_url) == "Hello Ada"
    done = base.run("-m", "headrace", "tasks", "list", "--url", api, "--key", "hrk_x")
    assert (done.returncode, done.stderr) == (0, "")


def constraints(folder: Path) -> Path:
    """The locked versions, without hashes: a wheel that was just built has none."""
    file = folder / "constraints.txt"
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    file.write_text("\n".join(line.removesuffix("\\").strip() for line in lines if re.match(r"[a-zA-Z0-9]", line)))
    return file
