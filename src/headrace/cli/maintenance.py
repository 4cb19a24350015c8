"""Maintenance that every API process and every scheduler performs beside its own work."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial

from headrace.accounts.deletion import machine
from headrace.assembly.erasers import erasers
from headrace.assembly.followers import followers
from headrace.audit.sealing import Sealer
from headrace.cli.connections import MAINTENANCE_POOL
from headrace.cli.files_wiring import file_config, files_of
from headrace.cli.waiting import connected
from headrace.cli.wiring import FROZEN_FOR, Deployment, accounts_config, audit_heads, open_tasks, signing_key
from headrace.operations.months_ahead import keep_ahead
from headrace.operations.statistics import loop as statistics
from headrace.settings import Settings
from headrace.tasks.reaping import Reaper
from headrace.tasks.registry import Registry

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
    async with await connected(config) as db, asyncio.TaskGroup() as group:
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
