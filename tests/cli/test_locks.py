"""``headrace locks``: from a shell, as the product itself."""

import json
import sys
from collections.abc import Callable

import pytest

from tests.cli.conftest import Call, Place
from tests.e2e.program import Done

Headrace = Callable[..., Done]
LONG = "reports" * 15


@pytest.fixture
def headrace(call: Call, migrated: Place) -> Headrace:
    return lambda *words, **more: call(*words, settings={**migrated.settings, **more})


def test_take_keep_and_let_go(headrace: Headrace) -> None:  # S-13
    taken = json.loads(headrace("locks", "acquire", "deploy", "--purpose", "1.2", "--json").out)
    assert (taken["fence"], taken["purpose"], taken["status"]) == (1, "1.2", "ACTIVE")
    refused = headrace("locks", "acquire", "deploy")
    assert refused.code == 4
    assert "holds this lock until" in refused.err
    assert headrace("locks", "acquire", "other", "--ttl", "1e20").code == 2
    assert headrace("locks", "renew", "deploy", "--token", "guess").code == 4
    assert headrace("locks", "renew", "deploy", "--ttl", "60", HEADRACE_LOCK_TOKEN=taken["token"]).code == 0
    listed = headrace("locks", "list")
    assert "deploy" in listed.out
    assert taken["token"] not in listed.out
    assert headrace("locks", "release", "deploy", "--token", taken["token"]).out == "deploy released\n"
    assert headrace("locks", "force-release", "deploy").code == 3
    headrace("locks", "acquire", "deploy")
    assert headrace("locks", "force-release", "deploy").out == "deploy taken away\n"
    headrace("locks", "acquire", LONG)
    assert headrace("locks", "force-release", LONG).out == f"{LONG} taken away\n", "a line of a pipe has no width"
    [newest, oldest] = json.loads(headrace("locks", "list", "--key", "deploy", "--status", "RELEASED", "--json").out)
    assert (newest["fence"], oldest["fence"]) == (2, 1)


def test_a_command_runs_with_the_lock_in_its_hands(headrace: Headrace) -> None:
    look = "import os, sys; sys.exit(int(os.environ['HEADRACE_LOCK_FENCE']) + 40)"
    assert headrace("locks", "run", "deploy", "--", sys.executable, "-c", look).code == 41
    assert headrace("locks", "run", "deploy", "--", sys.executable, "-c", look).code == 42
    headrace("locks", "acquire", "deploy")
    refused = headrace("locks", "run", "deploy", "--", sys.executable, "-c", look)
    assert (refused.code, "holds this lock" in refused.err) == (4, True)
    unknown = headrace("locks", "run", "other", "--user-id", "u_1", "--", "true")
    assert (unknown.code, "There is no option --user-id here" in unknown.err) == (2, True)
    missing = headrace("locks", "run", "other", "--", "no-such-command")
    assert (missing.code, "cannot be run" in missing.err) == (2, True)
