"""The retention rules of all packages: what removes expired rows."""

from collections.abc import Mapping, Sequence

from headrace.accounts.config import ThrottleConfig
from headrace.accounts.retention import purges as account_purges
from headrace.admin.bulk import retention as bulk_retention
from headrace.assets import retention as file_retention
from headrace.edge import retention as edge_retention
from headrace.locks import retention as lock_retention
from headrace.notifications import retention as notification_retention
from headrace.outbox import retention as outbox_retention
from headrace.purging import Purge, RowRetention
from headrace.schedules import retention as schedule_retention
from headrace.tasks import retention as task_retention

# Tables whose rows are deleted; those that are kept by months are retired whole (archive.model.MONTHLY).
ROWS: Mapping[str, RowRetention] = {
    rule.table: rule
    for rule in (
        schedule_retention.EXECUTIONS,
        lock_retention.LOCKS,
        outbox_retention.EVENTS,
        notification_retention.NOTIFICATIONS,
        file_retention.ASSETS,
        task_retention.TASKS,
        task_retention.WORKERS,
    )
}


def purges(throttle: ThrottleConfig, webhooks: Sequence[Purge] = ()) -> Sequence[Purge]:
    return (
        *edge_retention.PURGES,
        *account_purges(throttle),
        lock_retention.EXPIRED,
        schedule_retention.DELETED,
        task_retention.DELETED,
        task_retention.LANES,
        bulk_retention.OLD,
        *webhooks,
    )
