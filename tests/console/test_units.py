"""The console's own logic, by Vitest."""

import subprocess
from pathlib import Path

import pytest

from tests.missing_programs import missing

ROOT = Path(__file__).parents[2]


@pytest.mark.long
def test_the_logic_of_the_console_holds() -> None:
    if not (ROOT / "console" / "node_modules" / ".installed-tools").exists():
        pytest.skip(missing("the console's tools"))
    done = subprocess.run(["scripts/console", "test"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
