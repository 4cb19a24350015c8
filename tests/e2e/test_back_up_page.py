"""The commands of docs/howto/back-up.md as a reader runs them: `headrace up` in another terminal, in a new folder."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.clusters import copy_cluster, migrated_cluster
from tests.conftest import ROOT
from tests.e2e.conftest import Start
from tests.e2e.program import CHEAP, environment, layout_of, run_program

_RUN = re.compile(r"^```sh run\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)


def test_the_page_about_backups_does_what_it_shows(folder: Path, start: Start) -> None:
    """Dropping the schema and pg_restore, as the page once had it, ended `up` and its PostgreSQL; and pg_dump was not
    allowed to read a schema of one's own."""
    copy_cluster(migrated_cluster(), layout_of(folder).home)
    up = start("up", folder=folder, settings=CHEAP)
    up.until_ready()
    assert run_program("database", "schema", "invoices", folder=folder).code == 0
    programs = folder / "bin"
    programs.mkdir()
    (programs / "headrace").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m headrace "$@"\n')
    (programs / "headrace").chmod(0o755)
    blocks = _RUN.findall((ROOT / "docs" / "howto" / "back-up.md").read_text())
    assert len(blocks) == 2
    for block, shown in blocks:
        ran = subprocess.run(
            ["sh", "-eu", "-c", block],
            cwd=folder,
            env={**environment(CHEAP), "PATH": f"{programs}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        rest = iter(ran.stdout.splitlines())
        for line in shown.splitlines():
            expected = re.compile(re.escape(line).replace("…", ".*"))
            assert any(expected.fullmatch(given) for given in rest), f"{line}\nin\n{ran.stdout}"
    assert up.running
    assert up.stop() == 0
    restored = {**CHEAP, "HEADRACE_DATA_DIR": "restored"}
    listed = run_program("database", "psql", "--owner", "--", "-Atc", r"\dn", folder=folder, settings=restored)
    assert "invoices|invoices" in listed.out.splitlines()
