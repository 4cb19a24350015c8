"""Data folders of embedded servers to copy: a copy is a server of its own, and sooner there than a new one.

Each is made once and kept in ``.pytest_cache`` from run to run, under a name that says what it was made from.
"""

import asyncio
import fcntl
import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from headrace import embedded_postgres, migrations
from headrace.database import DatabaseConfig
from headrace.testing.scratch import schema
from tests.memory import room

_KEPT = Path(__file__).parent.parent / ".pytest_cache" / "clusters"
_MAKING = {"fsync": "off", "shared_buffers": "16MB"}


def empty_cluster() -> Path:
    """A server that was started once."""
    return _kept("empty", "", lambda _: None)


def migrated_cluster() -> Path:
    """The same with the schema in its database."""
    return _kept("migrated", schema(), _migrate)


def copy_cluster(source: Path, home: Path) -> None:
    subprocess.run(["cp", "-a", source, home], check=True)


def _migrate(server: embedded_postgres.Server) -> None:
    config = DatabaseConfig(server.owner_url)
    asyncio.run(migrations.migrate(config, lock_timeout=timedelta(seconds=5), report=lambda _: None))


def _kept(kind: str, source: str, fill: Callable[[embedded_postgres.Server], None]) -> Path:
    # How clusters are made is part of what one is made from.
    programs = sorted(Path(embedded_postgres.__path__[0]).glob("*.py"))
    made_from = source + "".join(program.read_text() for program in programs)
    kept = _KEPT / f"{kind}-{hashlib.sha256(made_from.encode()).hexdigest()[:12]}"
    _KEPT.mkdir(parents=True, exist_ok=True)
    with (_KEPT / "turn").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        if not kept.exists():
            for former in _KEPT.glob(f"{kind}-*"):
                shutil.rmtree(former)
            _make(kept, fill)
    return kept


def _make(kept: Path, fill: Callable[[embedded_postgres.Server], None]) -> None:
    # Elsewhere, and then moved at once: one that was interrupted must not look like one.
    folder = Path(tempfile.mkdtemp(prefix="hr-", dir=room()))
    draft = kept.with_name(f"draft-{kept.name}")
    try:
        folder.chmod(0o755)
        with embedded_postgres.attach(
            embedded_postgres.EmbeddedConfig(folder / "postgres", settings=_MAKING)
        ) as server:
            fill(server)
        shutil.rmtree(draft, ignore_errors=True)
        copy_cluster(folder / "postgres", draft)
        draft.rename(kept)
    finally:
        shutil.rmtree(folder)
