"""The same commands on the database and over a server's API; where they find the server; errors for programs."""

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from headrace import logs
from headrace.assembly import serving
from headrace.assembly.api import application
from headrace.assembly.deployment import Deployment
from headrace.database import DatabaseConfig
from headrace.settings import load
from tests.cli.conftest import Call, Place
from tests.e2e.program import Done
from tests.isolation import logging_restored

Headrace = Callable[..., Done]
PASSWORD = "correct horse battery"
SCOPES = (
    "admin,account:read,tasks:read,tasks:write,schedules:read,schedules:write,locks:read,locks:write,billing:read,"
    "billing:write,webhooks:read,webhooks:write,audit:read,files:read,files:write"
)


@pytest.fixture
def known(migrated: Place) -> Place:
    async def declare() -> None:
        connection = await asyncpg.connect(migrated.owner_url)
        await connection.execute("INSERT INTO headrace.task_types (name) VALUES ('greet')")
        await connection.close()

    asyncio.run(declare())
    return migrated


@pytest.fixture
def on_database(call: Call, known: Place) -> Headrace:
    return lambda *words, **more: call(*words, settings=known.settings, **more)


@pytest.fixture
def url(known: Place, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The API, in a thread: commands block."""
    with monkeypatch.context() as patch:
        for name, value in known.settings.items():
            patch.setenv(name, value)
        settings = load()
    ready, address = threading.Event(), []
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    async def serve() -> None:
        config = DatabaseConfig(known.app_url)
        secret = known.settings["HEADRACE_SECRET_KEY"].encode()
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.setblocking(False)
            address.append(f"http://127.0.0.1:{listener.getsockname()[1]}")
            async with application(settings, Deployment(config, config, embedded=False), secret) as app:
                ready.set()
                await serving.serve(app, serving.Listening(listener, address[0]), settings, stop=stop)

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    with logging_restored():
        logs.configure(format="json", level="CRITICAL")
        thread.start()
        assert ready.wait(60)
        yield address[0]
        loop.call_soon_threadsafe(stop.set)
        thread.join(60)
        loop.close()


@pytest.fixture
def key(on_database: Headrace) -> str:
    made = on_database("users", "create", "ada", "--role", "admin", "--password-stdin", stdin=f"{PASSWORD}\n")
    assert (made.code, made.out) == (0, "ada can log in.\n"), made.err
    return on_database("keys", "create", "ci", "--user", "ada", "--scope", SCOPES).out.strip()


@pytest.mark.long
def test_every_command_does_the_same_on_the_database_and_over_an_api(
    on_database: Headrace, call: Call, url: str, key: str
) -> None:
    afar = {"HEADRACE_URL": url, "HEADRACE_API_KEY": key}
    here = _shapes(lambda *words, **more: on_database(*words, **more), "bob")
    there = _shapes(lambda *words, **more: call(*words, settings=afar, **more), "zoe")
    assert here.keys() == there.keys()
    for words, shape in here.items():
        assert shape == there[words], words


def _shapes(headrace: Headrace, name: str) -> Mapping[str, Any]:
    """What each command answers with, by its words: names of fields, and values that are the same at each place."""
    shapes: dict[str, Any] = {}

    def run(*words: str, stdin: str = "", expect: int = 0) -> Any:
        done = headrace(*words, "--json", stdin=stdin)
        assert done.code == expect, (words, done.err)
        answer = json.loads(done.out)
        shapes[" ".join(word for word in words if not ("_01" in word or name in word or len(word) > 40))] = _shape(
            answer
        )
        return answer

    made = run("users", "create", name, "--password-stdin", stdin=f"{PASSWORD}\n")["user"]
    run("users", "list", "--role", "user")
    run("users", "show", name)
    assert run("users", "suspend", name)["status"] == "SUSPENDED"
    assert run("users", "reinstate", made["id"])["status"] == "ACTIVE"
    assert run("users", "role", name, "admin")["role"] == "ADMIN"
    later = ("--run-at", "2030-01-02T03:04:05Z", "--limit-key", "k", "--queue", "default")
    task = run("submit", "greet", "--user", name, *later)
    assert (task["user_id"], task["limit_key"], task["run_at"]) == (made["id"], "k", "2030-01-02T03:04:05Z")
    run("submit", "greet", "--priority", "x1", expect=2)
    run("submit", "greet", "--max-attempts", "5000", expect=2)
    assert [each["id"] for each in run("tasks", "list", "--status", "queued", "--user", name)] == [task["id"]]
    run("tasks", "show", task["id"])
    run("tasks", "why", task["id"])
    run("tasks", "delete", task["id"], "--yes", expect=4)
    assert run("tasks", "cancel", task["id"])[0]["status"] == "CANCELED"
    assert run("tasks", "retry", task["id"])[0]["status"] == "QUEUED"
    run("tasks", "logs", task["id"])
    run("tasks", "cancel", task["id"])
    run("tasks", "delete", task["id"], "--yes")
    run("tasks", "show", task["id"], expect=3)
    run("queues", "list")
    assert run("queues", "pause", "default")["paused_at"] is not None
    assert run("queues", "resume", "default")["paused_at"] is None
    assert run("queues", "limit", "default", "3")["max_running"] == 3
    assert run("queues", "limit", "default", "--none")["max_running"] is None
    run("queues", "limit", "nowhere", "3", expect=3)
    run("workers")
    schedule = run("schedules", "create", f"of {name}", "greet", "--cron", "@daily", "--labels", "zone=a")["id"]
    assert [each["id"] for each in run("schedules", "list", "--labels", "zone=a", "--enabled")][:1] == [schedule]
    run("schedules", "show", schedule)
    assert run("schedules", "update", schedule, "--priority", "3")["priority"] == 3
    assert not run("schedules", "disable", schedule)["enabled"]
    assert run("schedules", "enable", schedule)["enabled"]
    assert len(run("schedules", "next", schedule, "--count", "3")) == 3
    execution = run("schedules", "run", schedule)["id"]
    assert [each["id"] for each in run("executions", "list", "--schedule", schedule, "--status", "pending")] == [
        execution
    ]
    run("executions", "show", execution)
    run("executions", "why", execution)
    assert run("executions", "cancel", execution)[0]["status"] == "CANCELED"
    assert run("schedules", "statistics", schedule)["total_executions"] == 1
    assert headrace("schedules", "delete", schedule, "--yes").code == 0
    _other_groups(run, headrace, name)
    return shapes


def _other_groups(run: Callable[..., Any], headrace: Headrace, name: str) -> None:
    run("tasks", "types")
    run("plans", "list")
    run("plans", "show", "Free")
    plan = run("plans", "add", name, "--price-cents", "100", "--units", "5")["id"]
    assert run("plans", "change", plan, "--units", "6")["monthly_quota"] == 6
    run("plans", "remove", plan)
    run("plans", "show", plan, expect=3)
    run("risks", "add", "--category", "cost", "--severity", "low", "--trigger", "t", "--plan", "p", "--owner", "o")
    run("risks", "board")
    run("risks", "list", "--status", "open", "--status", "closed")
    run("configs", "keys")
    assert run("configs", "set", "features", '{"beta": true}')["value"] == {"beta": True}
    assert not run("configs", "disable", "features")["is_active"]
    run("configs", "list")
    run("configs", "unset", "features")
    run("configs", "show", "features", expect=3)
    quota = run("ledger", "entitlements", "--user", name)[0]["id"]
    assert run("ledger", "adjust", quota, "--units", "5", "--reason", "why")["entry"]["units"] == 5
    run("ledger", "adjust", quota, "--units", "0", "--reason", "why", expect=2)
    run("ledger", "list", "--user", name)
    run("ledger", "verify", "--no-archives")
    run("usage", "list", name)
    run("usage", "days", name)
    run("usage", "balance", name)
    assert headrace("usage", "export", name).out.startswith("id,created_at,")
    run("subscriptions", "list")
    run("subscriptions", "orders", "--status", "paid")
    token = run("locks", "acquire", "deploy", "--ttl", "60")["token"]
    run("locks", "acquire", "deploy", expect=4)
    run("locks", "list")
    run("locks", "renew", "deploy", "--token", token)
    run("locks", "release", "deploy", "--token", token)
    assert headrace("locks", "run", "deploy", "--", "true").code == 0
    hook = run("webhooks", "create", f"https://{name}.example/hook", "--event", "task.*")["id"]
    run("webhooks", "list")
    run("webhooks", "show", hook)
    assert run("webhooks", "pause", hook)["status"] == "PAUSED"
    run("webhooks", "stats", hook)
    run("webhooks", "deliveries")
    run("webhooks", "delete", hook, "--yes")
    run("outbox", "status")
    run("outbox", "list")
    run("outbox", "types")
    run("outbox", "revive", "--all")
    event = run("audit", "list", "--user", name, "--search", hook)
    assert event == []
    event = run("audit", "list", "--action", "created")[0]["id"]
    run("audit", "show", event)
    assert event in headrace("audit", "export", "--action", "created").out
    run("partitions", "list")
    run("partitions", "ahead")
    run("archive", "list")
    run("files", "list")
    assert run("admin", "delete", name, "--yes")["status"] == "WAITING"
    run("admin", "deletions")
    run("admin", "keep", name)


def _shape(answer: Any) -> Any:
    if isinstance(answer, dict):
        return {name: _shape(value) if name in ("user", "code", "status") else None for name, value in answer.items()}
    if isinstance(answer, list):
        return _shape(answer[0]) if answer else []
    return answer


def test_keys_are_made_by_people_used_and_revoked(call: Call, on_database: Headrace, url: str, key: str) -> None:
    made = call("keys", "create", "mine", "--scope", "account:read", "--scope", "account:write", "--login", "ada",
                "--url", url, "--json", stdin=f"{PASSWORD}\n")  # fmt: skip
    assert made.code == 0, made.err
    own = json.loads(made.out)["key"]
    by_program = call("keys", "create", "more", "--scope", "tasks:read", "--url", url, "--key", own, "--json")
    assert (by_program.code, json.loads(by_program.out)["code"]) == (5, "session_needed")
    listed = call("keys", "list", "--url", url, "--key", own, "--json")
    names = {each["name"]: each["id"] for each in json.loads(listed.out)}
    assert (
        names.keys()
        == {"mine", "ci"}
        == {each["name"] for each in json.loads(on_database("keys", "list", "--user", "ada", "--json").out)}
    )
    assert call("keys", "revoke", names["ci"], "--url", url, "--key", own).code == 0
    gone = call("tasks", "list", "--url", url, "--key", key, "--json")
    assert (gone.code, json.loads(gone.out)["code"]) == (5, "unauthenticated")
    assert on_database("keys", "revoke", names["mine"], "--user", "ada").code == 0
    assert on_database("keys", "list").code == 2
    assert call("keys", "list", "--user", "ada", "--url", url, "--key", own).code == 2


def test_a_profile_names_the_server_and_nobody_else_may_read_it(
    call: Call, url: str, key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    file = tmp_path / "config" / "headrace" / "profiles.toml"
    missing = call("queues", "list", "--profile", "work")
    assert (missing.code, missing.complaint) == (2, f"{file} cannot be read: No such file or directory.")
    file.parent.mkdir(parents=True)
    file.write_text(f'[work]\nurl = "{url}"\nkey = "{key}"\n[half]\nkey = "k"\n')
    file.chmod(0o644)
    readable = call("queues", "list", "--profile", "work")
    assert (readable.code, readable.complaint) == (2, f"{file} holds keys, and others may read it: chmod 600 {file}")
    file.chmod(0o600)
    assert call("queues", "list", "--profile", "work").code == 0
    assert call("queues", "list", settings={"HEADRACE_PROFILE": "work"}).code == 0
    # Its key goes to its own server alone, whatever else names one.
    elsewhere = call("queues", "list", "--profile", "work", settings={"HEADRACE_URL": "http://127.0.0.1:1"})
    assert elsewhere.complaint.startswith("No API key"), elsewhere.complaint
    assert "has a url and a key" in call("queues", "list", "--profile", "half").complaint
    assert "there is: work, half" in call("queues", "list", "--profile", "home").complaint


def test_a_server_that_is_named_wrongly(call: Call) -> None:
    assert call("tasks", "list", "--url", "http://127.0.0.1:1").complaint.startswith("No API key: set HEADRACE_API_KEY")
    assert call("tasks", "list", "--key", "k").complaint == "--key is for a server elsewhere: say which with --url."
    refused = call("tasks", "list", "--url", "headrace.example", "--key", "k", "--json")
    assert (refused.code, json.loads(refused.out)["code"]) == (2, "invalid")
    usage = call("tasks", "list", "--stauts", "QUEUED", "--json")
    problem = json.loads(usage.out)
    assert (usage.code, problem["status"], "--status" in problem["detail"]) == (2, 400, True)
