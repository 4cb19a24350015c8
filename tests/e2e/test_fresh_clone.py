"""A clone and `make up`: what somebody new does first. It needs Python, git, make and a package index, and no more."""

import logging
import os
import pwd
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from headrace.embedded_postgres.account import Account, become
from tests.e2e.conftest import MakeFolder, Start
from tests.e2e.program import Program, is_deserted, log_in, patience, running_in

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

log = logging.getLogger(__name__)  # `pytest --log-cli-level=INFO` shows the times

ROOT = Path(__file__).parents[2]
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
# What a `make test-slow` or an activated environment around us would lend to the clone.
_NOT_INHERITED = ("HEADRACE_", "MAKE", "MFLAGS", "VIRTUAL_ENV", "PYTHON", "COV", "PYTEST", "GIT_", "XDG_")


class Newcomer:
    """Somebody with a home of their own in which nothing is yet."""

    def __init__(self, base: Path, account: Account | None) -> None:
        self.account = account
        self.home, self.temporary, self.clone = base / "home", base / "tmp", base / "a clone"
        for folder in (self.home, self.temporary):
            folder.mkdir()
            self.own(folder)

    def own(self, folder: Path) -> None:
        """Give a folder with all that is in it to them."""
        if self.account is not None:
            for path in (folder, *folder.rglob("*")):
                os.chown(path, self.account.uid, self.account.gid, follow_symlinks=False)

    @property
    def variables(self) -> dict[str, str]:
        ours = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_INHERITED)}
        chosen = {"HOME": str(self.home), "TMPDIR": str(self.temporary)}
        if self.account is not None:
            return {**ours, **chosen, "PATH": SYSTEM_PATH}
        # Where packages come from is a matter of the machine; the caches begin empty all the same.
        config = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
        # npm reads its own from the home that we do not lend.
        npm = os.environ.get("NPM_CONFIG_USERCONFIG") or str(Path.home() / ".npmrc")
        return {**ours, **chosen, "XDG_CONFIG_HOME": config, "NPM_CONFIG_USERCONFIG": npm}

    def run(self, *words: str, within: float = 300) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            words,
            cwd=self.clone,
            env=self.variables,
            capture_output=True,
            text=True,
            timeout=within,
            check=False,
            preexec_fn=become(self.account),
        )


@pytest.fixture(params=["ourselves", "an ordinary user"])
def newcomer(request: pytest.FixtureRequest, make_folder: MakeFolder) -> Newcomer:
    if shutil.which("git") is None or shutil.which("make") is None or not (ROOT / ".git").exists():
        pytest.skip("this is no checkout, or git or make is not here")
    account = None
    if request.param == "an ordinary user":
        if os.geteuid() != 0:
            pytest.skip("we are an ordinary user anyway")
        entry = pwd.getpwnam("nobody")
        account = Account(entry.pw_uid, entry.pw_gid, entry.pw_name)
        python = shutil.which("python3", path=SYSTEM_PATH)
        probe = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))"
        if python is None or subprocess.run([python, "-c", probe], capture_output=True, check=False).returncode != 0:
            pytest.skip("an ordinary user has no Python 3.11 with venv here")
    newcomer = Newcomer(make_folder(), account)
    subprocess.run(["git", "clone", "--quiet", ROOT, newcomer.clone], check=True, timeout=60)
    newcomer.own(newcomer.clone)
    return newcomer


def test_from_a_clone_to_a_login(newcomer: Newcomer, start: Start) -> None:
    def up() -> Program:
        return start(
            "up",
            folder=newcomer.clone,
            variables=newcomer.variables,
            account=newcomer.account,
            command=("make", "--no-print-directory"),
        )

    first = up()
    seconds = first.until_ready(within=90)
    log.info("first start: %.1f s", seconds)
    name, password = first.login()
    assert log_in(first.url(), name, password).status_code == 200
    first.stop(signal.SIGINT)
    assert "Traceback" not in first.err
    assert "stopped; the data stays in .headrace" in first.err
    assert is_deserted(newcomer.clone, within=0)

    limit = patience(5)
    second = up()
    seconds = second.until_ready()
    log.info("second start: %.1f s", seconds)
    assert seconds < limit
    assert log_in(second.url(), name, password).status_code == 200
    second.stop(signal.SIGINT)
    assert running_in(newcomer.clone) == []

    began = time.monotonic()
    quiet = newcomer.run("make", "setup")
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, "", "")
    assert time.monotonic() - began < patience(1)

    # Everything lies in the folder, where git does not see it; outside there are only the installers' caches.
    # (pip asks `rustc` for its version, and where that is rustup's stand-in it makes a folder.)
    assert {path.name for path in newcomer.home.iterdir()} <= {".cache", ".rustup"}
    assert {path.name for path in (newcomer.home / ".cache").glob("*")} <= {"uv", "pip", "npm", "node"}
    assert list(newcomer.temporary.iterdir()) == []
    status = ["git", "-c", "safe.directory=*", "-C", str(newcomer.clone), "status", "--short"]
    assert subprocess.run(status, capture_output=True, text=True, check=True, timeout=60).stdout == ""
