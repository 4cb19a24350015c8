# ruff: noqa: E501
"""Users' text on an operator's terminal: shown in every list and show command, never obeyed.

A name with ``[/x]`` ended `schedules list`, `locks list`, `webhooks list`, `keys list --user` and `tasks show` with
exit code 1; sequences that clear the screen, write the clipboard or make a link passed as they were.
"""

import io
import logging
import re
import unicodedata

import pytest
import typer.main
from pydantic import TypeAdapter, ValidationError

from headrace import ids, logs
from headrace.cli import terminal
from headrace.cli.app import app
from headrace.cli.terminal import json_escaped
from headrace.edge.text import Line
from headrace.visible import make_visible
from tests.cli.conftest import Call, Place
from tests.cli.test_audited import commands
from tests.conftest import TestServer

# Markup of rich, clear screen, clipboard (OSC 52), hyperlink (OSC 8), a C1 control, a mark of direction, a line end.
HOSTILE = "[/x][bold]\x1b[2J\x1b]52;c;cm0gLXJm\x07\x1b]8;;http://evil.example\x1b\\\x9b31m\u202egpj.exe\nroot"
SHOWN = "[/x][bold]\\x1b[2J"

_KINDS = {"user": "u", "task": "tsk", "key": "key", "endpoint": "whe", "schedule": "sch", "run": "exe", "event": "evt",
          "delivery": "whd", "plan": "pln", "subscription": "sub", "entitlement": "ent", "order": "ord", "audited": "aud",
          "asset": "ast"}  # fmt: skip
