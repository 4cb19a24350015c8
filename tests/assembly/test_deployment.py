"""From settings to running parts."""

import os
from pathlib import Path

import pytest

from headrace import settings
from headrace.assembly.deployment import data_folder, database_of
from headrace.assembly.secret_key import secret_key


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


@pytest.mark.parametrize(("owner", "pooled"), [(None, True), ("postgresql://o@h/d", False)])
def test_an_address_of_the_owners_is_that_of_the_server_itself(
    monkeypatch: pytest.MonkeyPatch, owner: str | None, pooled: bool
) -> None:
    monkeypatch.setenv("HEADRACE_DATABASE_URL", "postgresql://a@h/d")
    monkeypatch.setenv("HEADRACE_DATABASE_POOLED", "true")
    if owner is not None:
        monkeypatch.setenv("HEADRACE_DATABASE_OWNER_URL", owner)
    with database_of(settings.load(), role="test", report=lambda _: None) as deployment:
        assert (deployment.app.pooled, deployment.owner.pooled) == (True, pooled)
