"""``headrace doctor`` finds what is wrong, says what to do, and tells scripts by its exit code."""

import json
import socket
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pytest

from headrace import ids
from tests.cli.conftest import Call, Place
from tests.cli.test_admin import fetch
from tests.conftest import TestServer
from tests.e2e.program import Done


def findings(done: Done) -> dict[str, dict[str, Any]]:
    found = json.loads(done.out)
    assert len({entry["check"] for entry in found}) == len(found), "one line for each check"
    return {entry["check"]: entry for entry in found}


def with_password(url: str, password: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=f"{parts.username}:{password}@{parts.hostname}:{parts.port}"))


@pytest.mark.both
def test_all_is_well(call: Call, migrated: Place) -> None:
    done = call("doctor", "--json", settings=migrated.settings)
    found = findings(done)
    assert done.code == 0, done.out
    assert list(found) == [
        "settings",
        "storage",
        "files",
        "secret key",
        "database",
        "schema",
        "version",
        "release",
        "clock",
        "rights",
        "partitions",
        "sealing",
        "deletions",
        "vacuum",
        "tasks",
        "locks",
        "outbox",
        "webhooks",
        "ledger",
        "payments",
        "retention",
    ]
    found.pop("release")  # the server of the tests may be behind
    assert {entry["verdict"] for entry in found.values()} == {"ok"}, done.out
    assert "headrace_app" in found["rights"]["message"]


def test_a_secret_key_that_is_lost_is_told_from_one_that_was_never_made(call: Call, migrated: Place) -> None:
    keyless = {name: value for name, value in migrated.settings.items() if name != "HEADRACE_SECRET_KEY"}
    never = findings(call("doctor", "--json", settings=keyless))["secret key"]
    assert (never["verdict"], never["message"].partition(":")[0]) == ("warning", "none yet")
    assert call("admin", "create", "ada", settings=migrated.settings).code == 0
    done = call("doctor", "--json", settings=keyless)
    lost = findings(done)["secret key"]
    assert (done.code, lost["verdict"]) == (0, "warning")
    assert "secret.key is missing" in lost["message"]
    assert "Put the file back" in lost["message"]


OLD_EVENT = """
INSERT INTO headrace.outbox_events
  (event_id, event_type, event_version, aggregate_type, aggregate_id, payload_json, status, created_at)
VALUES ('evt_1', 'task.created', 1, 'task', 'tsk_1', '{}', 'PENDING', now() - interval '2 hours')
"""


def test_events_that_nobody_relays_or_that_were_given_up_are_noticed(call: Call, migrated: Place) -> None:
    fetch(migrated, OLD_EVENT)
    outbox = findings(call("doctor", "--json", settings=migrated.settings))["outbox"]
    assert outbox["verdict"] == "warning"
    assert "waited for 2:00:" in outbox["message"]
    assert "no relay is at work: start `headrace relay`" in outbox["message"]
    fetch(migrated, "UPDATE headrace.outbox_events SET status = 'DEAD'")
    outbox = findings(call("doctor", "--json", settings=migrated.settings))["outbox"]
    assert "1 events were given up" in outbox["message"]
    listed = call("outbox", "list", "--status", "DEAD", "--json", settings=migrated.settings)
    assert [event["id"] for event in json.loads(listed.out)] == ["evt_1"]
    assert "1 events are tried again" in call("outbox", "revive", "evt_1", settings=migrated.settings).err
    shown = json.loads(call("outbox", "status", "--json", settings=migrated.settings).out)
    assert (shown["waiting"], shown["dead"]) == (1, 0)
    assert json.loads(call("outbox", "show", "evt_1", settings=migrated.settings).out)["status"] == "PENDING"
    assert json.loads(call("outbox", "revive", "--all", "--json", settings=migrated.settings).out) == {"revived": 0}
    assert "task.succeeded" in call("outbox", "types").out


OLD_AUDIT_EVENT = """
INSERT INTO headrace.audit_events (id, "timestamp", created_at, action, resource_type, resource, "user", actor_type)
SELECT '{id}', millis, headrace.instant_of_millis(millis), 'read', 'task', '{{"type": "task", "identifier": "x"}}',
       '{{"uid": "u", "type": "user"}}', 'USER'
FROM headrace.typeid_millis('{id}') AS millis
"""


def test_sealing_that_stands_still_is_noticed(call: Call, migrated: Place) -> None:
    fetch(migrated, OLD_AUDIT_EVENT.format(id=ids.new("aud", at=datetime.now(UTC) - timedelta(hours=2))))
    found = findings(call("doctor", "--json", settings=migrated.settings))["sealing"]
    assert (found["verdict"], found["message"][:44]) == ("warning", "the audit trail has not been sealed for 2:00")
    assert call("audit", "seal", settings=migrated.settings).out == "1 event sealed in 1.\n"
    assert findings(call("doctor", "--json", settings=migrated.settings))["sealing"]["verdict"] == "ok"