# :text is the hostile text, :short the beginning of it, :json an object that holds it.
_INSERTS = (
    "INSERT INTO headrace.users (id, username, email, password_hash) VALUES (:user, 'ada', :text, '!')",
    "INSERT INTO headrace.api_keys (id, user_id, name, key_hash, key_hint)"
    " VALUES (:key, :user, :short, sha256('x'), 'hint')",
    "INSERT INTO headrace.task_types (name, description) VALUES (:text, :text)",
    "INSERT INTO headrace.tasks (id, user_id, task_type, title, status, error_message, error_code, finished_at, payload,"
    " result, labels, limit_key, trace_id)"
    " VALUES (:task, :user, :text, :text, 'FAILED', :text, 'X', now(), :json, :json, :json, :text, :short)",
    "INSERT INTO headrace.task_logs (task_id, status, message) VALUES (:task, 'LOG', :text)",
    "INSERT INTO headrace.task_steps (task_id, step_name, status, detail_json) VALUES (:task, 'INPAINTING', 'SUCCESS', :json)",
    "INSERT INTO headrace.scheduled_tasks (uid, name, type, user_id, description, enabled, labels, data)"
    " VALUES (:schedule, :text, :text, :user, :text, false, :json, :json)",
    "INSERT INTO headrace.task_executions (task_uid, task_name, task_type, execution_uid, run_by, scheduled_at,"
    " started_at, finished_at, state, result, error_message, error_stack, trigger_type, trigger_by, user_id)"
    " VALUES (:schedule, :text, :text, :run, :text, now(), now(), now(), 'failure', :text, :text, :text, 'manual',"
    " :text, :user)",
    "INSERT INTO headrace.task_locks (lock_key, fence, holder_id, token, state, acquired_at, expires_at, user_id)"
    " VALUES (:text, 1, :text, 'token', 'active', now(), now() + interval '1 hour', :user)",
    "INSERT INTO headrace.webhook_endpoints (id, user_id, name, url, status, secret_ciphertext)"
    " VALUES (:endpoint, :user, :short, 'https://example.com/', 'PAUSED', 'x')",
    "INSERT INTO headrace.webhook_deliveries (period, delivery_id, endpoint_id, event_id, event_type, attempt,"
    " request_headers, request_body, response_status, response_body, status, error, next_retry_at)"
    " VALUES (headrace.typeid_month(:event), :delivery, :endpoint, :event, :short, 1, :json, :json, 500, :text,"
    " 'DEAD', :text, NULL)",
    "INSERT INTO headrace.outbox_events (event_id, event_type, event_version, aggregate_type, aggregate_id, trace_id,"
    " payload_json, headers_json, status)"
    " VALUES (:event, :short, 1, :short, :short, :short, :json, :json, 'DEAD')",
    "INSERT INTO headrace.event_interests (consumer, pattern) VALUES (:short, '*')",
    "INSERT INTO headrace.plans (id, name, price_cents, monthly_quota, features_json) VALUES (:plan, :short, 1, 1,"
    " jsonb_build_array(jsonb_build_object('feature', 'label', 'text', :text)))",
    "INSERT INTO headrace.subscriptions (id, user_id, plan_id, status, channel, external_order_id, meta_json)"
    " VALUES (:subscription, :user, :plan, 'PENDING', 'WECHAT_PAY', :short, :json)",
    "INSERT INTO headrace.payment_orders (id, user_id, plan_id, subscription_id, kind, method, status, description,"
    " amount_cents, currency, units, features_json, problem, expires_at)"
    " VALUES (:order, :user, :plan, :subscription, 'PURCHASE', 'NATIVE', 'CLOSED', :text, 1, 'CNY', 1, '[]',"
    " :short, now())",
    "INSERT INTO headrace.entitlements (id, user_id, plan_id, quota_total, quota_left, period_start, period_end, status)"
    " VALUES (:entitlement, :user, :plan, 1, 1, now(), now() + interval '1 day', 'ACTIVE')",
    "INSERT INTO headrace.usage_ledger (id, period, user_id, entitlement_id, consume_unit, direction, status, source,"
    " idempotency_key, remark) SELECT given.id, headrace.typeid_month(given.id), :user, :entitlement, 1, 'CREDIT',"
    " 'COMMITTED', 'MANUAL_ADJUST', to_char(headrace.typeid_month(given.id), 'YYYYMM') || ':' || :text, :text"
    " FROM (SELECT headrace.new_id('led') AS id) AS given",
    "INSERT INTO headrace.assets (id, user_id, media_type, origin_name, mime_type, size_bytes, storage_key)"
    " VALUES (:asset, :user, 'IMAGE', :text, 'image/png', 1, 'k')",
    "INSERT INTO headrace.queues (name) VALUES (:short)",
    "INSERT INTO headrace.workers (id, host, pid, queues, types, labels, concurrency, lease)"
    " VALUES ('wrk_x', :text, 1, ARRAY[:text], ARRAY[:text], :json, 1, interval '1 hour')",
    "INSERT INTO headrace.system_configs (config_key, config_value) VALUES (:text, :json)",
    "INSERT INTO headrace.system_configs (config_key, config_value) VALUES ('announcement', :json)",
    "INSERT INTO headrace.tech_risk_ledger (risk_id, category, severity, status, trigger_condition, mitigation_plan,"
    " owner, refs_json) VALUES ('R-1', 'COST', 'HIGH', 'OPEN', :text, :text, :short,"
    " jsonb_build_object('trace_ids', jsonb_build_array('abc')))",
    'INSERT INTO headrace.audit_events (id, timestamp, action, resource_type, resource, "user", client_ip, user_agent,'
    " request_method, request_id, data, diff_object, created_at, actor_type, trace_id) SELECT given.id, given.ms,"
    " 'updated', 'task', jsonb_build_object('type', 'task', 'identifier', :text, 'data', jsonb_build_object('name', :text)),"
    " jsonb_build_object('uid', :user, 'username', :text, 'type', 'user'), NULL, :text, 'POST', :short, :json, NULL,"
    " to_timestamp(given.ms / 1000.0), 'USER', 'abc'"
    " FROM (SELECT :audited AS id, headrace.typeid_millis(:audited) AS ms) AS given",
    "INSERT INTO headrace.account_deletions (id, user_id, requested_by, status_before, due_at, next_try_at, obstacle)"
    " VALUES ('del_x', :user, :user, 'ACTIVE', now(), now(), :text)",
    "INSERT INTO headrace.archives (id, table_name, period, state, location, row_count, min_id, max_id, min_at, max_at,"
    " size_bytes, sha256, archived_at) VALUES ('arc_x', 'audit_events', '2024-01-01', 'ARCHIVED', :text, 1, :text, :text,"
    " now(), now(), 1, repeat('0', 64), now())",
)
COMMANDS: dict[str, list[str]] = {
    "admin deletions": [],
    "archive list": [],
    "audit list": [],
    "audit show": [":audited"],
    "configs keys": [],
    "configs list": [],
    "configs show": ["announcement"],
    "executions list": [],
    "executions show": [":run"],
    "executions why": [":run"],
    "keys list": ["--user", "ada"],
    "ledger entitlements": [],
    "ledger list": [],
    "locks list": [],
    "outbox list": [],
    "outbox show": [":event"],
    "outbox status": [],
    "outbox types": [],
    "partitions list": [],
    "plans list": [],
    "plans show": [":plan"],
    "queues list": [],
    "risks board": [],
    "risks list": [],
    "risks show": ["R-1"],
    "risks traces": ["R-1"],
    "schedules list": [],
    "schedules next": [":schedule"],
    "schedules show": [":schedule"],
    "schedules statistics": [":schedule"],
    "stats": [],
    "subscriptions list": [],
    "subscriptions orders": [],
    "subscriptions show": [":subscription"],
    "tasks list": [],
    "tasks logs": [":task"],
    "tasks show": [":task"],
    "tasks types": [],
    "tasks why": [":task"],
    "usage balance": ["ada"],
    "usage days": ["ada"],
    "usage list": ["ada"],
    "users list": [],
    "users show": ["ada"],
    "webhooks deliveries": [],
    "webhooks delivery": [":delivery"],
    "webhooks list": [],
    "webhooks show": [":endpoint"],
    "webhooks stats": [":endpoint"],
    "workers": [],
}
_VERBS = {"list", "show", "why", "logs", "next", "statistics", "stats", "deliveries", "delivery", "status", "types",
          "board", "traces", "orders", "entitlements", "deletions", "keys", "balance", "days", "workers"}  # fmt: skip
