"""The workflow has the stages of the document, and each of its steps is a script that can be run here."""  # D-09

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.delivery import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PIPELINE = ROOT / ".github" / "workflows" / "ci-cd.yml"


def read(path: Path) -> dict[str, Any]:
    found: dict[Any, Any] = yaml.safe_load(path.read_text())
    found["on"] = found.pop(True)  # YAML 1.1 reads `on` as a truth value
    return found


def steps(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def test_when_it_runs() -> None:
    assert read(PIPELINE)["on"] == {
        "push": {"branches": ["main", "staging"]},
        "pull_request": {"branches": ["main"]},
    }


def test_what_waits_for_what() -> None:
    jobs = read(PIPELINE)["jobs"]
    assert jobs["build"]["needs"] == ["lint", "test"]
    assert jobs["image"]["needs"] == "build"
    assert jobs["deploy_staging"]["needs"] == jobs["deploy_prod"]["needs"] == "image"


def test_staging_comes_from_staging_and_production_from_main_when_a_person_agrees() -> None:
    jobs = read(PIPELINE)["jobs"]
    assert "refs/heads/staging" in jobs["deploy_staging"]["if"]
    assert "refs/heads/main" in jobs["deploy_prod"]["if"]
    assert jobs["deploy_prod"]["environment"] == "production"
    for stage, prefix in (("deploy_staging", "STAGING"), ("deploy_prod", "PROD")):
        chosen = jobs[stage]["steps"][-1]["env"]
        assert {name: chosen[name] for name in ("HOST", "SSH_USER", "SSH_KEY")} == {
            "HOST": f"${{{{ secrets.{prefix}_HOST }}}}",
            "SSH_USER": f"${{{{ secrets.{prefix}_USER }}}}",
            "SSH_KEY": f"${{{{ secrets.{prefix}_SSH_KEY }}}}",
        }


def test_a_pull_request_pushes_nothing() -> None:
    (push,) = (step for step in steps(read(PIPELINE)) if "push-image" in step.get("run", ""))
    assert push["if"] == "github.event_name == 'push'"


def test_tests_run_on_every_python_and_on_the_oldest_and_newest_postgres() -> None:
    matrix = read(PIPELINE)["jobs"]["test"]["strategy"]["matrix"]
    assert matrix["python"] == ["3.11", "3.12", "3.13", "3.14"]
    assert {"18"} | {each["postgres"] for each in matrix["include"]} == {"15", "18"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_it_may_do_little_and_uses_only_what_is_pinned(path: Path) -> None:
    workflow = read(path)
    assert workflow["permissions"] == {}
    for job in workflow["jobs"].values():
        assert set(job["permissions"].items()) <= {("contents", "read"), ("packages", "read"), ("packages", "write")}
        assert job["timeout-minutes"] > 0
    for step in steps(workflow):
        assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", step.get("uses", "a/b@" + "0" * 40))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_step_is_a_script_of_the_repository(path: Path) -> None:
    makefile = (ROOT / "Makefile").read_text()
    for step in steps(read(path)):
        if "run" not in step:
            continue
        if step["run"].startswith("make "):
            assert re.search(rf"^{step['run'].removeprefix('make ')}:", makefile, re.MULTILINE), step["run"]
        else:
            assert (ROOT / step["run"]).stat().st_mode & 0o111, step["run"]


@pytest.mark.parametrize(
    ("part", "name", "change"),
    [
        ("workflows", ".github/workflows/ci-cd.yml", ("timeout-minutes: 15", "timeout-minuts: 15")),
        ("workflows", ".github/workflows/ci-cd.yml", ("@3d3c42e5aac5ba805825da76410c181273ba90b1", "@v7")),
        ("compose", "deploy/compose.yml", ("read_only: true", "readonly: true")),
        ("image", "Dockerfile", ("COPY dist/ dist/", "COPPY dist/ dist/")),
        ("scripts", "deploy/ci/rollout", ('"$image" || roll_back', '"$image || roll_back')),
    ],
    ids=["misspelt key", "unpinned action", "misspelt compose key", "misspelt instruction", "open quote"],
)
def test_the_check_fails_when_a_file_breaks(part: str, name: str, change: tuple[str, str], tmp_path: Path) -> None:
    for folder in (".github", "deploy", "scripts"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    shutil.copy(ROOT / "Dockerfile", tmp_path)
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    broken = tmp_path / name
    assert change[0] in broken.read_text()
    broken.write_text(broken.read_text().replace(*change))
    ran = subprocess.run([tmp_path / "scripts" / "check-delivery", part], capture_output=True, text=True, check=False)
    assert ran.returncode != 0, ran.stdout
