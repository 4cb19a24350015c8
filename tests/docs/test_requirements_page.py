"""Every line of the requirements has a test, and the check notices when it is gone."""

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
NEEDED = ("scripts/requirements", "docs/requirements.toml", "docs/reference/requirements.md")


def _check(root: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([root / NEEDED[0], "--check"], capture_output=True, text=True, check=False)


def test_the_page_is_what_the_tests_say() -> None:
    done = _check(ROOT)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_line_without_a_test_fails_the_check(tmp_path: Path) -> None:
    for name in NEEDED:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    for path in ROOT.glob("tests/**/test_*.py"):
        copied = tmp_path / path.relative_to(ROOT)
        copied.parent.mkdir(parents=True, exist_ok=True)
        copied.write_text(path.read_text("utf-8").replace("S-" + "08", "S-xx"), "utf-8")
    done = _check(tmp_path)
    assert done.returncode == 1
    assert "S-" + "08 is named by no test" in done.stderr