# Over the API alone, by the same functions; and what the operator has set.
# Commands that show numbers and ids alone, or a value as JSON, which has escapes of its own.
_WITHOUT_TEXT = {"archive list", "audit show", "configs keys", "configs show", "executions why", "ledger entitlements",
                 "outbox show", "outbox status", "outbox types", "partitions list", "schedules next",
                 "schedules statistics", "stats", "subscriptions list", "subscriptions show", "tasks why",
                 "usage balance", "usage days", "users list", "webhooks stats"}  # fmt: skip
_ELSEWHERE = {"files list", "files show", "settings show"}


@pytest.fixture
async def named(server: TestServer, migrated: Place) -> dict[str, str]:
    """Ids of rows in a database in which every text is hostile, as another program's SQL can write it."""
    made = {name: ids.new(kind) for name, kind in _KINDS.items()}
    values = {name: f"'{value}'" for name, value in made.items()}
    quoted = HOSTILE.replace("\\", "\\\\").replace("'", "''")
    values |= {
        "text": f"E'{quoted}'",
        "short": f"left(E'{quoted}', 64)",
        "json": f"jsonb_build_object('a', E'{quoted}')",
    }
    for statement in _INSERTS:
        filled = re.sub(r":([a-z]+)\b", lambda found: values.get(found[1], found[0]), statement)
        await server.run(filled, database=migrated.name)
    return made


def test_every_list_and_show_command_is_tried() -> None:
    there = {name for name in commands(typer.main.get_group(app)) if name.split()[-1] in _VERBS}
    assert there - COMMANDS.keys() == _ELSEWHERE


@pytest.mark.long
def test_hostile_names_are_shown_and_not_obeyed(call: Call, migrated: Place, named: dict[str, str]) -> None:
    shown = set()
    for command, given in COMMANDS.items():
        arguments = [named.get(each.removeprefix(":"), each) for each in given]
        for json in ((), ("--json",)):
            done = call(*command.split(), *arguments, *json, settings=migrated.settings)
            if json and "No such option: --json" in done.err:  # it prints JSON anyway
                continue
            assert done.code == 0, (command, done.err)
            printed = done.out + done.err
            unsafe = [char for char in printed if unicodedata.category(char) in ("Cc", "Cf") and char not in "\n\t"]
            assert unsafe == [], (command, json)
            if SHOWN in printed:
                shown.add(command)
    assert COMMANDS.keys() - shown == _WITHOUT_TEXT


def test_an_export_is_shown_on_a_terminal_and_kept_byte_for_byte_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    for is_terminal, expected in ((True, "水 \\x1b[2J\\u202e"), (False, "水 \x1b[2J\u202e")):
        out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
        monkeypatch.setattr(out, "isatty", lambda is_terminal=is_terminal: is_terminal)
        monkeypatch.setattr("sys.stdout", out)
        stream = terminal.standard_output()
        for byte in "水 \x1b[2J\u202e".encode():  # parts end anywhere
            stream.write(bytes([byte]))
        stream.flush()
        assert out.buffer.getvalue().decode() == expected


def test_log_lines_for_people_show_what_handlers_say(capfd: pytest.CaptureFixture[str]) -> None:
    logs.configure(format="human", level="INFO")
    try:
        raise ValueError(HOSTILE)
    except ValueError:
        logs.get("test").exception("task.failed", error=HOSTILE)
        logging.getLogger("theirs").exception("%s", HOSTILE)
    said = capfd.readouterr().err
    assert said.count(SHOWN) == 3  # and once as a literal
    assert [char for char in said if unicodedata.category(char) in ("Cc", "Cf") and char != "\n"] == []


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
