"""Every route of the API has a command, or a reason why not; and commands send requests to those routes."""

import ast
import re
from collections.abc import Iterator, Mapping
from importlib import import_module, util
from pathlib import Path
from typing import Any, cast

import pytest
import typer

from headrace.accounts import service
from headrace.assembly.inprocess import router_for
from headrace.cli.app import COMMANDS, app
from headrace.cli.later import Later
from headrace.cli.place import can_be_sent
from headrace.database import Database
from tests.web.test_schema import CHEAP, SECRET, build

COMMANDS_OF = {
    "GET /v1/admin/archives": "archive list",
    "GET /v1/admin/configs": "configs list",
    "GET /v1/admin/configs/keys": "configs keys",
    "DELETE /v1/admin/configs/{key}": "configs unset",
    "GET /v1/admin/configs/{key}": "configs show",
    "PUT /v1/admin/configs/{key}": "configs set",
    "GET /v1/admin/deletions": "admin deletions",
    "POST /v1/admin/entitlements/{entitlement_id}/adjust": "ledger adjust",
    "POST /v1/admin/ledger/verify": "ledger verify",
    "GET /v1/admin/outbox": "outbox status",
    "GET /v1/admin/outbox/events": "outbox list",
    "GET /v1/admin/outbox/events/{outbox_event_id}": "outbox show",
    "POST /v1/admin/outbox/events/{outbox_event_id}/revive": "outbox revive",
    "POST /v1/admin/outbox/revive": "outbox revive",
    "GET /v1/admin/partitions": "partitions list",
    "POST /v1/admin/partitions": "partitions ahead",
    "POST /v1/admin/payments/{order_id}/refund": "subscriptions refund",
    "POST /v1/admin/payments/{order_id}/resolve": "subscriptions resolve",
    "GET /v1/admin/plans": "plans list",
    "POST /v1/admin/plans": "plans add",
    "DELETE /v1/admin/plans/{plan_id}": "plans remove",
    "GET /v1/admin/plans/{plan_id}": "plans show",
    "PATCH /v1/admin/plans/{plan_id}": "plans change",
    "GET /v1/admin/risks": "risks list",
    "POST /v1/admin/risks": "risks add",
    "GET /v1/admin/risks/board": "risks board",
    "DELETE /v1/admin/risks/{risk_id}": "risks remove",
    "GET /v1/admin/risks/{risk_id}": "risks show",
    "PATCH /v1/admin/risks/{risk_id}": "risks change",
    "GET /v1/admin/risks/{risk_id}/traces": "risks traces",
    "GET /v1/admin/statistics": "stats",
    "POST /v1/removals/{task_id}/return": "usage return",
    "GET /v1/admin/users": "users list",
    "POST /v1/admin/users": "users create",
    "GET /v1/admin/users/{user_id}": "users show",
    "DELETE /v1/admin/users/{user_id}/deletion": "admin keep",
    "GET /v1/admin/users/{user_id}/deletion": "admin delete",
    "POST /v1/admin/users/{user_id}/deletion": "admin delete",
    "POST /v1/admin/users/{user_id}/password": "admin reset-password",
    "DELETE /v1/admin/users/{user_id}/second-factor": "admin disable-second-factor",
    "POST /v1/admin/users/{user_id}/reinstate": "users reinstate",
    "POST /v1/admin/users/{user_id}/role": "users role",
    "POST /v1/admin/users/{user_id}/suspend": "users suspend",
    "GET /v1/api-keys": "keys list",
    "POST /v1/api-keys": "keys create",
    "DELETE /v1/api-keys/{api_key_id}": "keys revoke",
    "GET /v1/assets": "files list",
    "POST /v1/assets": "files put",
    "DELETE /v1/assets/{asset_id}": "files delete",
    "GET /v1/assets/{asset_id}": "files show",
    "GET /v1/assets/{asset_id}/content": "files get",
    "POST /v1/assets/{asset_id}/links": "files link",
    "GET /v1/audit/events": "audit list",
    "GET /v1/audit/events/{event_id}": "audit show",
    "GET /v1/audit/events/{event_id}/proof": "audit proof",
    "GET /v1/audit/export": "audit export",
    "GET /v1/entitlements": "ledger entitlements",
    "GET /v1/event-types": "outbox types",
    "GET /v1/executions": "executions list",
    "GET /v1/executions/{execution_id}": "executions show",
    "POST /v1/executions/{execution_id}/cancel": "executions cancel",
    "GET /v1/executions/{execution_id}/why": "executions why",
    "GET /v1/locks": "locks list",
    "POST /v1/locks": "locks acquire",
    "POST /v1/locks/force-release": "locks force-release",
    "POST /v1/locks/release": "locks release",
    "POST /v1/locks/renew": "locks renew",
    "GET /v1/payments": "subscriptions orders",
    "POST /v1/payments/{order_id}/check": "subscriptions check",
    "GET /v1/queues": "queues list",
    "PUT /v1/queues/{name}/limit": "queues limit",
    "POST /v1/queues/{name}/pause": "queues pause",
    "POST /v1/queues/{name}/resume": "queues resume",
    "GET /v1/schedules": "schedules list",
    "POST /v1/schedules": "schedules create",
    "DELETE /v1/schedules/{schedule_id}": "schedules delete",
    "GET /v1/schedules/{schedule_id}": "schedules show",
    "PATCH /v1/schedules/{schedule_id}": "schedules update",
    "POST /v1/schedules/{schedule_id}/disable": "schedules disable",
    "POST /v1/schedules/{schedule_id}/enable": "schedules enable",
    "GET /v1/schedules/{schedule_id}/next": "schedules next",
    "POST /v1/schedules/{schedule_id}/run": "schedules run",
    "GET /v1/schedules/{schedule_id}/statistics": "schedules statistics",
    "GET /v1/subscriptions": "subscriptions list",
    "GET /v1/subscriptions/{subscription_id}": "subscriptions show",
    "POST /v1/subscriptions/{subscription_id}/cancel": "subscriptions cancel",
    "POST /v1/subscriptions/{subscription_id}/resume": "subscriptions resume",
    "GET /v1/task-types": "tasks types",
    "GET /v1/tasks": "tasks list",
    "POST /v1/tasks": "submit",
    "POST /v1/tasks/bulk": "tasks cancel",
    "GET /v1/tasks/bulk/{task_id}": "tasks cancel",
    "GET /v1/tasks/count": "tasks cancel",
    "DELETE /v1/tasks/{task_id}": "tasks delete",
    "GET /v1/tasks/{task_id}": "tasks show",
    "POST /v1/tasks/{task_id}/cancel": "tasks cancel",
    "GET /v1/tasks/{task_id}/logs": "tasks logs",
    "POST /v1/tasks/{task_id}/retry": "tasks retry",
    "GET /v1/tasks/{task_id}/steps": "tasks steps",
    "GET /v1/tasks/{task_id}/why": "tasks why",
    "GET /v1/uploads": "files put",
    "POST /v1/uploads": "files put",
    "GET /v1/uploads/{upload_id}": "files put",
    "POST /v1/uploads/{upload_id}/complete": "files put",
    "POST /v1/uploads/{upload_id}/links": "files put",
    "PUT /v1/uploads/{upload_id}/parts/{number}": "files put",
    "GET /v1/usage": "usage list",
    "GET /v1/usage/balance": "usage balance",
    "GET /v1/usage/days": "usage days",
    "GET /v1/usage/export": "usage export",
    "GET /v1/webhooks/deliveries": "webhooks deliveries",
    "GET /v1/webhooks/deliveries/{delivery_id}": "webhooks delivery",
    "POST /v1/webhooks/deliveries/{delivery_id}/resend": "webhooks resend",
    "GET /v1/webhooks/endpoints": "webhooks list",
    "POST /v1/webhooks/endpoints": "webhooks create",
    "DELETE /v1/webhooks/endpoints/{endpoint_id}": "webhooks delete",
    "GET /v1/webhooks/endpoints/{endpoint_id}": "webhooks show",
    "POST /v1/webhooks/endpoints/{endpoint_id}/pause": "webhooks pause",
    "POST /v1/webhooks/endpoints/{endpoint_id}/resend": "webhooks resend-failed",
    "POST /v1/webhooks/endpoints/{endpoint_id}/resume": "webhooks resume",
    "POST /v1/webhooks/endpoints/{endpoint_id}/rotate-secret": "webhooks rotate-secret",
    "GET /v1/webhooks/endpoints/{endpoint_id}/statistics": "webhooks stats",
    "POST /v1/webhooks/endpoints/{endpoint_id}/test": "webhooks test",
    "GET /v1/workers": "workers",
}

