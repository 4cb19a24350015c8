"""The whole app against its own description: nothing that can be sent is answered with a 500, or in a way that is not
written down. Deterministic and short; `schemathesis run` against a running API looks further."""

import asyncio
import os
import socket
import tempfile
import threading
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

import httpx2
import pytest
import uvicorn
from fastapi import FastAPI

from headrace.access import Role
from headrace.accounts import registration, service
from headrace.accounts.config import AccountsConfig, PasswordConfig, ThrottleConfig
from headrace.accounts.service import Accounts
from headrace.admin.changes.live import Changes
from headrace.assembly.config_registry import config_keys, offer
from headrace.assembly.followers import followers
from headrace.assembly.routers import RouteDeps, routers
from headrace.assets.routes import STREAMED
from headrace.audit import Who
from headrace.billing.payments.config import OrderConfig
from headrace.billing.payments.service import Payments
from headrace.configs.cache import Configs
from headrace.database import Database, DatabaseConfig
from headrace.edge.limits import LimitConfig
from headrace.edge.routing import Route
from headrace.edge.services import Services
from headrace.notifications.live import Inbox
from headrace.settings import load
from headrace.tasks.catalog import StoredCatalog
from headrace.tasks.live import Watch, WatchConfig
from headrace.tasks.service import Tasks
from headrace.tasks.submit import Submitter
from headrace.web.app import create_app
from headrace.web.config import WebConfig
from headrace.webhooks.secrets import keyring_of
from headrace.webhooks.service import Webhooks
from tests.assets.plain import PlainInspector
from tests.assets.stand import files, folder
from tests.conftest import TestServer

if TYPE_CHECKING:
    from hypothesis import settings
    from schemathesis.checks import CheckFunction

SECRET = b"a secret of at least 32 bytes, for tests"
PASSWORD = "correct horse battery"
FOLDER = Path(tempfile.gettempdir(), f"headrace-test-schema-{os.getpid()}")
PATIENCE = 45  # seconds: longer than a lock may be waited for

CHEAP = AccountsConfig(
    registration_open=True,
    registration_limit=LimitConfig(per_minute=1_000_000, burst=1_000_000),
    passwords=PasswordConfig(time_cost=1, memory_kib=8, parallelism=1, at_once=2),
    throttle=ThrottleConfig(free_failures=1_000_000),
)


def build(db: Database, known: Accounts) -> FastAPI:
    """The app as the command line builds it, but for the limits: what is tested here is not how often one may ask."""
    limits = LimitConfig(per_minute=1_000_000, burst=1_000_000)
    services = Services(db=db, authenticate=known.authenticate, secret=SECRET, limits=limits)
    catalog, following = StoredCatalog(), followers()
    deps = RouteDeps(
        known,
        Tasks(Submitter(catalog, following), catalog, following),
        Watch(db, WatchConfig()),
        Payments(OrderConfig(), None),
        config_keys(),
        Configs(db),
        offer(load()),
        Webhooks(keyring_of(SECRET)),
        Inbox(db),
        files(folder(FOLDER / "files"), PlainInspector(), FOLDER / "scratch"),
        Changes(db),
    )
    return create_app(services, WebConfig(streamed_paths=STREAMED), routers=routers(deps))


# Which there are is known before anything is described: each process that runs tests collects all of them, and to
# describe them takes longer than to collect all the rest.
def _labels() -> list[str]:
    app = build(cast("Database", None), service.open_accounts(CHEAP, secret=SECRET))
    routes = [each for each in app.routes if isinstance(each, Route) and each.include_in_schema]
    return [f"{method} {route.path}" for route in routes for method in sorted(route.methods or ())]


# They never end by themselves, so each request takes as long as the client has patience: tests of their own have them.
ENDLESS = {"GET /v1/notifications/events", "GET /v1/admin/changes"}
LABELS = [each for each in _labels() if each not in ENDLESS]


@cache
def described() -> dict[str, Any]:
    """All operations by their labels."""
    import schemathesis

    app = build(cast("Database", None), service.open_accounts(CHEAP, secret=SECRET))
    found: Any = schemathesis.openapi.from_dict(app.openapi()).get_all_operations()
    operations = {each.label: each for each in (operation.ok() for operation in found)}
    assert set(operations) == {*LABELS, *ENDLESS}
    return operations


