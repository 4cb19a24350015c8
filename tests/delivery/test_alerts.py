"""The rules for Prometheus, without it: their form, their names, and that they outlive the process they are about."""

import re
from typing import Any

import pytest
import yaml

from tests.delivery import ROOT

FILE = ROOT / "deploy" / "monitoring" / "alerts.yml"
PAGE = ROOT / "docs" / "howto" / "metrics.md"
RULES: dict[str, dict[str, Any]] = {
    rule["alert"]: rule for group in yaml.safe_load(FILE.read_text())["groups"] for rule in group["rules"]
}
# What has a value when nothing is scraped; everything else has none, and so cannot fire.
OUTLIVE = {
    "HeadraceProcessDown": r"^up\{job=~\"headrace\.\*\"\} == 0$",
    "HeadraceRoleGone": r"^count by \(role\) \(last_over_time\(headrace_info\[\d+d\]\)\) unless "
    r"count by \(role\) \(headrace_info\)$",
    "HeadraceNotScraped": r"^absent\(headrace_info\)$",
    "HeadraceJobMissing": r"^absent\(up\{job=~\"headrace\.\*\"\}\)$",
    "HeadraceDatabaseSilent": r"^absent\(headrace_workers\) unless on \(\) absent\(headrace_info\)$",
}


@pytest.mark.parametrize("name", RULES)
def test_a_rule_says_what_is_wrong_and_what_to_do(name: str) -> None:
    rule = RULES[name]
    assert rule.keys() <= {"alert", "expr", "for", "labels", "annotations"}
    assert rule["labels"].keys() == {"severity"}
    assert rule["labels"]["severity"] in ("info", "warning", "critical")
    assert rule["annotations"].keys() == {"summary", "action"}
    assert re.fullmatch(r"\d+[smh]", rule.get("for", "1m"))


@pytest.mark.parametrize("name", RULES)
def test_an_expression_is_whole(name: str) -> None:
    expr = RULES[name]["expr"]
    for opening, closing in ("()", "[]", "{}"):
        assert expr.count(opening) == expr.count(closing)
    assert expr.count('"') % 2 == 0
    # A label in the text must be one that the expression leaves.
    text = str(RULES[name]["annotations"])
    for label in re.findall(r"\$labels\.(\w+)", text):
        kept = re.findall(r"by \(([^)]*)\)", expr)
        assert (kept and all(label in each for each in kept)) or expr.startswith("up{"), f"{name}: {label}"


@pytest.mark.parametrize("name", OUTLIVE)
def test_an_alert_is_left_when_the_only_process_has_stopped(name: str) -> None:
    assert re.fullmatch(OUTLIVE[name], RULES[name]["expr"])
    assert RULES[name]["labels"]["severity"] == "critical"


def test_the_job_of_the_page_is_the_one_that_the_rules_look_for() -> None:
    page = PAGE.read_text()
    (job,) = re.findall(r"job_name: (\S+)", page)
    for name in ("HeadraceProcessDown", "HeadraceJobMissing"):
        (pattern,) = re.findall(r'job=~"([^"]*)"', RULES[name]["expr"])
        assert re.fullmatch(pattern, job)
    for role in ("api", "worker", "scheduler", "relay"):
        assert f'"{role}:9100"' in page, "every role is scraped, or its end goes unseen"


def test_the_page_has_all_of_them() -> None:
    assert re.findall(r"^\| `(Headrace\w+)` \|", PAGE.read_text(), re.MULTILINE) == list(RULES)
