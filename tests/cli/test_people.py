"""Commands that are about one user: by username or by id, one way for all of them."""

import json
import os
import pwd
from collections.abc import Callable
from typing import Any

import pytest

from headrace import ids
from headrace.audit import local_account
from headrace.cli.session import operator
from tests.cli.conftest import Call, Place
from tests.cli.test_admin import fetch
from tests.e2e.program import Done

Headrace = Callable[..., Done]
TOLD = ": give the username, or the id: u_…."
COMMANDS = (
    ("tasks", "list"),
    ("audit", "list"),
    ("audit", "export"),
    ("configs", "show", "features"),
    ("locks", "force-release", "deploy"),
)


@pytest.fixture
def headrace(call: Call, migrated: Place) -> Headrace:
    return lambda *words: call(*words, settings=migrated.settings)


def answer(done: Done) -> Any:
    assert done.code == 0, done.err
    return json.loads(done.out)


def test_a_user_is_named_by_username_or_id(headrace: Headrace, migrated: Place) -> None:
    answer(headrace("admin", "create", "ada", "--json"))
    (row,) = fetch(migrated, "SELECT id FROM headrace.users WHERE username = 'ada'")
    task_id = ids.new("tsk")
    values = f"VALUES ('{task_id}', '{row['id']}', 'greet', 'Hi')"
    fetch(migrated, f"INSERT INTO headrace.tasks (id, user_id, task_type, title) {values}")
    for name in ("ada", "Ada ", row["id"]):
        assert [found["id"] for found in answer(headrace("tasks", "list", "--user", name, "--json"))] == [task_id]
        assert answer(headrace("configs", "set", "features", "{}", "--user", name, "--json"))["scope_id"] == row["id"]
    assert answer(headrace("tasks", "list", "--user", "system", "--json")) == []
    by_system = answer(headrace("audit", "list", "--user", "system", "--type", "systemConfig", "--json"))
    assert {event["user"]["username"] for event in by_system} == {f"cli ({local_account()})"}
    assert [event["user"]["uid"] for event in by_system] == [ids.SYSTEM_USER]
    assert answer(headrace("audit", "list", "--user", "ada", "--json")) == [], "she has done nothing yet"
    refused = headrace("locks", "force-release", "deploy", "--user", "ada")
    assert (refused.code, "no user" in refused.complaint) == (3, False), "no such lock of hers"


def test_nobody_of_that_name_is_said(headrace: Headrace, subtests: pytest.Subtests) -> None:
    for words in COMMANDS:
        with subtests.test(" ".join(words)):
            nobody = headrace(*words, "--user", "u_nobody")
            assert (nobody.code, nobody.complaint) == (3, f"There is no user u_nobody{TOLD}")
            address = headrace(*words, "--user", "ada@example.org")
            assert (address.code, address.complaint.endswith(f"several users may have{TOLD}")) == (2, True)


def test_nobody_names_themselves_in_the_trail(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(variable, "mallory")
    who = operator("tasks list")
    account = pwd.getpwuid(os.getuid()).pw_name
    assert (who.principal.username, who.user_agent) == (f"cli ({account})", f"headrace tasks list ({account})")
