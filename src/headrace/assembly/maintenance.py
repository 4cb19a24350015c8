"""From settings to maintenance: the loops of every API and scheduler process, and the product's own tasks."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial

from headrace.accounts.deletion import machine
from headrace.admin.maintenance import Maintenance, TrailEvidence
from headrace.admin.statistics import loop as statistics
from headrace.archive.partitions import keep_ahead
from headrace.assembly import retention
from headrace.assembly.accounts import accounts_config
from headrace.assembly.connections import FROZEN_FOR, MAINTENANCE_POOL
from headrace.assembly.deployment import Deployment
from headrace.assembly.erasers import erasers
from headrace.assembly.files import file_config, files_of
from headrace.assembly.followers import followers
from headrace.assembly.payments import billing_jobs
from headrace.assembly.retention_settings import archive_config, retention_config
from headrace.assembly.secret_key import head_key
from headrace.assembly.tasks import open_tasks
from headrace.assembly.trail import audit_heads, signing_key, trusted_keys
from headrace.audit.sealing import Sealer
from headrace.database import Database
from headrace.settings import Settings
from headrace.tasks.reaping import Reaper
from headrace.tasks.registry import Registry
from headrace.webhooks import retention as webhook_retention

_REAP_EVERY = timedelta(seconds=5)
_DELETE_EVERY = timedelta(seconds=5)
_MONTHS_AHEAD_INTERVAL = timedelta(hours=1)
_MEASURE_EVERY = timedelta(seconds=20)  # a minute is measured soon after its end, by the first process


@asynccontextmanager
async def maintenance_loops(settings: Settings, deployment: Deployment) -> AsyncIterator[Reaper]:
    """Detect dead workers (the last one's death must be noticed without another worker), seal the audit trail,
    make the months ahead, carry out deletions of accounts, and record statistics.

    None of it needs a worker, or a queue that may be paused. Any number of processes may do it at once:
    locks and leases in the database leave each piece of work to one of them.
    """
    config = replace(
        deployment.app.for_role("maintenance"),
        pool_min=0,
        pool_max=MAINTENANCE_POOL,
        idle_in_transaction_timeout=FROZEN_FOR,
    )
    async with await deployment.connect(config) as db, asyncio.TaskGroup() as group:
        deletions = machine.Deletions(
            db, erasers(open_tasks(settings), partial(files_of, settings)), accounts_config(settings).deletion
        )
        sealer = Sealer(db, signing_key(settings), heads=audit_heads(settings))
        reaper = Reaper(db, Registry(), followers(file_config(settings)))
        loops = [
            group.create_task(reaper.run(_REAP_EVERY)),
            group.create_task(sealer.run(settings.audit_seal_interval)),
            group.create_task(keep_ahead(db, _MONTHS_AHEAD_INTERVAL)),
            group.create_task(deletions.run(_DELETE_EVERY)),
            group.create_task(statistics.run(db, _MEASURE_EVERY)),
        ]
        try:
            yield reaper
        finally:
            for loop in loops:
                loop.cancel()


def maintenance(chosen: Settings, db: Database) -> Maintenance:
    """What the product's own tasks work with."""
    return Maintenance(
        db=db,
        storage=archive_config(chosen),
        retention=retention_config(chosen),
        rows=retention.ROWS,
        purges=retention.purges(
            accounts_config(chosen).throttle,
            webhook_retention.purges(lifetime=chosen.webhook_lifetime, secret_overlap=chosen.webhook_secret_overlap),
        ),
        billing=billing_jobs(chosen),
        files=partial(files_of, chosen),
        tasks=partial(open_tasks, chosen),
        trail=TrailEvidence(trusted_keys(chosen), audit_heads(chosen), partial(head_key, chosen)),
    )