_ORDERS = "`headrace remove` works on this machine without an order; orders are for programs and the console"
_OWN = "for a person who is logged in: operators have `users` and `admin`"
_INBOX = "the inbox of a person who is logged in"
_RESULTS = "results of removals: for programs and the console; tasks of your own print theirs by `headrace tasks show`"
_BROWSER = "pictures and pages for browsers"

REASONS = {
    "GET /v1/assets/usage": "for the console's meter; `headrace files list` shows sizes",
    "GET /v1/admin/archives/{archive_id}": "`headrace archive list` shows the same of each",
    "POST /v1/admin/audit/verify": "`headrace audit verify` also reads archived months, which needs the machine",
    "GET /v1/admin/changes": "a stream for the console's lists",
    "GET /v1/admin/ledger/verification": "`headrace ledger verify` verifies now; `headrace doctor` reads the last",
    "GET /v1/admin/failures": "for the console; `headrace tasks list --status FAILED` lists the tasks",
    "GET /v1/admin/users/{user_id}/api-keys": "`headrace keys list --user`",
    "DELETE /v1/admin/users/{user_id}/api-keys/{api_key_id}": "`headrace keys revoke --user`",
    "GET /v1/admin/users/{user_id}/sessions": "the console's page of a user",
    "DELETE /v1/admin/users/{user_id}/sessions/{session_id}": "the console's; `headrace users suspend` ends all",
    "GET /v1/admin/users/names": "for the console, whose lists show ids; `headrace users list` has names",
    "GET /v1/admin/overview": "`headrace doctor`, `stats`, `queues list` and `workers` show its parts",
    "GET /v1/admin/settings": "`headrace settings show` shows those of this machine",
    "GET /v1/api-keys/{api_key_id}": "`headrace keys list` shows the same of each",
    "POST /v1/assets/{asset_id}/detect": _ORDERS,
    "GET /v1/assets/{asset_id}/pages/{page}": _BROWSER,
    "GET /v1/assets/{asset_id}/preview": _BROWSER,
    "POST /v1/auth/login": _OWN,
    "POST /v1/auth/logout": _OWN,
    "POST /v1/auth/password": _OWN,
    "POST /v1/auth/password/forgot": _OWN,
    "POST /v1/auth/password/reset": _OWN,
    "POST /v1/auth/email/confirm": _OWN,
    "POST /v1/auth/register": _OWN,
    "POST /v1/auth/wechat": _OWN,
    "GET /v1/capabilities": "for clients to adapt to, not for people",
    "GET /v1/content/{token}": "the target of a link that `headrace files link` makes",
    "GET /v1/entitlements/{entitlement_id}": "`headrace ledger entitlements` shows the same of each",
    "GET /v1/me": _OWN,
    "PATCH /v1/me": _OWN,
    "POST /v1/me/deletion": _OWN,
    "POST /v1/me/email": _OWN,
    "GET /v1/me/second-factor": _OWN,
    "POST /v1/me/second-factor": _OWN,
    "POST /v1/me/second-factor/enable": _OWN,
    "POST /v1/me/second-factor/disable": _OWN,
    "POST /v1/me/second-factor/recovery-codes": _OWN,
    "GET /v1/me/views": _OWN,
    "PUT /v1/me/views": _OWN,
    "GET /v1/notifications": _INBOX,
    "GET /v1/notifications/events": _INBOX,
    "GET /v1/notifications/language": _INBOX,
    "PUT /v1/notifications/language": _INBOX,
    "POST /v1/notifications/read-all": _INBOX,
    "GET /v1/notifications/unread-count": _INBOX,
    "POST /v1/notifications/{notification_id}/read": _INBOX,
    "POST /v1/payments/wechat/notify": "WeChat Pay sends its notices there",
    "GET /v1/payments/{order_id}": "`headrace subscriptions orders` shows the same of each",
    "GET /v1/payments/{order_id}/qr.png": _BROWSER,
    "GET /v1/plans": "`headrace plans list --offered`",
    "GET /v1/removals": _ORDERS,
    "POST /v1/removals": _ORDERS,
    "GET /v1/removals/not-ordered": _ORDERS,
    "POST /v1/removals/quote": _ORDERS,
    "GET /v1/removals/{task_id}": _ORDERS,
    "GET /v1/removals/{task_id}/held-back": _ORDERS,
    "GET /v1/results/archive": _RESULTS,
    "POST /v1/schedules/bulk": "the console's selection of rows; `headrace schedules enable` and `disable` change one",
    "POST /v1/schedules/preview": "`headrace cron` computes times without a server",
    "DELETE /v1/sessions": _OWN,
    "GET /v1/sessions": _OWN,
    "DELETE /v1/sessions/{session_id}": _OWN,
    "GET /v1/sessions/{session_id}": _OWN,
    "POST /v1/subscriptions": "buying is for the payer, who scans a code",
    "POST /v1/subscriptions/{subscription_id}/renew": "buying is for the payer, who scans a code",
    "POST /v1/tasks/batch": "for programs: a shell submits one",
    "GET /v1/tasks/bulk": "`headrace tasks list --internal --type headrace.bulk` lists the tasks that do them",
    "GET /v1/tasks/{task_id}/compare": _BROWSER,
    "GET /v1/tasks/{task_id}/events": "`headrace submit --wait` asks for the state instead",
    "GET /v1/tasks/{task_id}/preview": _BROWSER,
    "GET /v1/tasks/{task_id}/result": _RESULTS,
    "GET /v1/tasks/{task_id}/result/content": _RESULTS,
    "POST /v1/tasks/{task_id}/result/links": _RESULTS,
    "GET /v1/tasks/{task_id}/result/pages/{page}": _RESULTS,
    "DELETE /v1/uploads/{upload_id}": "an upload that is not completed goes after a day",
    "PATCH /v1/webhooks/endpoints/{endpoint_id}": "the console's form; by command: delete it and make another",
}


