"""What `headrace up` does to a database beside its roles: prepares it, and watches whether the schema stays."""

import asyncio
import threading
from contextlib import suppress
from dataclasses import replace

from headrace import migrations
from headrace.accounts import administration, service
from headrace.archive import minimums
from headrace.assembly.accounts import accounts_config, newcomers
from headrace.assembly.deployment import Deployment, Report
from headrace.assembly.first_password import FirstPassword
from headrace.assembly.retention_settings import chosen_retention
from headrace.assembly.secret_key import secret_key_for
from headrace.assembly.trail import lost_trail
from headrace.audit import Who
from headrace.database import Database, connect_alone
from headrace.database_errors import DatabaseBusy, DatabaseUnavailable
from headrace.errors import HeadraceError
from headrace.settings import Settings

_CHECK_INTERVAL_SECONDS = 2.0

# Whose transaction blocks others, and since when: the statistics of other roles' sessions have the second.
SEE_SESSIONS = "GRANT pg_read_all_stats TO headrace_app"


async def prepare(settings: Settings, deployment: Deployment, first: FirstPassword, report: Report) -> bytes:
    """The schema, the secret key, which is given back, and the first administrator."""
    await migrations.migrate(deployment.owner, lock_timeout=settings.database_migrate_lock_timeout, report=report)
    if deployment.superuser is not None:  # the embedded server, which is Headrace's own
        async with connect_alone(deployment.superuser) as connection:
            await connection.execute(SEE_SESSIONS)
    await minimums.declare(deployment.owner, chosen_retention(settings), Who.system())
    async with await Database.connect(deployment.app) as db:
        secret = await secret_key_for(settings, db, make=True, notify=deployment.notify)
        with suppress(HeadraceError):  # `headrace doctor` reports an archive that does not answer
            if (lost := await lost_trail(settings, db)) is not None:
                deployment.notify(f"warning: {lost}.")
        async with service.open_accounts(accounts_config(settings), secret=secret, welcomes=newcomers()) as known:
            await administration.ensure_first_admin(db, known, keep=first.keep)
        await first.forget_if_used(db)
    return secret


FIND_SCHEMA = "SELECT WHERE to_regclass('headrace.schema_migrations') IS NOT NULL"


async def watch_schema(deployment: Deployment, stop: asyncio.Event, gone: threading.Event) -> None:
    """Stop when Headrace's schema was dropped: its loops cannot continue, and PostgreSQL should."""
    async with await Database.connect(replace(deployment.app, pool_min=0, pool_max=1)) as db:
        while not gone.is_set():
            await asyncio.sleep(_CHECK_INTERVAL_SECONDS)
            with suppress(DatabaseUnavailable, DatabaseBusy):
                if not await db.fetch_alone(FIND_SCHEMA):
                    gone.set()
                    stop.set()
