"""No test reads or writes the clone's own data: `make up`, Ctrl-C, `make test` in one folder."""

import io
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from headrace import logs, settings
from tests.isolation import logging_restored

ROOT = Path(__file__).parents[2]
RUBBISH = "rubbish that no test may read"
# A test that failed after `make up`: it read the archive heads in the clone's data folder.
BEFORE = "tests/admin/test_overview.py::test_the_trail_is_verified_and_the_first_flaw_named"


def test_a_test_has_an_empty_folder_and_no_settings(isolated: Path) -> None:
    assert Path.cwd() == isolated.resolve()
    assert list(isolated.iterdir()) == []
    assert settings.load().data_dir.resolve() == isolated.resolve() / ".headrace"
    assert [name for name in os.environ if name.startswith("HEADRACE_DA")] == []


def test_a_test_does_not_configure_the_logging_of_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that logs after the test would print "Logging error: I/O operation on closed file"."""
    handlers, log = logging.getLogger().handlers[:], logs.get("headrace.test_isolation")
    with logging_restored():
        monkeypatch.setattr(sys, "stderr", stream := io.StringIO())
        logs.configure(format="json")
        log.info("inside")
        written = stream.getvalue()
    log.info("outside")
    assert "inside" in written
    assert stream.getvalue() == written
    assert logging.getLogger().handlers == handlers


@pytest.mark.long
def test_fixtures_work_beside_a_data_folder_full_of_rubbish(tmp_path: Path) -> None:
    """The suite's fixtures, started where `make up` left unreadable data, settings and profiles."""
    data = tmp_path / ".headrace"
    for name in ("archive/heads/head.json", "files/x", "postgres/PG_VERSION", "secret_key", "first_password"):
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).write_text(RUBBISH)
    (tmp_path / "headrace.toml").write_text(RUBBISH)
    (tmp_path / "headrace").mkdir()
    (tmp_path / "headrace" / "profiles.toml").write_text(RUBBISH)
    before = _contents(tmp_path)
    environment = {
        **os.environ,
        "XDG_CONFIG_HOME": str(tmp_path),
        "HEADRACE_DATA_DIR": str(data),
        "HEADRACE_CONFIG": str(tmp_path / "headrace.toml"),
        "HEADRACE_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/nothing",
        "HEADRACE_PROFILE": RUBBISH,
    }
    environment.pop("PYTEST_XDIST_WORKER", None)
    tests = [f"{ROOT}/{BEFORE}", f"{ROOT}/tests/cli/test_times.py"]
    options = ["-q", "-n", "0", "-p", "no:cacheprovider", "--rootdir", str(ROOT), "-c", str(ROOT / "pyproject.toml")]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *tests],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert _contents(tmp_path) == before


def _contents(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}
