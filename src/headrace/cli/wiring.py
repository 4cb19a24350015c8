"""From settings to running parts. The only place that knows both."""

import asyncio
import os
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path

from headrace import settings
from headrace.accounts.config import (
    AccountsConfig,
    DeletionConfig,
    PasswordConfig,
    SessionConfig,
    ThrottleConfig,
    WeChatConfig,
)
from headrace.accounts.store.users import admin_exists
from headrace.assembly import retention
from headrace.assembly.consumers import consumers, open_senders
from headrace.assembly.followers import followers
from headrace.audit import signing
from headrace.audit.heads import KeptHeads, find_foreign
from headrace.cli.connections import OWN_TASKS_POOL, RELAY_POOL, SCHEDULER_POOL
from headrace.cli.files_wiring import file_config, files_of
from headrace.cli.opening import SECRET_FILE
from headrace.cli.opening import DatabaseMissing as DatabaseMissing
from headrace.cli.opening import DataFolderClosed as DataFolderClosed
from headrace.cli.opening import Deployment as Deployment
from headrace.cli.opening import Report as Report
from headrace.cli.opening import data_folder as data_folder
from headrace.cli.opening import database_of as database_of
from headrace.cli.opening import load_settings as load_settings
from headrace.cli.opening import run as run
from headrace.cli.output import say
from headrace.cli.paying import billing_jobs
from headrace.cli.retention_settings import archive_config, retention_config
from headrace.cli.waiting import connected, until_reachable
from headrace.cpus import available_cpus
from headrace.database import Database
from headrace.embedded_postgres import files
from headrace.errors import Invalid
from headrace.operations.heads import FOLDER, heads_in
from headrace.operations.maintenance import QUEUE, Maintenance, ensure_schedules, with_maintenance
from headrace.outbox.loop import LoopConfig, RelayLoop
from headrace.outbox.relay import Relay, RelayConfig, RetryConfig
from headrace.schedules.due import MisfireConfig
from headrace.schedules.loop import Scheduler, SchedulerConfig
from headrace.settings import Settings
from headrace.tasks.caps import Caps
from headrace.tasks.catalog import StoredCatalog
from headrace.tasks.registry import Registry
from headrace.tasks.service import Tasks
from headrace.tasks.submit import SubmitConfig, Submitter
from headrace.tasks.worker.config import WorkerConfig
from headrace.tasks.worker.loop import Worker
from headrace.webhooks import retention as webhook_retention

FROZEN_FOR = timedelta(seconds=10)
_OWN_TASKS_AT_ONCE = 4


class SecretKeyMissing(Invalid):
    """No secret key: set HEADRACE_SECRET_KEY to the same value for all processes (`openssl rand -hex 32` makes one)."""

    code = "secret_key_missing"


def secret_key(chosen: Settings, *, make: bool = False) -> bytes:
    """The deployment's secret, from the settings or from the data folder, where ``make`` puts one once."""
    if chosen.secret_key is not None:
        return chosen.secret_key.get_secret_value().encode()
    file = chosen.data_dir / SECRET_FILE
    try:
        if make:
            _write_once(data_folder(chosen) / SECRET_FILE, secrets.token_hex(32))
        return file.read_bytes()
    except FileNotFoundError:
        raise SecretKeyMissing from None
    except OSError as exc:
        raise DataFolderClosed(f"{file} cannot be read or written: {exc.strerror}.") from exc


async def lost_key(chosen: Settings, db: Database) -> str | None:
    """The warning for a lost key, to be shown before a new one is made; None if it exists or never did.

    The first administrator is made after the key: a database that has one had a key.
    """
    file = chosen.data_dir / SECRET_FILE
    if chosen.secret_key is not None or file.exists():
        return None
    async with db.transaction() as tx:
        if not await admin_exists(tx):
            return None
    return (
        f"{file} is missing, but this database was used with a key: what was encrypted with that one (secrets of "
        "webhooks, passwords of PDFs that wait, stored answers to repeated requests) cannot be read with another. Put "
        "the file back, or set HEADRACE_SECRET_KEY to what it held; if it is lost, give each webhook a new secret "
        "(`headrace webhooks rotate-secret`) and order locked PDFs again"
    )


