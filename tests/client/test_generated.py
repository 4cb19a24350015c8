"""The generated part of the client: it follows the API and the client with a loop, and it works."""

import copy
import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headrace.assembly import description
from headrace.cli import client_code
from headrace.cli.client_code import twin
from headrace.cli.docs import PagesStale, docs
from headrace.cli.python_page import parts_of
from headrace.client import Client, SyncClient, Task, User
from headrace.client import locks as lock_verbs
from tests.conftest import ROOT

TASK = {
    "id": "tsk_1", "user_id": "u_1", "type": "report", "title": "report", "status": "FAILED", "queue": "default",
    "run_at": "2026-01-01T00:00:00Z", "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z",
}  # fmt: skip


RISK = ("TECHNICAL", "HIGH", "A library ends", "Replace it", "ada")


@pytest.fixture
def described(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The description that the generator reads, to be changed by a test."""
    monkeypatch.chdir(ROOT)
    document = copy.deepcopy(dict(description.whole()))
    monkeypatch.setattr(description, "whole", lambda: document)
    return document


def stale() -> set[str]:
    return {path.name for path, render in client_code.files().items() if path.read_text() != render()}


def test_the_files_say_what_the_api_says(described: dict[str, Any]) -> None:
    assert stale() == set()


def new_field(document: dict[str, Any]) -> None:
    document["components"]["schemas"]["TaskOut"]["properties"]["cost"] = {"type": "integer"}


def other_type(document: dict[str, Any]) -> None:
    document["components"]["schemas"]["LockOut"]["properties"]["fence"] = {"type": "string"}


def gone(document: dict[str, Any]) -> None:
    del document["components"]["schemas"]["RiskOut"]["properties"]["owner"]


@pytest.mark.parametrize(
    "change",
    [pytest.param(new_field, marks=pytest.mark.slow), other_type, pytest.param(gone, marks=pytest.mark.slow)],
    ids=lambda each: each.__name__,
)
def test_a_changed_answer_fails_the_check(described: dict[str, Any], change: Callable[[dict[str, Any]], None]) -> None:
    change(described)
    assert "answers.py" in stale()
    with pytest.raises(PagesStale, match=r"answers\.py does not say what the code says: run `make docs`"):
        docs(ROOT / "docs/reference", check=True)


def test_a_changed_parameter_fails_the_check(described: dict[str, Any]) -> None:
    parameters = described["paths"]["/v1/admin/risks"]["get"]["parameters"]
    parameters.append({"name": "since", "in": "query", "schema": {"type": "string", "format": "date-time"}})
    assert stale() == {"operators.py", "synchronous.py"}


def test_a_changed_verb_changes_its_twin(tmp_path: Path) -> None:
    folder = ROOT / client_code.CLIENT
    for path in folder.glob("*.py"):
        (tmp_path / path.name).write_text(path.read_text().replace("async def why(self", "async def reasons(self"))
    operators = (folder / "generated/operators.py").read_text()
    before, after = twin.render(folder, operators), twin.render(tmp_path, operators)
    assert "def why(self, task_id: str) -> Why:" in before
    assert "def reasons(self, task_id: str) -> Why:" in after
    assert "def why(self, task_id: str)" not in after


def test_twins_have_the_same_verbs_signatures_and_docstrings() -> None:
    client = SyncClient("http://headrace.test", "k")
    try:
        pairs: list[tuple[Any, Any]] = [(Client, SyncClient)]
        pairs += [(kind, type(getattr(client, part))) for part, kind in parts_of(Client).items()]
    finally:
        client.close()
    for kind, blocking in pairs:
        verbs = {name for name in dir(kind) if not name.startswith("_")}
        assert verbs == {name for name in dir(blocking) if not name.startswith("_")}
        for name in verbs - {"wait", "hold", "close"}:
            one, other = getattr(kind, name), getattr(blocking, name)
            assert list(inspect.signature(one).parameters) == list(inspect.signature(other).parameters)
            assert " ".join((inspect.getdoc(one) or "").split()) == " ".join((inspect.getdoc(other) or "").split())
    assert inspect.getdoc(lock_verbs.Locks.hold)


def test_an_answer_takes_fields_of_newer_and_older_servers() -> None:
    task = Task.of({**TASK, "invented_later": 1})
    assert (task.progress, task.labels, task.result, task.is_over, task.succeeded) == (0, {}, None, True, False)
    assert task.created_at.tzinfo is not None
    assert "FAILED" in repr(task)


def test_secrets_are_not_in_the_representation() -> None:
    user = User.of({**json.loads(json.dumps(TASK)), "role": "USER", "password": "hunter2"})
    assert user.password == "hunter2"
    assert "hunter2" not in repr(user)


async def test_generated_verbs_against_the_api(client: Client) -> None:
    risk = await client.risks.create(*RISK, key="r1")
    assert (await client.risks.create(*RISK, key="r1")) == risk
    changed = await client.risks.update(risk.risk_id, owner="grace", version=risk.version)
    assert (changed.owner, changed.version) == ("grace", risk.version + 1)
    assert [each.risk_id async for each in client.risks.list(severity="HIGH", owner="grace")] == [risk.risk_id]
    assert [each async for each in client.risks.list(severity=["LOW"])] == []
    await client.risks.delete(risk.risk_id)
    assert (await client.outbox.state()).waiting == 0
    assert await client.outbox.revive_all() == 0
