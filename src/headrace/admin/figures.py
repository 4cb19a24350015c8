"""What the database knows for `/metrics`, remembered for some seconds."""

import asyncio
import time
from collections.abc import Sequence
from datetime import timedelta

from headrace.admin.health import Health, read_health
from headrace.admin.task_figures import read_task_figures
from headrace.billing.verifying import Verification
from headrace.database import Database
from headrace.figures import Figure
from headrace.webhooks.store.overview import Overview

_CACHE_SECONDS = 15.0  # however many scrapers there are, the database is asked no oftener


class TaskFigures:
    """Tasks, workers and schedules, shown by every role; read periodically, independent of requests."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._lock = asyncio.Lock()
        self._known: tuple[float, Sequence[Figure]] | None = None

    async def __call__(self) -> Sequence[Figure]:
        async with self._lock:
            if self._known is None or time.monotonic() - self._known[0] > _CACHE_SECONDS:
                self._known = (time.monotonic(), await self._read())
            return self._known[1]

    async def _read(self) -> list[Figure]:
        async with self._db.transaction(readonly=True) as tx:
            return await read_task_figures(tx)


class HealthFigures(TaskFigures):
    """These and the database's health, which an API shows."""

    async def _read(self) -> list[Figure]:
        return [*await super()._read(), *figures_of(await read_health(self._db))]


def figures_of(health: Health) -> list[Figure]:
    table = ("table",)
    tables, runs = health.tables, health.runs
    ended: dict[tuple[str, ...], float] = {
        (run.table_name,): run.finished_at.timestamp() for run in runs if run.finished_at is not None
    }
    return [
        Figure(
            "headrace_table_live_rows",
            "Rows, as PostgreSQL estimates them.",
            table,
            {(one.table_name,): one.live_rows for one in tables},
        ),
        Figure(
            "headrace_table_dead_rows",
            "Rows that vacuum has yet to remove, as PostgreSQL estimates them.",
            table,
            {(one.table_name,): one.dead_rows for one in tables},
        ),
        Figure(
            "headrace_table_bytes",
            "Size on disk, with indexes.",
            table,
            {(one.table_name,): one.size_bytes for one in tables},
        ),
        Figure(
            "headrace_partition_bytes",
            "Size of a month on disk, with indexes.",
            ("table", "partition"),
            {(one.table_name, one.name): one.size_bytes for one in health.partitions},
        ),
        Figure(
            "headrace_partitions_ahead",
            "Months after this one that are there already. Alarm below 1.",
            table,
            {(name,): count for name, count in health.months_ahead.items()},
        ),
        Figure(
            "headrace_partition_default_rows",
            "Rows for which there was no month, up to 1000. Alarm above 0.",
            table,
            {(name,): count for name, count in health.default_rows.items()},
        ),
        Figure(
            "headrace_outbox_oldest_unpublished_seconds",
            "Age of the oldest event that waits to be published; 0 when none does.",
            (),
            {(): _seconds(health.outbox.oldest_waiting)},
        ),
        Figure(
            "headrace_outbox_events",
            "Events that are not published, up to 100,000 of each. Alarm above 0 for DEAD.",
            ("status",),
            {("PENDING",): health.outbox.waiting, ("FAILED",): health.outbox.failed, ("DEAD",): health.outbox.dead},
        ),
        Figure(
            "headrace_outbox_written_events",
            "Events written since the beginning; less those above, they are published.",
            (),
            {(): health.outbox.written},
        ),
        Figure(
            "headrace_outbox_broker_messages",
            "Messages that the broker has not confirmed, and those that it refused too often.",
            ("state",),
            {("waiting",): health.outbox.broker_waiting, ("given_up",): health.outbox.broker_given_up},
        ),
        Figure(
            "headrace_relays",
            "Relay processes that are alive. Alarm at 0 while events wait.",
            (),
            {(): len(health.outbox.relays)},
        ),
        *_webhook_figures(health.webhooks),
        Figure(
            "headrace_audit_unsealed_seconds",
            "How long an event of the audit trail has waited to be sealed; 0 when all are. Alarm above three times "
            "HEADRACE_AUDIT_SEAL_INTERVAL.",
            (),
            {(): _seconds(health.unsealed_for)},
        ),
        Figure(
            "headrace_archives",
            "Months that have left their table, by how far they are. Alarm if not DROPPED for a day.",
            ("state",),
            {(state,): count for state, count in health.archives.items()},
        ),
        Figure(
            "headrace_retention_last_success_timestamp_seconds",
            "When retention last ended its work on a table; missing while it runs and after it was killed.",
            table,
            ended,
        ),
        Figure(
            "headrace_retention_removed_rows",
            "Rows that the last run of retention removed.",
            table,
            {(run.table_name,): run.removed_rows for run in runs},
        ),
        Figure(
            "headrace_retention_failing",
            "1 if the last run of retention left something that is too old.",
            table,
            {(run.table_name,): float(run.error is not None) for run in runs},
        ),
        *_ledger_figures(health.ledger),
        Figure(
            "headrace_payment_order_problems",
            "Orders that need an operator's attention, by problem. Alarm above 0.",
            ("problem",),
            {(problem,): count for problem, count in health.order_problems.items()},
        ),
    ]


def _webhook_figures(webhooks: Overview) -> list[Figure]:
    endpoints: dict[tuple[str, ...], float] = {
        (state,): getattr(webhooks, state) for state in ("active", "paused", "failing", "disabled", "blocked")
    }
    return [
        Figure(
            "headrace_webhook_deliveries_waiting",
            "Deliveries that are not over, up to 100,000: also those of paused endpoints, and those to be tried again.",
            (),
            {(): webhooks.waiting},
        ),
        Figure(
            "headrace_webhook_late_seconds",
            "How long a delivery has been due to an endpoint that may be sent to; 0 when none is. Alarm above 60.",
            (),
            {(): _seconds(webhooks.late_for)},
        ),
        Figure(
            "headrace_webhook_deliveries_given_up",
            "Deliveries that were given up in the last day, up to 100,000.",
            (),
            {(): webhooks.given_up},
        ),
        Figure(
            "headrace_webhook_endpoints",
            "Endpoints by state: paused by a person, paused because they were failing for days, disabled; blocked ones "
            "are active and get nothing for a while, after failures or because they asked.",
            ("state",),
            endpoints,
        ),
    ]


def _ledger_figures(last: Verification | None) -> list[Figure]:
    if last is None:
        return []
    return [
        Figure(
            "headrace_ledger_faults",
            "Things in the ledger that did not add up when it was last verified. Alarm above 0.",
            (),
            {(): last.fault_count},
        ),
        Figure(
            "headrace_ledger_verified_timestamp_seconds",
            "When the ledger was last verified. Alarm if that is more than two days ago.",
            (),
            {(): last.finished_at.timestamp()},
        ),
    ]


def _seconds(waited: timedelta | None) -> float:
    return 0.0 if waited is None else waited.total_seconds()
