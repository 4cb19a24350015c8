"""Every route of the API has a verb of the client, or a reason why not; and the verbs send what their routes take."""

import inspect
import json
import re
import typing
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import UnionType
from typing import Any, NamedTuple

import httpx2
import pytest

from headrace.assembly import description
from headrace.cli.python_page import parts_of
from headrace.client import Client, Lock, NewEndpoint, NewSchedule, NewTask, RetryPolicy

_CONSOLE = "for the console, whose pages show it"
_BROWSER = "a person logs in and out with a browser; the client has an API key"
_DOWNLOADS = "for spreadsheets and browsers; `{}` gives the same to programs"
REASONS = {
    "follow_changes": "a stream for the console's lists",
    "get_views": _CONSOLE,
    "get_user_names": _CONSOLE,
    "list_failures": _CONSOLE,
    "list_user_sessions": _CONSOLE,
    "revoke_user_session": _CONSOLE,
    "list_user_api_keys": _CONSOLE,
    "revoke_user_api_key": _CONSOLE,
    "set_views": _CONSOLE,
    "read_page": _CONSOLE,
    "read_preview": _CONSOLE,
    "read_result_page": _CONSOLE,
    "get_order_qr_code": "`code_url` of an order is the content of the picture",
    "log_in": _BROWSER,
    "log_in_with_wechat": _BROWSER,
    "log_out": _BROWSER,
    "register": _BROWSER,
    "change_password": _BROWSER,
    "change_me": _BROWSER,
    "forgot_password": _BROWSER,
    "reset_password": _BROWSER,
    "change_email": _BROWSER,
    "confirm_email": _BROWSER,
    "get_second_factor": _BROWSER,
    "begin_second_factor": _BROWSER,
    "enable_second_factor": _BROWSER,
    "disable_second_factor": _BROWSER,
    "make_recovery_codes": _BROWSER,
    "delete_me": "takes the password of a person; `deletions.order` is for administrators",
    "take_wechat_pay_notice": "WeChat Pay calls it",
    "read_link": "a link is read without an account, by any HTTP client",
    "read_archive": _DOWNLOADS.format("files.download_result"),
    "export_audit_events": _DOWNLOADS.format("audit.list"),
    "export_usage": _DOWNLOADS.format("usage.list"),
}
# Verbs that send the requests of other verbs.
COMPOSED = {"client.wait", "client.close", "locks.hold"}


class Operation(NamedTuple):
    method: str
    path: re.Pattern[str]
    described: Mapping[str, Any]


class Sent(Exception):
    """A request was recorded: its verb need not go on."""


class Recorder(httpx2.AsyncBaseTransport):
    """Remembers requests. It answers only those after which a verb sends another one."""

    def __init__(self) -> None:
        self.requests: list[httpx2.Request] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        if request.method == "GET" and re.fullmatch(r"/v1/(assets/x|tasks/x/result)", request.url.path):
            return httpx2.Response(200, json={"id": "x", "size_bytes": 1, "created_at": "2026-01-01T00:00:00Z"})
        raise Sent


def _of_type(kind: Any, folder: Path) -> Any:
    values: dict[Any, Any] = {
        str: "x",
        int: 1,
        bytes: b"x",
        datetime: datetime(2026, 1, 1, tzinfo=UTC),
        timedelta: timedelta(seconds=1),
        Path | str: folder / "file",
        NewTask: NewTask("report"),
        NewSchedule: NewSchedule("Nightly", "report", cron="0 2 * * *"),
        NewEndpoint: NewEndpoint("Mine", "https://receiver.example", ["task.created"]),
        Lock: Lock.of({"key": "x", "token": "x"}),
    }
    if kind in values:
        return values[kind]
    options = typing.get_args(kind)
    if typing.get_origin(kind) in (typing.Union, UnionType):
        return _of_type(options[0], folder)
    if typing.get_origin(kind) is Sequence:
        return [_of_type(options[0], folder)]
    return {"x": "x"} if typing.get_origin(kind) is Mapping else None


