"""From settings to the API: its app on an open database."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from urllib.parse import urlsplit

from fastapi import FastAPI

from headrace import migrations
from headrace.accounts import service
from headrace.admin.changes.live import open_changes
from headrace.admin.figures import HealthFigures
from headrace.assembly.accounts import accounts_config, newcomers
from headrace.assembly.config_registry import config_keys, offer
from headrace.assembly.deployment import Deployment
from headrace.assembly.files import open_files
from headrace.assembly.metrics import served
from headrace.assembly.operators import operators
from headrace.assembly.payments import order_config, wechatpay_config
from headrace.assembly.routers import RouteDeps, routers
from headrace.assembly.storage_check import watched
from headrace.assembly.tasks import open_tasks
from headrace.assembly.webhooks import webhooks
from headrace.assets.routes import STREAMED
from headrace.billing.payments.service import open_payments
from headrace.configs import cache
from headrace.database import Database
from headrace.edge.cookies import CookieConfig
from headrace.edge.limits import LimitConfig
from headrace.edge.services import Services
from headrace.edge.turns import UserTurns
from headrace.errors import HeadraceError
from headrace.figures import Meters
from headrace.notifications.live import open_inbox
from headrace.settings import Settings
from headrace.tasks import live
from headrace.vault import derive_key
from headrace.web import console
from headrace.web.app import create_app
from headrace.web.config import WebConfig


@asynccontextmanager
async def application(
    settings: Settings, deployment: Deployment, secret: bytes, *, url: str = "", meters: Meters | None = None
) -> AsyncIterator[FastAPI]:
    """The app on an open database; ``url`` is how clients reach it, ``meters`` what else this process counts."""
    https = settings.api_public_url is not None and settings.api_public_url.scheme == "https"
    # One that is frozen while it changes a schedule must not make others miss its due times.
    patience = min(deployment.app.idle_in_transaction_timeout, settings.scheduler_misfire_after / 2)
    connection = replace(deployment.app.for_role("api"), idle_in_transaction_timeout=patience)
    async with (
        await deployment.connect(connection) as db,
        service.open_accounts(accounts_config(settings, url=url), secret=secret, welcomes=newcomers()) as known,
        open_payments(wechatpay_config(settings), order_config(settings)) as payments,
        live.open_watch(db) as watch,
        cache.open_configs(db) as held,
        open_inbox(db) as inbox,
        open_changes(db) as changes,
        open_files(settings, link_key=derive_key(secret, "files.links"), public_url=url) as files,
        watched(files.storage) as storage_watch,
    ):
        counted = meters or Meters()
        counted.add(storage_watch.read_figures)
        services = Services(
            db=db,
            authenticate=known.authenticate,
            secret=secret,
            cookies=CookieConfig(secure=https),
            limits=LimitConfig(per_minute=settings.api_rate_limit, burst=settings.api_rate_burst),
            idempotency_lifetime=settings.idempotency_lifetime,
            turns=UserTurns(at_once=max(1, connection.pool_max // 3)),
            readiness=lambda: reasons_not_ready(db),
            degraded=storage_watch.degraded,
            figures=HealthFigures(db),
            meters=counted,
        )
        ours = open_tasks(settings)
        hooks = webhooks(settings, secret)
        deps = RouteDeps(
            *(known, ours, watch, payments, config_keys(), held, offer(settings), hooks, inbox, files, changes),
            operators=operators(settings),
            returns=settings.removal_returns,
        )
        app = create_app(services, web_config(settings, https=https), routers=routers(deps))

        def end_streams() -> None:
            watch.stop()
            inbox.stop()
            changes.stop()

        app.state.before_stop = end_streams  # those that never end by themselves would hold the shutdown up
        async with served(settings, services.meters, services.figures, counted=app.state.metrics):
            yield app


def web_config(settings: Settings, *, https: bool) -> WebConfig:
    return WebConfig(
        trusted_proxies=settings.api_trusted_proxies,
        cors_origins=settings.api_cors_origins,
        body_limit=settings.api_body_limit,
        https=https,
        metrics=settings.metrics_port is None,
        streamed_paths=STREAMED,
        console=console.BUILT,
        file_origins=_file_origins(settings),
    )


def _file_origins(settings: Settings) -> tuple[str, ...]:
    """Where links to files lead beside ourselves."""
    if settings.files_links == "api" or not (settings.files_url or "").startswith("s3://"):
        return ()
    if settings.files_s3_endpoint is None:
        return ("https://*.amazonaws.com",)
    parts = urlsplit(str(settings.files_s3_endpoint))
    return (f"{parts.scheme}://{parts.netloc}",)


async def reasons_not_ready(db: Database) -> Sequence[str]:
    try:
        pending = await migrations.count_pending(db)
    except HeadraceError as exc:
        return [exc.message]
    # A newer schema is no reason: while a new release comes in, the old one continues to work on it.
    return [f"{pending} migrations are missing: run `headrace migrate`."] if pending else []
