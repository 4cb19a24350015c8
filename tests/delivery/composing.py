"""Compose files as `docker compose config` would render them, as far as ours go: variables put in, files merged."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.delivery import ROOT

DEPLOY = ROOT / "deploy"
STAGES = {
    "alone": ("compose.yml",),
    "staging": ("compose.yml", "compose.staging.yml"),
    "production": ("compose.yml", "compose.prod.yml"),
}
REQUIRED = {
    "IMAGE": "headrace:dev",
    "PUBLIC_URL": "https://headrace.example.com",
    "TRUSTED_PROXIES": "172.16.0.0/12",
}
_VARIABLE = re.compile(r"\$\{(?P<name>\w+)(?::?(?P<kind>[-?])(?P<rest>[^}]*))?\}")
_ADDED = {"secrets", "volumes", "ports", "tmpfs"}  # lists that a later file adds to; it replaces all others
_UNITS = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3, "ki": 1024, "mi": 1024**2, "gi": 1024**3}


class VariableMissing(ValueError):
    pass


def variables_of(file: Path) -> dict[str, str | None]:
    """What a file takes from its environment: its default, or None where there is none."""
    found = _VARIABLE.finditer(file.read_text())
    return {each["name"]: each["rest"] if each["kind"] == "-" else None for each in found}


def render(stage: str, variables: Mapping[str, str] = REQUIRED) -> dict[str, Any]:
    rendered: dict[str, Any] = {}
    for name in STAGES[stage]:
        rendered = _merge(rendered, _filled(yaml.safe_load((DEPLOY / name).read_text()), variables))
    return rendered


def _filled(value: Any, variables: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _filled(each, variables) for key, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, variables) for each in value]
    return _VARIABLE.sub(lambda found: _value(found, variables), value) if isinstance(value, str) else value


def _value(found: re.Match[str], variables: Mapping[str, str]) -> str:
    if given := variables.get(found["name"]):
        return given
    if found["kind"] != "-":
        raise VariableMissing(f"{found['name']}: {found['rest']}")
    return found["rest"]


def _merge(first: Any, second: Any, key: str = "") -> Any:
    if isinstance(first, dict) and isinstance(second, dict):
        return first | {name: _merge(first.get(name), each, name) for name, each in second.items()}
    if isinstance(first, list) and isinstance(second, list) and key in _ADDED:
        return first + [each for each in second if each not in first]
    return second


def replicas(service: Mapping[str, Any]) -> int:
    return int(service.get("deploy", {}).get("replicas", 1))


def limit(service: Mapping[str, Any], what: str) -> str | None:
    """``memory`` or ``cpus``, in either of the two ways to write it."""
    short = {"memory": "mem_limit", "cpus": "cpus"}[what]
    found = service.get("deploy", {}).get("resources", {}).get("limits", {}).get(what, service.get(short))
    return None if found is None else str(found)


def bytes_of(text: str) -> int:
    number, unit = re.fullmatch(r"(\d+)([a-zA-Z]*)", text).groups()  # type: ignore[union-attr]
    return int(number) * _UNITS[unit.lower().removesuffix("b")]