@pytest.fixture(scope="module")
def routes() -> set[str]:
    paths = build(cast("Database", None), service.open_accounts(CHEAP, secret=SECRET)).openapi()["paths"]
    return {f"{method.upper()} {path}" for path, methods in paths.items() for method in methods}


@pytest.fixture(scope="module")
def commands() -> Mapping[str, Any]:
    return dict(_commands(typer.main.get_group(app)))


def _commands(group: Any, *before: str) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        loaded = command.loaded if isinstance(command, Later) else command
        if hasattr(loaded, "commands"):
            yield from _commands(loaded, *before, name)
        else:
            yield " ".join((*before, name)), loaded


def test_every_route_has_a_command_or_a_reason(routes: set[str]) -> None:
    known = COMMANDS_OF.keys() | REASONS.keys()
    assert not routes - known, "give these a command, or say here why they have none"
    assert not known - routes, "these are gone"
    assert not COMMANDS_OF.keys() & REASONS.keys()


def test_each_of_these_commands_works_over_an_api(commands: Mapping[str, Any]) -> None:
    named = set(COMMANDS_OF.values())
    assert named <= commands.keys()
    assert not [name for name in named if not can_be_sent(commands[name])]


def test_each_of_these_commands_asks_for_its_route() -> None:
    """Its module builds a path of that form."""
    wrong = []
    for route, command in COMMANDS_OF.items():
        path = re.sub(r"\{\w+\}", "{}", route.partition(" ")[2])
        home = COMMANDS[command.split()[0]].home.partition(":")[0]
        if not command.startswith("files ") and not any(shape.fullmatch(path) for shape in _shapes(home, command)):
            wrong.append((route, command))
    assert not wrong