def test_accounts_that_should_be_gone_are_noticed(call: Call, migrated: Place) -> None:
    call("admin", "create", "root", settings=migrated.settings)
    call("admin", "create", "ada", settings=migrated.settings)
    call("admin", "delete", "ada", "--yes", settings=migrated.settings)
    assert findings(call("doctor", "--json", settings=migrated.settings))["deletions"]["verdict"] == "ok"
    fetch(migrated, "UPDATE headrace.account_deletions SET due_at = now() - interval '2 hours'")
    found = findings(call("doctor", "--json", settings=migrated.settings))["deletions"]
    assert (found["verdict"], found["message"][:10]) == ("warning", "1 accounts")


def test_for_people_it_is_one_line_for_each_check(call: Call, migrated: Place) -> None:
    done = call("doctor", settings=migrated.settings)
    assert done.code == 0
    assert {line[0] for line in done.out.splitlines() if "release" not in line} == {"✓"}
    assert "\x1b" not in done.out


def test_a_wrong_password(call: Call, migrated: Place) -> None:
    done = call(
        "doctor",
        "--json",
        settings={**migrated.settings, "HEADRACE_DATABASE_URL": with_password(migrated.owner_url, "guessed")},
    )
    assert done.code == 1
    assert findings(done)["database"]["verdict"] == "bad"
    assert "refuses the user or the password: check HEADRACE_DATABASE_URL" in findings(done)["database"]["message"]
    assert "guessed" not in done.out + done.err


def test_a_database_that_is_not_there(call: Call, migrated: Place) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    settings = {**migrated.settings, "HEADRACE_DATABASE_URL": f"postgresql://u:p@127.0.0.1:{port}/headrace"}
    done = call("doctor", settings=settings)
    assert done.code == 1
    (line,) = [line for line in done.out.splitlines() if line.startswith("✗")]
    assert f"PostgreSQL at 127.0.0.1:{port}/headrace cannot be reached: start it" in line


def test_a_schema_that_is_behind(call: Call, migrated: Place) -> None:
    call("migrate", "--down", "--yes", settings=migrated.settings)
    done = call("doctor", "--json", settings=migrated.settings)
    assert done.code == 1
    assert findings(done)["schema"]["verdict"] == "bad"
    assert "run `headrace migrate`" in findings(done)["schema"]["message"]


def test_no_schema_at_all_still_gives_every_other_finding(call: Call, empty: Place) -> None:
    done = call("doctor", "--json", settings=empty.settings)
    assert done.code == 1, done.err
    assert "Traceback" not in done.err
    found = findings(done)
    assert "run `headrace migrate`" in found["schema"]["message"]
    assert (found["version"]["verdict"], found["clock"]["verdict"]) == ("ok", "ok")


def test_a_schema_from_the_future(call: Call, future: Place) -> None:
    done = call("doctor", "--json", settings=future.settings)
    assert done.code == 1
    assert "update the program" in findings(done)["schema"]["message"]


@pytest.fixture
async def edited(server: TestServer, migrated: Place) -> Place:
    await server.run(
        "UPDATE headrace.schema_migrations SET checksum = repeat('0', 64) WHERE number = 2", database=migrated.name
    )
    return migrated


def test_a_migration_edited_after_it_was_applied_is_a_warning(call: Call, edited: Place) -> None:
    done = call("doctor", "--json", settings=edited.settings)
    assert done.code == 0
    assert findings(done)["schema"]["verdict"] == "warning"
    assert "was edited after it was applied" in findings(done)["schema"]["message"]


def test_an_application_with_the_owner_s_rights_is_a_warning(call: Call, migrated: Place) -> None:
    done = call("doctor", "--json", settings={**migrated.settings, "HEADRACE_DATABASE_URL": migrated.owner_url})
    assert done.code == 0
    assert findings(done)["rights"]["verdict"] == "warning"
    assert "HEADRACE_DATABASE_OWNER_URL" in findings(done)["rights"]["message"]


def test_bad_settings(call: Call) -> None:
    done = call("doctor", "--json", settings={"HEADRACE_API_PORTT": "1"})
    assert done.code == 1
    assert list(findings(done)) == ["settings"]
    assert "did you mean HEADRACE_API_PORT?" in findings(done)["settings"]["message"]


def test_a_data_folder_that_cannot_be_made(call: Call, migrated: Place) -> None:
    done = call("doctor", "--json", settings={**migrated.settings, "HEADRACE_DATA_DIR": "/dev/null/data"})
    assert done.code == 1
    assert findings(done)["storage"]["verdict"] == "bad"
    assert findings(done)["database"]["verdict"] == "ok"


FAILING_ENDPOINT = """
WITH owner AS (
  INSERT INTO headrace.users (id, username, password_hash, role) VALUES ('u_1', 'ada', '!', 'USER') RETURNING id
)
INSERT INTO headrace.webhook_endpoints (id, user_id, name, url, status, status_reason, secret_ciphertext)
SELECT 'whe_1', id, 'mine', 'https://example.com', 'PAUSED', 'failing', '' FROM owner
"""


def test_endpoints_that_failed_for_days_are_noticed(call: Call, migrated: Place) -> None:
    fetch(migrated, FAILING_ENDPOINT)
    webhooks = findings(call("doctor", "--json", settings=migrated.settings))["webhooks"]
    assert webhooks["verdict"] == "warning"
    assert "1 endpoints are paused because they failed for days" in webhooks["message"]