async def lost_trail(chosen: Settings, db: Database) -> str | None:
    """What to say where the archive keeps heads of another database's audit trail; None if it does not."""
    kept = audit_heads(chosen)
    if kept is None:
        return None
    async with db.transaction(readonly=True) as tx:
        head = await find_foreign(tx, kept)
    if head is None:
        return None
    return (
        f"{kept.place} keeps {head.name} of an audit trail that this database does not have: the database was lost, or "
        "replaced by another. If it was lost, restore a backup (`headrace restore FILE --replace`); if not, move the "
        f"folder {FOLDER} elsewhere"
    )


async def secret_key_for(chosen: Settings, db: Database, *, make: bool) -> bytes:
    """The deployment's secret, where one may be made: not without a word if there was another."""
    if make and (warning := await lost_key(chosen, db)) is not None:
        say(f"warning: {warning}. A new key is made now.")
    return secret_key(chosen, make=make)


def accounts_config(chosen: Settings) -> AccountsConfig:
    return AccountsConfig(
        registration_open=chosen.registration == "open",
        passwords=PasswordConfig(
            min_length=chosen.password_min_length,
            time_cost=chosen.argon2_time_cost,
            memory_kib=chosen.argon2_memory // 1024,
            parallelism=chosen.argon2_parallelism,
        ),
        sessions=SessionConfig(lifetime=chosen.session_lifetime, idle_lifetime=chosen.session_idle_lifetime),
        throttle=ThrottleConfig(
            free_failures=chosen.login_free_failures,
            block_first=chosen.login_block_first,
            block_max=chosen.login_block_max,
            forget_after=chosen.login_forget_after,
        ),
        deletion=DeletionConfig(grace=chosen.account_deletion_grace),
        wechat=_wechat_config(chosen),
    )


def signing_key(chosen: Settings) -> signing.SigningKey | None:
    if chosen.audit_signing_key is None:
        return None
    return signing.SigningKey(_key("AUDIT_SIGNING_KEY", chosen.audit_signing_key.get_secret_value()))


def trusted_keys(chosen: Settings) -> frozenset[bytes]:
    """The public keys that may have signed the audit trail: the present one and those before."""
    own = signing_key(chosen)
    older = {_key("AUDIT_TRUSTED_KEYS", text) for text in chosen.audit_trusted_keys}
    return frozenset(older | ({own.public} if own else set()))


def audit_heads(chosen: Settings) -> KeptHeads | None:
    """Where the heads of the trail are kept: beside the archives. The folder is made only on request."""
    if chosen.archive_url is None and chosen.audit_signing_key is None and not chosen.data_dir.exists():
        return None
    return heads_in(archive_config(chosen))


def _key(name: str, text: str) -> bytes:
    try:
        return signing.read_key(text)
    except ValueError as exc:
        raise settings.BadSettings(f"{settings.PREFIX}{name}: {exc}") from None


def open_tasks(chosen: Settings) -> Tasks:
    """What the verbs of tasks work with, in a process that does not have the programs' code."""
    catalog, following = StoredCatalog(lifetime=chosen.task_type_lifetime), followers(file_config(chosen))
    return Tasks(Submitter(catalog, following, submit_config(chosen)), catalog, following, user_caps(chosen))


def user_caps(chosen: Settings) -> Caps:
    return Caps(
        priority=chosen.user_priority,
        attempts=chosen.user_attempts,
        timeout=chosen.user_timeout,
        delay=chosen.user_delay,
        payload_bytes=chosen.user_payload_limit,
        open_tasks=chosen.user_open_tasks,
        lanes=chosen.user_lanes,
        schedules=chosen.user_schedules,
        schedule_interval=chosen.user_schedule_interval,
    )


def submit_config(chosen: Settings) -> SubmitConfig:
    return SubmitConfig(payload_limit=chosen.task_payload_limit, idempotency_lifetime=chosen.idempotency_lifetime)


def worker_config(chosen: Settings, *, queues: Sequence[str] | None, labels: Mapping[str, str]) -> WorkerConfig:
    return WorkerConfig(
        queues=queues,
        labels=labels,
        concurrency=chosen.worker_concurrency,
        threads=chosen.worker_threads,
        children=chosen.worker_processes or available_cpus(),
        lease=chosen.worker_lease,
        poll_every=chosen.worker_poll_interval,
        listen=chosen.worker_listen,
        shutdown_timeout=chosen.worker_shutdown_timeout,
        result_limit=chosen.task_result_limit,
        scratch=(chosen.worker_scratch_dir or chosen.data_dir / "scratch").resolve(),
    )


