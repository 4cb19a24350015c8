"""What a deployment may use fits into what it is given: memory of containers, connections of the database."""  # D-10

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from headrace.assembly import removal
from headrace.assembly.connections import Role, most_connections
from headrace.assets.inspection.service import InspectorConfig
from headrace.settings.loading import Settings
from tests.delivery import ROOT
from tests.delivery.composing import (
    DEPLOY,
    REQUIRED,
    STAGES,
    VariableMissing,
    bytes_of,
    limit,
    render,
    replicas,
    variables_of,
)
from tests.delivery.test_chart import containers, rendered
from tests.delivery.test_units import read as read_unit

ROLES: tuple[Role, ...] = ("api", "worker", "scheduler", "relay")
GIB = 1024**3
WORKER_ITSELF = GIB  # the process, and a child that is ready for the next file
API_ITSELF = GIB // 2
DEFAULT_MAX_CONNECTIONS = 100  # PostgreSQL's
RESERVE = 20  # for the migration, commands, psql, and what PostgreSQL keeps for superusers
DOCS = ROOT / "docs"


def settings_of(environment: Mapping[str, str]) -> Settings:
    names = {name.removeprefix("HEADRACE_").lower(): value for name, value in environment.items()}
    return Settings.model_validate({name: value for name, value in names.items() if name in Settings.model_fields})


