"""What ``headrace init`` writes passes its own tests and ``mypy --strict``; the how-to's files fit into it.

With a database and a worker these are the tests of ``headrace.testing.fixtures``, too.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Call, call
from tests.conftest import ROOT, TestServer

__all__ = ["call"]

_FILE = re.compile(r"^```python\n# ((?:shop|tests)/\S+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_TYPO = """\
from headrace import Registry, TaskContext

registry = Registry()


@registry.task("greet", max_atempts=3)
async def greet(context: TaskContext, payload: dict[str, str]) -> str:
    return payload["name"]
"""


@pytest.fixture
def project(call: Call, tmp_path: Path) -> Path:
    made = call("init", "shop")
    assert (made.code, made.err) == (0, "")
    assert made.out.endswith("Now: cd shop && headrace up --app shop.tasks:registry\n")
    return tmp_path / "shop"


def run(project: Path, *words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    # Nothing of this project's own tests is to help: not its plugins, not its folder.
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
    return subprocess.run(
        [sys.executable, "-m", *words], cwd=project, env=kept | environment, capture_output=True, text=True, check=False
    )


def test_its_tests_and_those_of_the_how_to_pass(project: Path, server: TestServer, template: str) -> None:
    files = _FILE.findall((ROOT / "docs/howto/test-your-tasks.md").read_text())
    assert [name for name, _ in files] == [
        "shop/reports.py",
        "tests/test_reports.py",
        "shop/payments.py",
        "tests/test_payments.py",
    ]
    for name, text in files:
        (project / name).write_text(text)
    done = run(
        project,
        *("pytest", "-q", "-W", "error", "-p", "no:cacheprovider"),
        HEADRACE_TEST_DATABASE_URL=server.superuser_url,
        PYTEST_DISABLE_PLUGIN_AUTOLOAD="1",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "9 passed" in done.stdout


@pytest.mark.slow  # it reads all of ours
def test_mypy_finds_a_misspelt_option_and_nothing_else(project: Path) -> None:
    (project / "shop" / "typo.py").write_text(_TYPO)
    done = run(project, "mypy", "--no-error-summary", f"--cache-dir={ROOT / '.pytest_cache' / 'mypy'}")
    assert done.returncode == 1, done.stdout + done.stderr
    errors = [line for line in done.stdout.splitlines() if ": error: " in line]
    assert errors == [
        'shop/typo.py:6: error: Unexpected keyword argument "max_atempts" for "task" of "Registry"; '
        'did you mean "max_attempts"?  [call-arg]'
    ]


def test_nothing_is_overwritten_and_names_are_names(call: Call, project: Path) -> None:
    (project / "README.md").write_text("mine")
    again = call("init", "shop")
    assert again.code == 4
    assert "would be overwritten" in again.err
    assert (project / "README.md").read_text() == "mine"
    for name in ("json", "class", "two words", "headrace"):
        assert call("init", "elsewhere", "--name", name).code == 2
    assert not (project.parent / "elsewhere").exists()
    assert call("init", "elsewhere", "--name", "web-shop").code == 0
    assert (project.parent / "elsewhere" / "web_shop" / "tasks.py").exists()