def scheduler_config(chosen: Settings) -> SchedulerConfig:
    return SchedulerConfig(
        poll_every=chosen.scheduler_poll_interval,
        listen=chosen.worker_listen,
        misfires=MisfireConfig(after=chosen.scheduler_misfire_after, most=chosen.scheduler_catch_up),
    )


@asynccontextmanager
async def scheduling(chosen: Settings, deployment: Deployment) -> AsyncIterator[Scheduler]:
    """A scheduler at work on a few connections of its own."""
    # A scheduler that is frozen while it fires must not keep its schedules from the others for long.
    config = replace(
        deployment.app.for_role("scheduler"), pool_max=SCHEDULER_POOL, idle_in_transaction_timeout=FROZEN_FOR
    )
    stop = asyncio.Event()
    async with await connected(config) as db, asyncio.TaskGroup() as group:
        own_types = with_maintenance(Registry(), maintenance(chosen, db))
        await until_reachable(lambda: ensure_schedules(db, own_types, retention.ROWS), say=say)
        scheduler = Scheduler(
            db,
            Submitter(StoredCatalog(), followers(file_config(chosen)), submit_config(chosen)),
            scheduler_config(chosen),
        )
        firing = group.create_task(scheduler.run(stop))
        try:
            yield scheduler
        finally:
            stop.set()
            await asyncio.wait([firing])


def relay_config(chosen: Settings) -> RelayConfig:
    return RelayConfig(batch=chosen.relay_batch, retries=RetryConfig(max_tries=chosen.relay_max_tries))


@asynccontextmanager
async def relaying(chosen: Settings, deployment: Deployment) -> AsyncIterator[RelayLoop]:
    """A relay and its senders at work on a few connections of their own."""
    # One that is frozen while it fans out must not keep the rows from the others for long.
    config = replace(deployment.app.for_role("relay"), pool_max=RELAY_POOL, idle_in_transaction_timeout=FROZEN_FOR)
    wanted = consumers(chosen)
    stop = asyncio.Event()
    async with (
        await connected(config) as db,
        open_senders(chosen, db, secret_key(chosen)) as senders,
        asyncio.TaskGroup() as group,
    ):
        relay = RelayLoop(
            db,
            Relay(db, wanted, relay_config(chosen)),
            wanted,
            senders,
            LoopConfig(poll_every=chosen.relay_poll_interval, listen=chosen.relay_listen),
        )
        running = group.create_task(relay.run(stop))
        try:
            yield relay
        finally:
            stop.set()
            await asyncio.wait([running])


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
    )


@asynccontextmanager
async def maintaining(chosen: Settings, deployment: Deployment) -> AsyncIterator[Worker]:
    """A worker for the product's own tasks alone, in this process: they wait for the database most of the time."""
    config = replace(worker_config(chosen, queues=[QUEUE], labels={}), concurrency=_OWN_TASKS_AT_ONCE)
    connection = replace(
        deployment.app.for_role("worker"), pool_max=OWN_TASKS_POOL, idle_in_transaction_timeout=config.lease
    )
    stop = asyncio.Event()
    async with await connected(connection) as db, asyncio.TaskGroup() as group:
        working = Worker(
            db,
            with_maintenance(Registry(), maintenance(chosen, db)),
            followers(file_config(chosen)),
            config,
        )
        group.create_task(working.run(stop))
        try:
            yield working
        finally:
            stop.set()


def _wechat_config(chosen: Settings) -> WeChatConfig | None:
    if chosen.wechat_app_id is None or chosen.wechat_app_secret is None:
        return None
    base = str(chosen.wechat_base_url).rstrip("/")
    return WeChatConfig(chosen.wechat_app_id, chosen.wechat_app_secret.get_secret_value(), base)


def _write_once(file: Path, content: str) -> None:
    """Write a file that only its owner can read, unless it exists; never partially, also under a race or a crash."""
    if file.exists():
        return
    draft = file.with_name(f"{file.name}.{secrets.token_hex(4)}")
    try:
        files.write(draft, content, durable=True)
        with suppress(FileExistsError):  # another process was faster, and theirs counts
            os.link(draft, file)
    finally:
        draft.unlink(missing_ok=True)