def files_at_once(chosen: Settings, cpus: str | None, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(removal, "is_installed", lambda: True)
    monkeypatch.setattr(removal, "available_cpus", lambda: int(float(cpus or 64)))
    return removal.processes(chosen)


def worker_needs(chosen: Settings, cpus: str | None, monkeypatch: pytest.MonkeyPatch) -> int:
    return files_at_once(chosen, cpus, monkeypatch) * int(chosen.removal_memory) + WORKER_ITSELF


def api_needs(chosen: Settings) -> int:
    return chosen.files_inspectors * InspectorConfig().memory_bytes + API_ITSELF


def connections(chosen: Mapping[Role, Settings], count: Mapping[Role, int]) -> int:
    return sum(count[role] * most_connections(role, chosen[role]) for role in ROLES)


# -- compose


@pytest.mark.parametrize("stage", STAGES)
def test_a_container_has_the_memory_that_its_settings_let_it_use(stage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    services = render(stage)["services"]
    for role, needs in (("worker", worker_needs), ("api", lambda chosen, *_: api_needs(chosen))):
        memory = limit(services[role], "memory")
        if stage == "alone":
            assert memory is None
            continue
        assert memory is not None
        wanted = needs(settings_of(services[role]["environment"]), limit(services[role], "cpus"), monkeypatch)
        assert bytes_of(memory) >= wanted, f"{role}: {memory} for {wanted / GIB:.1f} GiB"


@pytest.mark.parametrize("stage", STAGES)
def test_the_database_has_a_connection_for_everybody(stage: str) -> None:
    services = render(stage)["services"]
    chosen = {role: settings_of(services[role]["environment"]) for role in ROLES}
    count = {role: replicas(services[role]) for role in ROLES}
    command = " ".join(services["postgres"].get("command", []))
    found = re.search(r"max_connections=(\d+)", command)
    allowed = int(found[1]) if found else DEFAULT_MAX_CONNECTIONS
    most = connections(chosen, count)
    assert most + RESERVE <= allowed
    if found:
        assert f"up to {most} connections" in (DEPLOY / STAGES[stage][-1]).read_text()


@pytest.mark.parametrize("stage", STAGES)
def test_nothing_is_written_that_docker_compose_does_not_read(stage: str) -> None:
    """Those are for a swarm: `docker compose up` replaces all containers of a service at once."""
    for name, service in render(stage)["services"].items():
        swarm = {"update_config", "rollback_config", "placement", "endpoint_mode", "mode"}
        assert not swarm & service.get("deploy", {}).keys(), name


@pytest.mark.parametrize("stage", STAGES)
def test_every_role_has_the_same_settings_file_and_the_migration_has_it_too(stage: str) -> None:
    services = render(stage)["services"]
    assert {str(services[role]["env_file"]) for role in (*ROLES, "migrate")} == {
        str([{"path": "./settings.env", "required": False}])
    }
    if stage != "alone":  # orders and refunds of WeChat Pay name it, wherever they are made
        for role in ROLES:
            assert services[role]["environment"]["HEADRACE_API_PUBLIC_URL"] == REQUIRED["PUBLIC_URL"], role


@pytest.mark.parametrize("stage", ["staging", "production"])
def test_a_variable_without_a_default_is_asked_for(stage: str) -> None:
    needed = {
        name for file in STAGES[stage] for name, default in variables_of(DEPLOY / file).items() if default is None
    }
    for name in needed:
        with pytest.raises(VariableMissing, match=name):
            render(stage, {each: value for each, value in REQUIRED.items() if each != name})
    assert needed == {"IMAGE", "PUBLIC_URL"} | ({"TRUSTED_PROXIES"} if stage == "production" else set())


def test_every_variable_is_documented_and_in_the_example() -> None:
    page = (DOCS / "howto" / "containers.md").read_text()
    example = (DEPLOY / "env.example").read_text()
    names = {name for files in STAGES.values() for file in files for name in variables_of(DEPLOY / file)}
    assert names >= {"IMAGE", "PUBLIC_URL", "TRUSTED_PROXIES", "SECRETS", "PORTS", "SETTINGS"}
    for name in names:
        assert re.search(rf"^\| `{name}` \|", page, re.MULTILINE), f"{name} is not in docs/howto/containers.md"
    set_there = {line.partition("=")[0] for line in example.splitlines() if line and not line.startswith("#")}
    assert set_there <= names | {"COMPOSE_FILE"}
    assert set_there >= {"PUBLIC_URL", "TRUSTED_PROXIES"}
    assert "deploy/env.example" in (DOCS / "why" / "delivery.md").read_text()


def test_no_command_of_the_pages_lacks_the_image() -> None:
    for page in sorted(DOCS.rglob("*.md")):
        for block in re.findall(r"```sh[^\n]*\n(.*?)```", page.read_text(), re.DOTALL):
            set_before = re.search(r"export .*\bIMAGE=", block)
            for line in block.splitlines():
                if line.lstrip().startswith("docker compose"):
                    assert set_before or "IMAGE=" in line, f"{page.name}: {line}"


# -- the chart


def chart_roles() -> dict[str, dict[str, Any]]:
    return {each["metadata"]["name"].rpartition("-")[2]: each for each in rendered({}) if each["kind"] == "Deployment"}


def chart_settings() -> Settings:
    (chosen,) = (each["data"] for each in rendered({}) if each["kind"] == "ConfigMap")
    return settings_of(chosen)


def test_a_pod_has_the_memory_that_its_settings_let_it_use(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen, roles = chart_settings(), chart_roles()
    for role, needs in (("worker", worker_needs(chosen, None, monkeypatch)), ("api", api_needs(chosen))):
        (container,) = containers(roles[role])
        assert bytes_of(container["resources"]["limits"]["memory"]) >= needs, role


def test_the_page_says_how_many_connections_the_chart_needs() -> None:
    chosen, roles = chart_settings(), chart_roles()
    surge = {role: roles[role]["spec"]["strategy"]["rollingUpdate"]["maxSurge"] for role in ROLES}
    count = {role: roles[role]["spec"]["replicas"] + surge[role] for role in ROLES}
    most = connections(dict.fromkeys(ROLES, chosen), count)
    one = most_connections("worker", chosen)
    page = " ".join((DOCS / "howto" / "kubernetes.md").read_text().split())
    assert f"up to {most} connections" in page
    assert f"each further worker opens up to {one} more" in page
    found = re.search(r"`max_connections` of (\d+)", page)
    assert found is not None
    assert most + RESERVE <= int(found[1])


def test_the_migration_of_the_chart_has_the_settings_too() -> None:
    """It writes how long months stay at least, from the settings of retention."""
    (job,) = (each for each in rendered({}) if each["kind"] == "Job")
    (container,) = containers(job)
    given = {each["name"]: each["value"] for each in container["env"]}
    (chosen,) = (each["data"] for each in rendered({}) if each["kind"] == "ConfigMap")
    assert given.items() >= (chosen.items() - {("HEADRACE_API_PORT", "8080")})
    # A pod's folder is no archive: nothing leaves before there is one.
    assert {name: value for name, value in given.items() if "RETENTION" in name} == {
        "HEADRACE_RETENTION_AUDIT": "forever",
        "HEADRACE_RETENTION_DELIVERIES": "forever",
        "HEADRACE_RETENTION_LEDGER": "forever",
    }


# -- everywhere


def test_the_table_of_connections_is_that_of_the_program() -> None:
    page = (DOCS / "howto" / "own-postgres.md").read_text()
    chosen = Settings(metrics_port=9100, nats_url=SecretStr("nats://nats:4222"))
    rows = dict(re.findall(r"^\| `headrace (\w+)` \|.*\| (\d+) \|$", page, re.MULTILINE))
    assert {role: int(number) for role, number in rows.items()} == {
        role: most_connections(role, chosen) for role in ROLES
    }


@pytest.mark.parametrize("stage", STAGES)
def test_only_the_migration_gets_the_owners_login(stage: str) -> None:
    services = render(stage)["services"]
    having = {name for name, each in services.items() if "headrace_database_owner_url" in each.get("secrets", [])}
    assert having == ({"migrate"} if stage == "production" else set())
    chart = [*rendered({"migrationSecret": "headrace-owner"})]
    assert {each["kind"] for each in chart if "headrace-owner" in str(each)} == {"Job"}
    units = sorted((DEPLOY / "systemd").glob("*.service"))
    assert [unit.stem for unit in units if "owner_url" in unit.read_text()] == ["headrace-migrate"]
    assert {_environment_file(unit) for unit in units} == {"/etc/headrace/environment"}


def _environment_file(unit: Path) -> str:
    return read_unit(unit)["Service"]["EnvironmentFile"]
