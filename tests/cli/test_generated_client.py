"""A client that an independent generator makes of our description: complete, typed, and understood by a real API.

The generator is openapi-python-client, in ``.venv/generator``; the client runs in a process of its own.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE, STDOUT

import httpx2
import pytest

from tests.cli.test_afar import Headrace, key, known, on_database, url
from tests.conftest import ROOT
from tests.missing_programs import missing

__all__ = ["key", "known", "on_database", "url"]

GENERATOR = ROOT / ".venv" / "generator"
SCOPES = "admin,tasks:read,tasks:write,schedules:read,schedules:write,locks:read,locks:write"
# What it says of answers that are no JSON: they come as bytes.
BYTES_ONLY = re.compile(r"Unsupported content_type (image/(png|webp|jpeg)|application/zip)")

PROGRAM = """
import sys

from generated import AuthenticatedClient
from generated.api.locks import acquire_lock, release_lock, renew_lock
from generated.api.schedules import create_schedule, get_schedule_statistics
from generated.api.tasks import get_task, list_tasks, submit_task
from generated.models import (
    AcquireIn, GrantOut, LockOut, PageTaskItemOut, ReleaseIn, RenewLockIn, ScheduleIn, ScheduleOut,
    ScheduleStatisticsOut, SubmitIn, TaskOut,
)

client = AuthenticatedClient(base_url=sys.argv[1], token=sys.argv[2], raise_on_unexpected_status=True)

submitted = submit_task.sync(client=client, body=SubmitIn(type_="greet", payload={"name": "Ada"}))
assert isinstance(submitted, TaskOut), submitted
read = get_task.sync(submitted.id, client=client)
assert isinstance(read, TaskOut)
assert (read.id, read.type_) == (submitted.id, "greet")
page = list_tasks.sync(client=client)
assert isinstance(page, PageTaskItemOut)
assert [task.id for task in page.items] == [submitted.id]

granted = acquire_lock.sync(client=client, body=AcquireIn(key="reports", ttl_seconds=30))
assert isinstance(granted, GrantOut), granted
renewed = renew_lock.sync(client=client, body=RenewLockIn(key="reports", token=granted.token, ttl_seconds=600))
assert isinstance(renewed, LockOut), renewed
assert renewed.fence == granted.fence
assert renewed.expires_at > granted.expires_at
release_lock.sync_detailed(client=client, body=ReleaseIn(key="reports", token=granted.token))

made = create_schedule.sync(client=client, body=ScheduleIn(name="nightly", type_="greet", cron="0 2 * * *"))
assert isinstance(made, ScheduleOut), made
statistics = get_schedule_statistics.sync(made.id, client=client)
assert isinstance(statistics, ScheduleStatisticsOut)
assert statistics.total_executions == 0
print("7 calls")
"""


@pytest.fixture
def api_key(on_database: Headrace, key: str) -> str:
    assert key
    return on_database("keys", "create", "generated", "--user", "ada", "--scope", SCOPES).out.strip()


@pytest.mark.slow
def test_a_generated_client_has_every_route_is_typed_and_works(url: str, api_key: str, tmp_path: Path) -> None:
    if not GENERATOR.is_dir():
        pytest.skip(missing("openapi-python-client"))
    document = httpx2.get(f"{url}/openapi.json", timeout=60).json()
    (tmp_path / "openapi.json").write_text(json.dumps(document))
    (tmp_path / "generator.yml").write_text("post_hooks: []\n")
    (tmp_path / "program.py").write_text(PROGRAM)
    words = ("openapi_python_client", "generate", "--path", "openapi.json", "--config", "generator.yml")
    said = run("-m", *words, "--meta", "none", "--output-path", "generated", folder=tmp_path, packages=GENERATOR)
    # Each remark names the route or the schema that was left out, and why.
    remarks = [each for each in re.split(r"\n(?=WARNING|ERROR|Unable)", said) if re.match("WARNING|ERROR|Unable", each)]
    assert [each for each in remarks if not BYTES_ONLY.search(each)] == []
    routes = {operation["operationId"] for methods in document["paths"].values() for operation in methods.values()}
    assert routes == {file.stem for file in (tmp_path / "generated" / "api").glob("*/[a-z]*.py")}
    run("-m", "mypy", "--strict", "generated", "program.py", folder=tmp_path)
    assert run("program.py", url, api_key, folder=tmp_path) == "7 calls\n"


def run(*words: str, folder: Path, packages: Path | None = None) -> str:
    """What a Python prints, with these packages before those of the tests."""
    environment = {**os.environ, "PYTHONPATH": "." if packages is None else str(packages), "COLUMNS": "500"}
    command = [sys.executable, *words]
    ran = subprocess.run(
        command, cwd=folder, env=environment, stdout=PIPE, stderr=STDOUT, text=True, timeout=300, check=False
    )
    assert ran.returncode == 0, ran.stdout
    return ran.stdout
