"""The console's own logic, by Vitest."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_the_logic_of_the_console_holds() -> None:
    if not (ROOT / "console" / "node_modules" / ".installed-tools").exists():
        pytest.skip("the console's tools are missing: run make setup-dev with the network there")
    done = subprocess.run(["scripts/console", "test"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