@pytest.fixture
def operation(label: str) -> Any:
    return described()[label]


class Api:
    """The API in a thread of this process."""

    def __init__(self, database_url: str) -> None:
        self._database_url = database_url
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._session: dict[str, str] = {}
        self.url: str

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(30)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(30)

    async def _serve(self) -> None:
        async with (
            await Database.connect(DatabaseConfig(self._database_url, role="test")) as db,
            service.open_accounts(CHEAP, secret=SECRET) as known,
        ):
            new = await registration.prepare(
                known, username="ada", password=PASSWORD, role=Role.ADMIN, by_operator=True
            )
            async with db.transaction() as tx:
                await registration.register(tx, Who.system(), new)
            app = build(db, known)
            self._server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off"))
            bound = socket.create_server(("127.0.0.1", 0))
            self.url = f"http://127.0.0.1:{bound.getsockname()[1]}"
            self._ready.set()
            await self._server.serve(sockets=[bound])

    def session(self) -> dict[str, str]:
        """The session of an administrator, as a header."""
        if not self._session:
            answer = httpx2.post(f"{self.url}/v1/auth/login", json={"username": "ada", "password": PASSWORD})
            self._session = {"Authorization": f"Bearer {answer.json()['token']}"}
        return self._session

    def forget_session(self) -> None:
        self._session = {}


@pytest.fixture(scope="module")
def api(server: TestServer, template: str) -> Iterator[Api]:
    name = f"headrace_test_{os.getpid()}_schema"
    asyncio.run(server.run(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy"))
    try:
        with Api(server.url(name, role="headrace_app")) as running:
            yield running
    finally:
        asyncio.run(server.run(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)"))


def few(examples: int) -> "settings":
    from hypothesis import HealthCheck, settings

    return settings(
        max_examples=examples, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )


@cache
def checks() -> "list[CheckFunction]":
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi import checks as conformance

    return [
        not_a_server_error,
        conformance.status_code_conformance,
        conformance.content_type_conformance,
        conformance.response_headers_conformance,
        conformance.response_schema_conformance,
    ]


# WeChat Pay's own words, which the API does not describe: so there is nothing to get wrong.
UNDESCRIBED = "POST /v1/payments/wechat/notify"


def send_as_administrator(api: Api, operation: Any, mode: str, *, examples: int) -> None:
    from hypothesis import given
    from hypothesis.errors import Unsatisfiable
    from schemathesis import GenerationMode

    @few(examples)
    @given(case=operation.as_strategy(generation_mode=GenerationMode(mode)))
    def send(case: Any) -> None:
        response = case.call(base_url=api.url, headers=api.session(), timeout=PATIENCE)
        if response.status_code == 401:
            api.forget_session()  # this request or the one before has ended it
        case.validate_response(response, checks=checks())

    try:
        send()
    except Unsatisfiable:
        assert (operation.label, mode) == (UNDESCRIBED, "negative")


def send_as_nobody(api: Api, operation: Any, *, examples: int) -> None:
    from hypothesis import given

    @few(examples)
    @given(case=operation.as_strategy())
    def send(case: Any) -> None:
        case.call_and_validate(base_url=api.url, checks=checks(), timeout=PATIENCE)

    send()


MODES = ("positive", "negative")
every_operation = pytest.mark.parametrize("label", LABELS)
every_mode = pytest.mark.parametrize("mode", MODES)


@pytest.mark.long
@every_mode
@every_operation
def test_whatever_an_administrator_sends_is_answered_as_documented(api: Api, operation: Any, mode: str) -> None:
    send_as_administrator(api, operation, mode, examples=1)  # at night many: below


@pytest.mark.slow  # tests/attack has nobody in particular try every route, too
@every_operation
def test_whatever_nobody_in_particular_sends_is_answered_as_documented(api: Api, operation: Any) -> None:
    send_as_nobody(api, operation, examples=1)


@pytest.mark.slow
@every_operation
def test_so_is_much_more_of_it(api: Api, operation: Any) -> None:
    for mode in MODES:
        send_as_administrator(api, operation, mode, examples=100)
    send_as_nobody(api, operation, examples=50)
