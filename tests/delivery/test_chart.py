"""The Helm chart: what it renders is what Kubernetes takes, and what it runs is what the program has."""  # D-10

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml
from typer.main import get_command

from headrace.cli.app import app
from headrace.settings.loading import Settings
from tests.delivery import ROOT
from tests.delivery.gotemplate import Chart, TemplateError

CHART = ROOT / "deploy" / "helm" / "headrace"
EVERYTHING = {
    "migrationSecret": "headrace-owner",
    "image": {"tag": "0123abc"},
    "settings": {"HEADRACE_API_PUBLIC_URL": "https://headrace.example.com"},
    "api": {"ingress": {"enabled": True, "className": "nginx", "tlsSecret": "tls"}},
    "worker": {"app": "shop.tasks:registry", "autoscaling": {"enabled": True}},
    "sharedVolume": {"existingClaim": "files"},
    "podAnnotations": {"example.com/team": "platform"},
    "tolerations": [{"key": "batch", "operator": "Exists"}],
    "nodeSelector": {"disk": "fast"},
}


def merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    return dict(base) | {
        name: merged(base[name], value) if isinstance(base.get(name), dict) and isinstance(value, dict) else value
        for name, value in changes.items()
    }


def values(changes: Mapping[str, Any]) -> dict[str, Any]:
    found = merged(yaml.safe_load((CHART / "values.yaml").read_text()), changes)
    jsonschema.validate(found, json.loads((CHART / "values.schema.json").read_text()))
    return found


def rendered(changes: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    about = yaml.safe_load((CHART / "Chart.yaml").read_text())
    context = {
        "Values": values(changes),
        "Release": {"Name": "headrace", "Service": "Helm"},
        "Chart": {"AppVersion": about["appVersion"]},
    }
    sources = {path.name: path.read_text() for path in sorted((CHART / "templates").iterdir())}
    chart = Chart(sources, context)
    chart.render("NOTES.txt")
    for name in sources:
        if name.endswith(".yaml"):
            yield from filter(None, yaml.safe_load_all(chart.render(name)))


def containers(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [*found["spec"]["template"]["spec"]["containers"]]


@pytest.mark.parametrize("changes", [{}, EVERYTHING], ids=["defaults", "everything"])
def test_kubernetes_takes_what_the_chart_renders(changes: dict[str, Any]) -> None:
    found = [*rendered(changes)]
    for each in found:
        kubernetes_validate.validate(each, "1.31", strict=True)
    kinds = {each["kind"] for each in found}
    assert {"ConfigMap", "Deployment", "Job", "PodDisruptionBudget", "Service", "ServiceAccount"} <= kinds
    assert ("HorizontalPodAutoscaler" in kinds) == ("Ingress" in kinds) == bool(changes)


@pytest.mark.parametrize("changes", [{}, EVERYTHING], ids=["defaults", "everything"])
def test_it_runs_roles_that_the_program_has(changes: dict[str, Any]) -> None:
    commands = get_command(app).commands  # type: ignore[attr-defined]
    found = [
        container
        for each in rendered(changes)
        if each["kind"] in ("Deployment", "Job")
        for container in containers(each)
    ]
    assert {container["args"][0] for container in found} == {"api", "worker", "scheduler", "relay", "migrate"}
    assert all(container["args"][0] in commands for container in found)
    for container in found:
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        tag = "0123abc" if changes else "0.1.0"
        suffix = "-media" if container["name"] in ("api", "worker") else ""
        assert container["image"].endswith(f":{tag}{suffix}")


def test_other_settings_replace_the_pods_that_read_them() -> None:
    def templates(changes: dict[str, Any]) -> dict[str, Any]:
        return {
            each["metadata"]["name"]: each["spec"]["template"]
            for each in rendered(changes)
            if each["kind"] == "Deployment"
        }

    before = templates(EVERYTHING)
    assert templates(EVERYTHING) == before
    assert all(found["metadata"]["annotations"]["example.com/team"] == "platform" for found in before.values())
    after = templates(merged(EVERYTHING, {"settings": {"HEADRACE_LOG_LEVEL": "DEBUG"}}))
    assert len(before) == 4
    assert [name for name, found in after.items() if found == before[name]] == []


def test_its_settings_are_settings() -> None:
    (chosen,) = (each["data"] for each in rendered(EVERYTHING) if each["kind"] == "ConfigMap")
    names = {name.removeprefix("HEADRACE_").lower() for name in chosen} - {"secrets_dir"}
    assert names <= set(Settings.model_fields)


@pytest.mark.parametrize(
    "wrong",
    [{"worker": {"replicas": "many"}}, {"settings": {"LOG_LEVEL": "DEBUG"}}, {"workers": {}}, {"existingSecret": ""}],
)
def test_values_that_cannot_be_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        values(wrong)


@pytest.mark.parametrize("broken", ["{{ .Values.nothing }}", "{{ if .Values.x }}", "{{ tpl . }}", "{{ end }}"])
def test_a_broken_template_is_noticed(broken: str, tmp_path: Path) -> None:
    with pytest.raises(TemplateError):
        Chart({"broken.yaml": broken}, {"Values": {"x": 1}}).render("broken.yaml")