def _shapes(home: str, command: str) -> Iterator[re.Pattern[str]]:
    modules = (
        {home, "headrace.cli.many", "headrace.cli.deletions"} if command.split()[0] in {"tasks", "admin"} else {home}
    )
    for module in modules:
        spec = util.find_spec(module)
        assert spec is not None
        assert spec.origin is not None
        for node in ast.walk(ast.parse(Path(spec.origin).read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "path":
                parts = [str(part.value) if isinstance(part, ast.Constant) else None for part in node.args]
                yield re.compile("/v1/" + "/".join("[^/]+" if part is None else re.escape(part) for part in parts))


def test_each_route_with_a_command_is_served_in_this_process() -> None:
    for route in COMMANDS_OF:
        if not route.partition(" ")[2].startswith(("/v1/assets", "/v1/uploads")):
            router_for(route.partition(" ")[2])


def test_every_command_loads() -> None:
    for entry in COMMANDS.values():
        module, _, name = entry.home.partition(":")
        assert hasattr(import_module(module), name)


WITHOUT_JSON = {
    **dict.fromkeys(("up", "api", "scheduler", "relay"), "a process: what it notes are lines of a log"),
    **dict.fromkeys(("usage export", "audit export", "audit roots", "docs", "init"), "writes files"),
    **dict.fromkeys(("database psql", "database dump", "locks run"), "another program writes there"),
}


def test_every_command_takes_json(commands: Mapping[str, Any]) -> None:
    without = {
        name
        for name, command in commands.items()
        if "--json" not in {option for each in command.params for option in each.opts}
    }
    assert without == WITHOUT_JSON.keys()
