"""Which routes a request of a command needs, and what those are made with: only the noun's own package is loaded."""

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, cast

from starlette.types import ASGIApp, Receive, Scope, Send

from headrace.assembly.deployment import Notify, secret_file
from headrace.database import Database
from headrace.edge.routing import Router
from headrace.edge.services import Services
from headrace.extras import gc_paused_while_importing
from headrace.settings import Settings

if TYPE_CHECKING:
    from headrace.assets.service import Files
    from headrace.tasks.service import Tasks


class Parts:
    """The running parts that routes are made with, opened when a route first needs them."""

    def __init__(self, settings: Settings, db: Database, *, embedded: bool, notify: Notify) -> None:
        self.settings = settings
        self.db = db
        self._embedded = embedded
        self._notify = notify
        self.process_secret = os.urandom(32)
        self._opened = AsyncExitStack()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._opened.aclose()

    async def open(self, part: Any) -> Any:
        return await self._opened.enter_async_context(part)

    def stored_secret(self) -> bytes:
        from headrace.assembly.secret_key import secret_key

        return secret_key(self.settings)

    async def make_secret(self) -> None:
        """Make the secret key of an embedded deployment before anything is changed there, as `headrace up` does."""
        if self._embedded and self.settings.secret_key is None and not secret_file(self.settings).exists():
            from headrace.assembly.secret_key import secret_key_for

            await secret_key_for(self.settings, self.db, make=True, notify=self._notify)

    def tasks(self) -> "Tasks":
        return self._tasks

    @cached_property
    def _tasks(self) -> "Tasks":
        with gc_paused_while_importing():
            from headrace.assembly.tasks import open_tasks

        return open_tasks(self.settings)

    async def files(self) -> "Files":
        from headrace.assembly.files import open_files
        from headrace.vault import derive_key

        key = derive_key(self.stored_secret(), "files.links")
        return cast("Files", await self.open(open_files(self.settings, link_key=key, public_url=_url(self.settings))))


def _url(settings: Settings) -> str:
    """How clients reach the API of this deployment."""
    if settings.api_public_url is not None:
        return str(settings.api_public_url).rstrip("/")
    host = "127.0.0.1" if settings.api_host in ("0.0.0.0", "::") else settings.api_host  # noqa: S104
    return f"http://{host}:{settings.api_port}"


async def _tasks(parts: Parts) -> Router:
    from headrace.tasks.routes import create_router

    return create_router(parts.tasks, cast("Any", None))  # no command follows a task's events


async def _bulk(parts: Parts) -> Router:
    from headrace.admin.bulk.routes import create_router

    return create_router(parts.tasks)


async def _schedules(parts: Parts) -> Router:
    from headrace.schedules.routes import create_router

    return create_router(parts.tasks)


async def _accounts(parts: Parts) -> Router:
    from headrace.accounts import service
    from headrace.accounts.routes import create_router
    from headrace.assembly.accounts import accounts_config, newcomers

    # The secret is for the sessions of browsers, and there are none here.
    opening = service.open_accounts(accounts_config(parts.settings), secret=parts.process_secret, welcomes=newcomers())
    return create_router(await parts.open(opening))


async def _locks(_: Parts) -> Router:
    from headrace.locks.routes import router

    return router


async def _ledger(_: Parts) -> Router:
    from headrace.billing.ledger_routes import router

    return router


async def _billing(parts: Parts) -> Router:
    from headrace.assembly.payments import order_config, wechatpay_config
    from headrace.billing.payments.service import open_payments
    from headrace.billing.routes import create_router

    opening = open_payments(wechatpay_config(parts.settings), order_config(parts.settings))
    return create_router(await parts.open(opening))


async def _webhooks(parts: Parts) -> Router:
    from headrace.assembly.development import for_development
    from headrace.assembly.webhooks import webhooks
    from headrace.webhooks.routes import create_router

    return create_router(lambda: webhooks(for_development(parts.settings), parts.stored_secret()))


async def _files(parts: Parts) -> Router:
    from headrace.assets.routes import create_router

    return create_router(await parts.files())


async def _audit(_: Parts) -> Router:
    from headrace.admin.audit.routes import router

    return router


async def _configs(parts: Parts) -> Router:
    from headrace.assembly.config_registry import config_keys, offer
    from headrace.configs.routes import create_router

    return create_router(config_keys(), cast("Any", None), offer(parts.settings))


async def _risks(_: Parts) -> Router:
    from headrace.risks.routes import router

    return router


async def _months(_: Parts) -> Router:
    from headrace.archive.routes import router

    return router


async def _overview(parts: Parts) -> Router:
    from headrace.admin.audit import routes as audit
    from headrace.admin.overview.routes import create_router
    from headrace.assembly.operators import operators

    return create_router(operators(parts.settings), audit.admin)


async def _statistics(_: Parts) -> Router:
    from headrace.admin.overview.routes import create_router
    from headrace.admin.overview.service import Operators

    return create_router(Operators())


async def _outbox(_: Parts) -> Router:
    from headrace.admin.outbox.routes import router

    return router


async def _removals(parts: Parts) -> Router:
    from headrace.removal.service.routes import create_router

    # No command reads files through these routes.
    return create_router(parts.tasks(), cast("Any", None), parts.settings.removal_returns)


MakeRouter = Callable[[Parts], Awaitable[Router]]

# By the beginning of the path; the longest that fits decides.
ROUTERS: Mapping[str, MakeRouter] = {
    "tasks": _tasks,
    "tasks/count": _bulk,
    "tasks/bulk": _bulk,
    "schedules/bulk": _bulk,
    "queues": _tasks,
    "workers": _tasks,
    "task-types": _tasks,
    "schedules": _schedules,
    "executions": _schedules,
    "api-keys": _accounts,
    "me": _accounts,
    "sessions": _accounts,
    "admin/users": _accounts,
    "admin/deletions": _accounts,
    "locks": _locks,
    "usage": _ledger,
    "removals": _removals,
    "entitlements": _ledger,
    "admin/entitlements": _ledger,
    "admin/ledger": _ledger,
    "plans": _billing,
    "subscriptions": _billing,
    "payments": _billing,
    "admin/plans": _billing,
    "admin/payments": _billing,
    "webhooks": _webhooks,
    "assets": _files,
    "uploads": _files,
    "results": _files,
    "audit": _audit,
    "admin/audit": _overview,
    "admin/failures": _overview,
    "admin/overview": _overview,
    "admin/settings": _overview,
    "admin/statistics": _statistics,
    "admin/configs": _configs,
    "capabilities": _configs,
    "admin/risks": _risks,
    "admin/archives": _months,
    "admin/partitions": _months,
    "admin/outbox": _outbox,
    "event-types": _outbox,
}


class AppByNoun:
    """An ASGI app that makes the app of a noun when a request for it first comes."""

    def __init__(self, parts: Parts, services: Services) -> None:
        self._parts = parts
        self._services = services
        self._apps: dict[MakeRouter, ASGIApp] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        make = router_for(scope["path"])
        if (app := self._apps.get(make)) is None:
            with gc_paused_while_importing():
                from headrace.web.inprocess import create_inprocess_app

                app = self._apps[make] = create_inprocess_app(self._services, [await make(self._parts)])
        if scope["method"] != "GET":
            await self._parts.make_secret()
        await app(scope, receive, send)


def router_for(path: str) -> MakeRouter:
    nouns: Sequence[str] = path.split("/")[2:]
    for length in (2, 1):
        if (result := ROUTERS.get("/".join(nouns[:length]))) is not None:
            return result
    raise LookupError(f"no command sends requests to {path}")
