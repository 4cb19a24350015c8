"""The commands of docs/howto/back-up.md as a reader runs them: `headrace up` in another terminal, in a new folder."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from headrace.embedded_postgres.account import Account, become
from tests.clusters import copy_cluster, migrated_cluster
from tests.conftest import ROOT
from tests.e2e.conftest import MakeFolder, Start
from tests.e2e.program import CHEAP, HEADRACE, environment, layout_of, run_program

pytestmark = pytest.mark.long

_RUN = re.compile(r"^```sh run\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)


def follow_the_page(folder: Path, programs: Path, account: Account | None = None) -> None:
    """Run its blocks with ``programs`` first in the path, and look for what it shows."""
    blocks = _RUN.findall((ROOT / "docs" / "howto" / "back-up.md").read_text())
    assert len(blocks) == 2
    for block, shown in blocks:
        ran = subprocess.run(
            ["sh", "-eu", "-c", block],
            cwd=folder,
            env={**environment(CHEAP), "PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(folder)},
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
            preexec_fn=become(account),
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        rest = iter(ran.stdout.splitlines())
        for line in shown.splitlines():
            expected = re.compile(re.escape(line).replace("…", ".*"))
            assert any(expected.fullmatch(given) for given in rest), f"{line}\nin\n{ran.stdout}"


def test_the_page_about_backups_does_what_it_shows(folder: Path, start: Start) -> None:
    """Dropping the schema and pg_restore, as the page once had it, ended `up` and its PostgreSQL; and pg_dump was not
    allowed to read a schema of one's own."""
    copy_cluster(migrated_cluster(), layout_of(folder).home)
    up = start("up", folder=folder, settings=CHEAP)
    up.until_ready()
    assert run_program("database", "schema", "invoices", folder=folder).code == 0
    programs = folder / "bin"
    programs.mkdir()
    (programs / "headrace").write_text(f'#!/bin/sh\nexec "{HEADRACE[0]}" -m headrace "$@"\n')
    (programs / "headrace").chmod(0o755)
    follow_the_page(folder, programs)
    assert up.running
    assert up.stop() == 0
    restored = {**CHEAP, "HEADRACE_DATA_DIR": "restored"}
    listed = run_program("database", "psql", "--owner", "--", "-Atc", r"\dn", folder=folder, settings=restored)
    assert "invoices|invoices" in listed.out.splitlines()


@pytest.fixture
def installed(make_folder: MakeFolder) -> Path:
    """The wheel in an environment of its own, which borrows what the wheel needs from ours."""
    folder = make_folder()
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    made = subprocess.run(
        [*pip, "wheel", "--no-deps", "--wheel-dir", folder, ROOT],
        env=environment({"HEADRACE_SKIP_CONSOLE": "1", "HEADRACE_SKIP_WEIGHTS": "1"}),
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode != 0:
        pytest.skip(f"the wheel cannot be built: {made.stderr[-200:]}")
    place = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
    (packages,) = place.glob("lib/python*/site-packages")
    (packages / "borrowed.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    [wheel] = folder.glob("*.whl")
    subprocess.run(
        [*pip, "--python", place / "bin" / "python", "install", "--no-deps", "--no-index", wheel], check=True
    )
    found = subprocess.run(
        [place / "bin" / "python", "-c", "import headrace; print(headrace.__file__)"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.startswith(str(packages)), "not the checkout"
    return place / "bin"


@pytest.mark.slow
def test_an_ordinary_user_with_the_wheel_follows_the_page(
    folder: Path, start: Start, installed: Path, ordinary: Account
) -> None:
    shutil.chown(folder, ordinary.uid, ordinary.gid)
    home = {**CHEAP, "HOME": str(folder)}
    up = start("up", folder=folder, settings=home, account=ordinary, command=(installed / "headrace",))
    up.until_ready(within=120)
    subprocess.run(
        [installed / "headrace", "database", "schema", "invoices"],
        cwd=folder,
        env=environment(home),
        capture_output=True,
        check=True,
        preexec_fn=become(ordinary),
    )
    follow_the_page(folder, installed, ordinary)
    assert {path.stat().st_uid for path in folder.rglob("*")} == {ordinary.uid}
    assert up.stop() == 0