def _verbs(client: Client) -> Iterator[tuple[str, Any]]:
    for part in ("client", *parts_of(Client)):
        owner = client if part == "client" else getattr(client, part)
        for name, verb in inspect.getmembers(owner, inspect.ismethod):
            if not name.startswith("_") and f"{part}.{name}" not in COMPOSED:
                yield f"{part}.{name}", verb


def _arguments(verb: Any, folder: Path, *, optional: bool) -> dict[str, Any]:
    kinds = typing.get_type_hints(verb)
    return {
        each.name: _of_type(kinds[each.name], folder)
        for each in inspect.signature(verb).parameters.values()
        if each.kind is not each.VAR_KEYWORD and (optional or each.default is each.empty)
    }


async def _send(verb: Any, folder: Path, *, optional: bool = False) -> None:
    """Call the verb until its first request that is not answered."""
    made = verb(**_arguments(verb, folder, optional=optional))
    with suppress(Sent):
        if inspect.isasyncgen(made):
            await anext(made)
        else:
            await made


@pytest.fixture(scope="module")
def document() -> Mapping[str, Any]:
    return description.whole()


@pytest.fixture(scope="module")
def operations(document: Mapping[str, Any]) -> Mapping[str, Operation]:
    return {
        operation["operationId"]: Operation(method.upper(), re.compile(re.sub(r"{\w+}", "[^/]+", path)), operation)
        for path, methods in document["paths"].items()
        if path.startswith("/v1/")
        for method, operation in methods.items()
    }


@pytest.fixture
async def recorded(tmp_path: Path) -> AsyncIterator[tuple[Client, Recorder]]:
    recorder = Recorder()
    with (tmp_path / "file").open("wb") as large:
        large.truncate(8 * 1024 * 1024)  # larger than one request: the upload looks for an unfinished one
    async with Client("http://headrace.test", "k", retry=RetryPolicy(retries=0), transport=recorder) as client:
        yield client, recorder


def _operation_of(request: httpx2.Request, operations: Mapping[str, Operation]) -> str:
    fitting = [
        name
        for name, each in operations.items()
        if each.method == request.method and each.path.fullmatch(request.url.path)
    ]
    # `/v1/tasks/count` also fits `/v1/tasks/{task_id}`: the one with fewer parameters is meant.
    return min(fitting, key=lambda name: operations[name].path.pattern.count("[^/]+"))


async def test_every_route_has_a_verb_or_a_reason(
    recorded: tuple[Client, Recorder], operations: Mapping[str, Operation], tmp_path: Path
) -> None:
    client, recorder = recorded
    for _, verb in _verbs(client):
        await _send(verb, tmp_path)
    reached = {_operation_of(request, operations) for request in recorder.requests}
    without = operations.keys() - reached
    assert without - REASONS.keys() == set(), "give these a verb, or say here why they have none"
    assert REASONS.keys() - without == set(), "these have a verb, or are gone"


async def test_verbs_send_only_what_their_routes_take(
    recorded: tuple[Client, Recorder],
    operations: Mapping[str, Operation],
    document: Mapping[str, Any],
    tmp_path: Path,
) -> None:
    client, recorder = recorded
    for name, verb in _verbs(client):
        recorder.requests.clear()
        await _send(verb, tmp_path, optional=True)
        for request in recorder.requests:
            operation = operations[_operation_of(request, operations)].described
            known = {each["name"] for each in operation.get("parameters", ()) if each["in"] == "query"}
            assert not set(request.url.params) - known, name
            content = operation.get("requestBody", {}).get("content", {}).get("application/json")
            if content is not None and request.content:
                schemas = re.findall(r'"#/components/schemas/(\w+)"', json.dumps(content))
                fields = {field for each in schemas for field in document["components"]["schemas"][each]["properties"]}
                assert not set(json.loads(request.content)) - fields, name
