"""The routes of all packages."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from headrace.accounts import routes as account_routes
from headrace.accounts.service import Accounts
from headrace.admin.audit import routes as audit_routes
from headrace.admin.bulk import routes as bulk_routes
from headrace.admin.changes import routes as change_routes
from headrace.admin.changes.live import Changes
from headrace.admin.outbox import routes as outbox_routes
from headrace.admin.overview import routes as overview_routes
from headrace.admin.overview.service import Operators
from headrace.archive import routes as operation_routes
from headrace.assets import routes as file_routes
from headrace.assets.service import Files
from headrace.billing import ledger_routes
from headrace.billing import routes as billing_routes
from headrace.billing.payments.service import Payments
from headrace.configs import routes as config_routes
from headrace.configs.cache import Configs
from headrace.configs.registry import Registry
from headrace.configs.schemas import Offer
from headrace.edge.routing import Router
from headrace.locks import routes as lock_routes
from headrace.notifications import routes as notification_routes
from headrace.notifications.live import Inbox
from headrace.removal.service import routes as removal_routes
from headrace.risks import routes as risk_routes
from headrace.schedules import routes as schedule_routes
from headrace.tasks import routes as task_routes
from headrace.tasks.live import Watch
from headrace.tasks.service import Tasks
from headrace.webhooks import routes as webhook_routes
from headrace.webhooks.service import Webhooks


@dataclass(frozen=True, slots=True)
class RouteDeps:
    """What routes are made with, beyond the database and the caller."""

    accounts: Accounts
    tasks: Tasks
    watch: Watch
    payments: Payments
    config_keys: Registry
    configs: Configs
    offer: Offer
    webhooks: Webhooks
    inbox: Inbox
    files: Files
    changes: Changes
    operators: Operators = field(default_factory=Operators)
    returns: int = 3  # results that a user may return as not good in 30 days


def routers(deps: RouteDeps) -> Sequence[Router]:
    return [
        account_routes.create_router(deps.accounts),
        bulk_routes.create_router(deps.tasks),  # before tasks and schedules, whose ids stand where its words do
        task_routes.create_router(deps.tasks, deps.watch),
        schedule_routes.create_router(deps.tasks),
        lock_routes.router,
        ledger_routes.router,
        billing_routes.create_router(deps.payments),
        webhook_routes.create_router(deps.webhooks),
        notification_routes.create_router(deps.inbox),
        file_routes.create_router(deps.files),
        removal_routes.create_router(deps.tasks, deps.files, deps.returns),
        audit_routes.router,
        config_routes.create_router(deps.config_keys, deps.configs, deps.offer),
        risk_routes.router,
        operation_routes.router,
        overview_routes.create_router(deps.operators, audit_routes.admin),
        change_routes.create_router(deps.changes),
        outbox_routes.router,
    ]
