"""The compose files name roles that the program has, and secrets that are nowhere in them."""  # D-10

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from headrace.cli.app import app
from headrace.settings.loading import Settings
from tests.delivery import ROOT

FILES = sorted((ROOT / "deploy").glob("compose*.yml"))
ROLES = {"api", "worker", "scheduler", "relay", "migrate"}


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text())
    return found


def test_every_role_runs_after_the_migration() -> None:
    services = read(ROOT / "deploy" / "compose.yml")["services"]
    commands = get_command(app).commands  # type: ignore[attr-defined]
    assert services.keys() >= ROLES
    for role in ROLES:
        assert services[role]["command"][0] == role
        assert role in commands
        assert services[role]["read_only"] is True
    for role in ROLES - {"migrate"}:
        assert services[role]["depends_on"] == {"migrate": {"condition": "service_completed_successfully"}}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_only_settings_are_set(path: Path) -> None:
    for service in read(path)["services"].values():
        for name in service.get("environment", {}):
            if name.startswith("HEADRACE_"):
                assert name == "HEADRACE_SECRETS_DIR" or name.removeprefix("HEADRACE_").lower() in Settings.model_fields


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_secrets_are_files(path: Path) -> None:
    found = read(path)
    for secret in found.get("secrets", {}).values():
        assert secret["file"].startswith("${SECRETS:-./secrets}/")
    for service in found["services"].values():
        for name in service.get("environment", {}):
            assert name.endswith("_FILE") or not re.search("PASSWORD|SECRET_KEY|TOKEN", name), name


@pytest.mark.parametrize("path", FILES[1:], ids=lambda path: path.stem)
def test_what_a_stage_adds_is_there_to_be_added_to(path: Path) -> None:
    assert read(path)["services"].keys() <= read(ROOT / "deploy" / "compose.yml")["services"].keys()
