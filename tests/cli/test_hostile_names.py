"""Users' text on an operator's terminal: shown in every list and show command, never obeyed.

A name with ``[/x]`` ended `schedules list`, `locks list`, `webhooks list`, `keys list --user` and `tasks show` with
exit code 1; sequences that clear the screen, write the clipboard or make a link passed as they were.
"""

import unicodedata

import pytest
from pydantic import TypeAdapter, ValidationError

from headrace import ids
from headrace.cli.terminal import json_escaped, make_visible
from headrace.edge.text import Line
from tests.cli.conftest import Call, Place
from tests.conftest import TestServer

# Markup of rich, clear screen, clipboard (OSC 52), hyperlink (OSC 8), a C1 control, a mark of direction, a line end.
HOSTILE = "[/x][bold]\x1b[2J\x1b]52;c;cm0gLXJm\x07\x1b]8;;http://evil.example\x1b\\\x9b31m\u202egpj.exe\nroot"
SHOWN = "[/x][bold]\\x1b[2J"

_USER, _TASK, _KEY, _ENDPOINT = (ids.new(kind) for kind in ("u", "tsk", "key", "whe"))
_INSERTS = (
    "INSERT INTO headrace.users (id, username, password_hash) VALUES ($2, 'ada', '!')",
    "INSERT INTO headrace.api_keys (id, user_id, name, key_hash, key_hint)"
    " VALUES ($3, $2, left($1, 64), sha256('x'), 'hint')",
    "INSERT INTO headrace.tasks (id, user_id, task_type, title, status, error_message, error_code, finished_at)"
    " VALUES ($3, $2, $1, $1, 'FAILED', $1, 'X', now())",
    "INSERT INTO headrace.scheduled_tasks (uid, name, type, user_id, enabled) VALUES ($3, $1, $1, $2, false)",
    "INSERT INTO headrace.task_locks (lock_key, fence, holder_id, token, state, acquired_at, expires_at, user_id)"
    " VALUES ($1, 1, $2, $3, 'active', now(), now() + interval '1 hour', $2)",
    "INSERT INTO headrace.webhook_endpoints (id, user_id, name, url, status, secret_ciphertext)"
    " VALUES ($3, $2, left($1, 64), 'https://example.com/', 'PAUSED', 'x')",
    "INSERT INTO headrace.plans (id, name, price_cents, monthly_quota) VALUES ($3, left($1, 64), 1, 1)",
    "INSERT INTO headrace.assets (id, user_id, media_type, origin_name, mime_type, size_bytes, storage_key)"
    " VALUES ($3, $2, 'IMAGE', $1, 'image/png', 1, 'k')",
    "INSERT INTO headrace.queues (name) VALUES (left($1, 64))",
)
_QUOTED = str.maketrans({"\\": "\\\\", "'": "''"})
COMMANDS = [
    ("users", "list"),
    ("keys", "list", "--user", "ada"),
    ("tasks", "list"),
    ("tasks", "show", _TASK),
    ("tasks", "why", _TASK),
    ("tasks", "logs", _TASK),
    ("schedules", "list"),
    ("locks", "list"),
    ("webhooks", "list"),
    ("webhooks", "show", _ENDPOINT),
    ("plans", "list"),
    ("queues", "list"),
    ("workers",),
    ("audit", "list"),
    ("outbox", "list"),
    ("executions", "list"),
    ("ledger", "list"),
    ("subscriptions", "list"),
    ("risks", "list"),
    ("configs", "list"),
]


@pytest.fixture
async def hostile(server: TestServer, migrated: Place) -> Place:
    """A database in which every name is hostile, as another program's SQL can write it."""
    for statement in _INSERTS:
        filled = statement
        for number, value in enumerate((HOSTILE, _USER, _id_for(statement)), start=1):
            filled = filled.replace(f"${number}", f"E'{value.translate(_QUOTED)}'")
        await server.run(filled, database=migrated.name)
    return migrated


def test_hostile_names_are_shown_and_not_obeyed(call: Call, hostile: Place) -> None:
    shown = []
    for command in COMMANDS:
        for json in ((), ("--json",)):
            done = call(*command, *json, settings=hostile.settings)
            assert done.code == 0, (command, done.err)
            printed = done.out + done.err
            unsafe = [char for char in printed if unicodedata.category(char) in ("Cc", "Cf") and char not in "\n\t"]
            assert unsafe == [], (command, json)
            if SHOWN in printed:
                shown.append(command)
    assert {command[0] for command in shown} >= {"keys", "tasks", "schedules", "locks", "webhooks", "plans"}


def _id_for(statement: str) -> str:
    made = {"headrace.tasks": _TASK, "webhook_endpoints": _ENDPOINT}
    return next((each for part, each in made.items() if part in statement), ids.new("x"))


@pytest.mark.parametrize("name", ["a\x1b[2J", "a\nb", "\x9b1m", "a\u202eb", "a\u2028b", "\x7f"])
def test_names_with_control_characters_are_refused_at_the_edge(name: str) -> None:
    with pytest.raises(ValidationError, match="one line"):
        TypeAdapter(Line).validate_python(name)


def test_other_scripts_and_emoji_are_names() -> None:
    for name in ("水头 №7", "שלום", "عربي", "👩‍💻 build", "[draft] report"):
        assert TypeAdapter(Line).validate_python(name) == name
        assert make_visible(name) == name


def test_escaped_json_is_the_same_value() -> None:
    import orjson

    value = {HOSTILE: [HOSTILE, "\U000e0041", "水"]}
    assert orjson.loads(json_escaped(orjson.dumps(value))) == value
