"""Who answers a request, and what they have to do it with."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote

from headrace import ids, logs
from headrace.access import Caller, Role
from headrace.cli.calls import Answer, Api
from headrace.cli.later import nothing_is_garbage
from headrace.cli.opening import Deployment, database_of, operator
from headrace.cli.output import LOOKING, progress
from headrace.database import Database, Tx
from headrace.errors import Invalid
from headrace.migrations import verify_current
from headrace.settings import Settings, load

if TYPE_CHECKING:
    from headrace.accounts.service import Accounts
    from headrace.tasks.service import Tasks

T = TypeVar("T")

# Which module answers what is asked of a noun; a command loads one of them.
_MODULES: Mapping[str, str] = {
    "tasks": "tasks",
    "tasks/count": "bulk",
    "tasks/bulk": "bulk",
    "admin/statistics": "statistics",
    "queues": "queues",
    "workers": "queues",
    "schedules": "schedules",
    "executions": "executions",
    "admin": "users",
    "api-keys": "api_keys",
}


class NotValid(Invalid):
    """The request does not have the form that this needs."""

    status = 422  # and the code: as the API has it, whose error is no class

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.code = "validation_failed"  # type: ignore[misc]


@dataclass(frozen=True)
class Session:
    """The database, who sits before it, and, when asked for, the parts that changes need."""

    db: Database
    caller: Caller
    settings: Settings
    deployment: Deployment

    @cached_property
    def tasks(self) -> "Tasks":
        from headrace.cli.wiring import open_tasks

        return open_tasks(self.settings)

    @asynccontextmanager
    async def accounts(self) -> "AsyncIterator[Accounts]":
        from headrace.accounts import service
        from headrace.assembly.newcomers import newcomers
        from headrace.cli.wiring import accounts_config, secret_key_for

        secret = await secret_key_for(self.settings, self.db, make=self.deployment.embedded)
        config = accounts_config(self.settings)
        async with service.open_accounts(config, secret=secret, welcomes=newcomers()) as known:
            yield known


@dataclass(frozen=True, slots=True)
class Request:
    """One request. ``begin`` opens its transaction, or gives that of the block that it belongs to."""

    session: Session
    begin: Callable[[], Any]
    path: Mapping[str, str]
    params: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None
    key: str | None = None
    version: int | None = None
    limit: int = 0

    @property
    def caller(self) -> Caller:
        return self.session.caller

    @property
    def owner(self) -> str | None:
        """Whose rows are meant: everybody's, unless somebody is named."""
        named = self.params.get("user_id")
        return None if named == "*" else named


Handler = Callable[[Request], Awaitable[Any]]


class Direct:
    is_remote = False

    def __init__(self, session: Session) -> None:
        self._session = session
        self._tx: Tx | None = None

    async def ask(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        body: Any = None,
        key: str | None = None,
        version: int | None = None,
    ) -> Any:
        handler, named = _handler(method, path)
        request = Request(self._session, self._begin, named, params or {}, body, key, version)
        return await _checked(handler, request)

    async def list(self, path: str, params: Mapping[str, Any] | None = None, *, limit: int | None) -> Sequence[Answer]:
        handler, named = _handler("GET", path)
        found: Sequence[Answer] = await _checked(
            handler, Request(self._session, self._begin, named, params or {}, limit=limit or 0)
        )
        return found

    @asynccontextmanager
    async def together(self) -> AsyncIterator[None]:
        async with self._session.db.transaction() as tx:
            self._tx = tx
            try:
                yield
            finally:
                self._tx = None

    @asynccontextmanager
    async def _begin(self) -> AsyncIterator[Tx]:
        if self._tx is not None:
            yield self._tx
            return
        async with self._session.db.transaction() as tx:
            yield tx


async def _checked(handler: Handler, request: Request) -> Any:
    from pydantic import ValidationError

    try:
        return await handler(request)
    except ValidationError as exc:
        found = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in exc.errors()]
        raise NotValid("; ".join(found)) from None


@cache
def handlers_of(module: str) -> Mapping[str, Handler]:
    with nothing_is_garbage():
        found: Mapping[str, Handler] = import_module(f"headrace.cli.direct.{module}").HANDLERS
    return found


def all_handlers() -> Mapping[str, Handler]:
    return {name: handler for module in set(_MODULES.values()) for name, handler in handlers_of(module).items()}


def _handler(method: str, path: str) -> tuple[Handler, Mapping[str, str]]:
    nouns = path.split("/")[2:4]
    module = _MODULES.get("/".join(nouns)) or _MODULES[nouns[0]]
    for name, handler in handlers_of(module).items():
        verb, _, shape = name.partition(" ")
        match = re.fullmatch(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", shape), path)
        if verb == method and match:
            return handler, {part: unquote(value) for part, value in match.groupdict().items()}
    raise LookupError(f"nobody answers {method} {path}")


def perform(command: str, act: Callable[[Api], Awaitable[T]]) -> T:
    """Do this on the database of the settings."""
    settings = load()
    logs.configure_later(format=settings.log_format, level=settings.log_level)
    with ExitStack() as stack:
        with progress(LOOKING) as report:
            deployment = stack.enter_context(database_of(settings, role=command, report=report))
        # One at a time is asked: one connection is enough.
        alone = replace(deployment, app=replace(deployment.app, pool_min=1, pool_max=2))
        return asyncio.run(_perform(settings, alone, command, act))  # uvloop takes longer to load than to gain


async def _perform(settings: Settings, deployment: Deployment, command: str, act: Callable[[Api], Awaitable[T]]) -> T:
    await verify_current(deployment.app)
    async with await Database.connect(deployment.app) as db:
        caller = Caller(operator(command), ids.SYSTEM_USER, Role.ADMIN)
        return await act(Direct(Session(db, caller, settings, deployment)))
