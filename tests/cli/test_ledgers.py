"""``headrace configs`` and ``headrace risks``. W-21."""

import json

from tests.cli.conftest import Call, Place
from tests.cli.test_admin import fetch


def test_configs_are_set_switched_and_unset(call: Call, migrated: Place) -> None:
    def run(*words: str) -> object:
        done = call("configs", *words, "--json", settings=migrated.settings)
        assert done.code == 0, done.err
        return json.loads(done.out)

    assert {key["key"] for key in run("keys")} >= {"announcement", "features"}  # type: ignore[attr-defined]
    run("set", "features", '{"beta": true}')
    run("set", "features", '{"beta": false}', "--tenant", "acme")
    run("disable", "features")
    run("enable", "features")
    assert run("show", "features")["version"] == 3  # type: ignore[index]
    assert "acme" in call("configs", "list", settings=migrated.settings).out
    assert call("configs", "unset", "features", settings=migrated.settings).out == "features is unset\n"
    (first, *_) = fetch(
        migrated, "SELECT user_agent FROM headrace.audit_events WHERE resource_type = 'systemConfig' ORDER BY seq"
    )
    assert first["user_agent"].startswith("headrace configs set (")


def test_what_cannot_be_set_is_refused_in_a_line(call: Call, migrated: Place) -> None:
    for words, code, said in (
        (("features", "beta"), 2, "not JSON"),
        (("features", '{"Beta!": true}'), 2, "value.Beta!"),
        (("feature", "{}"), 3, "did you mean features"),
        (("features", "{}", "--user", "ada"), 3, "There is no user ada"),
        (("features", "{}", "--user", "ada", "--tenant", "t"), 2, "leave one of"),
    ):
        done = call("configs", "set", *words, settings=migrated.settings)
        assert (done.code, said in done.complaint) == (code, True), done.err


def test_risks_are_entered_changed_and_counted(call: Call, migrated: Place) -> None:
    def run(*words: str) -> str:
        done = call("risks", *words, settings=migrated.settings)
        assert done.code == 0, done.err
        return done.out

    facts = ("--severity", "high", "--category", "cost", "--trigger", "the bill", "--plan", "watch", "--owner", "ada")
    run("add", *facts, "--id", "R-1", "--trace", "t-1")
    assert json.loads(run("board", "--json"))["by_severity"]["HIGH"] == 1
    assert "R-1" in run("list", "--trace", "t-1")
    assert json.loads(run("change", "R-1", "--status", "closed", "--json"))["status"] == "CLOSED"
    assert json.loads(run("board", "--json"))["by_severity"]["HIGH"] == 0
    assert "the bill" in run("show", "R-1")
    assert '"trace_ids":[' in run("show", "R-1"), "JSON, not Python's way of writing"
    assert json.loads(run("traces", "R-1", "--json")) == []
    assert run("remove", "R-1") == "R-1 is struck out\n"
    assert call("risks", "show", "R-1", settings=migrated.settings).code == 3
    assert call("risks", "change", "R-1", settings=migrated.settings).code == 2
