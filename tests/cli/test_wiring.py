"""From settings to running parts."""

import os
from datetime import timedelta
from pathlib import Path

import pytest

from headrace import settings
from headrace.cli.wiring import Place, data_folder, scheduling, secret_key
from headrace.database import Database, DatabaseBusy, DatabaseConfig


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes things for others")
def test_what_root_makes_belongs_to_the_owner_of_the_folder_above(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    os.chown(project, 4711, 4711)
    monkeypatch.setenv("HEADRACE_DATA_DIR", str(project / "data"))
    monkeypatch.delenv("HEADRACE_SECRET_KEY", raising=False)
    chosen = settings.load()
    assert len(secret_key(chosen, make=True)) == 64
    made = [data_folder(chosen), *data_folder(chosen).iterdir()]
    assert {path.name for path in made} == {"data", ".gitignore", "secret.key"}
    assert {path.stat().st_uid for path in made} == {4711}
    assert (project / "data" / "secret.key").stat().st_mode & 0o777 == 0o600


async def test_a_scheduler_that_meets_a_busy_database_says_so_and_not_that_it_has_a_bug(
    database_url: str, db: Database
) -> None:
    config = DatabaseConfig(database_url, role="test", statement_timeout=timedelta(milliseconds=300))
    async with db.transaction() as tx:
        await tx.execute("LOCK headrace.task_types IN EXCLUSIVE MODE")
        with pytest.raises(DatabaseBusy):
            async with scheduling(settings.load(), Place(config, config, embedded=False)):
                pass
