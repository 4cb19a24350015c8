"""A command that only asks is over soon: it loads what it needs for that, and no more."""

import os
import subprocess
import sys

import pytest

from tests.cli.conftest import Place

PROGRAM = """
import sys
from headrace.cli.app import main

sys.argv = ["headrace", *sys.argv[1:]]
try:
    main()
except SystemExit as exc:
    assert exc.code in (None, 0, 7), exc.code
print(*sys.modules, file=sys.stderr)
"""
# Each of them takes from a tenth of the time that such a command has to all of it.
HEAVY = {
    "argon2", "cv2", "jsonschema", "numpy", "obstore", "onnxruntime", "prometheus_client",
    "pygments", "rich.progress", "uvicorn",
    "headrace.assembly.followers", "headrace.assembly.secret_key", "headrace.assembly.tasks",
}  # fmt: skip
MOST = {"database": 800, "server": 540}


@pytest.mark.parametrize("words", ["tasks list", "queues list", "workers", "executions list"])
@pytest.mark.parametrize("where", ["database", "server"])
def test_a_command_that_asks_loads_little(words: str, where: str, migrated: Place) -> None:
    nobody = {"HEADRACE_URL": "http://127.0.0.1:1", "HEADRACE_API_KEY": "k"}  # not there: it asks in vain
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words.split()],
        env={"PATH": os.environ["PATH"], **(migrated.settings if where == "database" else nobody)},
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(done.stderr.splitlines()[-1].split())
    assert "headrace.cli.app" in loaded
    assert not loaded & HEAVY
    assert len(loaded) < MOST[where], "many modules take as long as a heavy one"
    assert ("asyncpg" in loaded, "fastapi" in loaded) == (where == "database", where == "database")


# What a worker without a task has no use for: libraries of single tasks, of the API, and models of requests.
NOT_FOR_A_WORKER = {
    "argon2", "cryptography", "cv2", "fastapi", "h11", "httpcore2", "httpx2", "jsonschema", "numpy", "obstore",
    "onnxruntime", "PIL", "prometheus_client", "rich.progress", "starlette", "uvicorn",
    "headrace.tasks.schemas", "headrace.schedules.schemas",
}  # fmt: skip


def test_an_idle_worker_loads_nothing_of_single_tasks_and_of_the_api(migrated: Place) -> None:
    """Issue 35: the memory of an idle worker."""
    settings = {**migrated.settings, "HEADRACE_LOG_LEVEL": "INFO", "HEADRACE_SECRET_KEY": "0" * 64}
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "worker"],
        env={"PATH": os.environ["PATH"], **settings},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "worker.entered" in line:
                process.terminate()
                break
        loaded = set(process.stderr.read().splitlines()[-1].split())
        process.wait(30)
    assert "headrace.tasks.worker.loop" in loaded
    assert not loaded & NOT_FOR_A_WORKER
