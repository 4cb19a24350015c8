"""From settings to running parts. The only place that knows both."""

import asyncio
import os
import secrets
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import uvloop

from headrace import embedded_postgres, logs, settings
from headrace.accounts.config import (
    AccountsConfig,
    DeletionConfig,
    PasswordConfig,
    SessionConfig,
    ThrottleConfig,
    WeChatConfig,
)
from headrace.assembly import retention
from headrace.assembly.consumers import consumers, open_senders
from headrace.assembly.followers import followers
from headrace.audit import signing
from headrace.audit.heads import KeptHeads
from headrace.cli.files_wiring import file_config, files_of
from headrace.cli.keeping import archive_config, retention_config
from headrace.cli.output import say
from headrace.cli.paying import billing_jobs
from headrace.cli.waiting import until_reachable
from headrace.database import Database, DatabaseConfig
from headrace.embedded_postgres import files
from headrace.errors import HeadraceError, Invalid, Unavailable
from headrace.operations.heads import heads_in
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

T = TypeVar("T")
Report = Callable[[str], None]

FROZEN_FOR = timedelta(seconds=10)
_OWN_TASKS_AT_ONCE = 4
_SECRET_FILE = "secret.key"  # noqa: S105 - a file's name


class SecretKeyMissing(Invalid):
    """No secret key: set HEADRACE_SECRET_KEY to the same value for all processes (`openssl rand -hex 32` makes one)."""

    code = "secret_key_missing"


class DataFolderClosed(Unavailable):
    """The data folder cannot be written to."""

    code = "data_folder_closed"


class DatabaseMissing(Unavailable):
    """There is no database here yet."""

    code = "database_missing"


@dataclass(frozen=True, slots=True)
class Deployment:
    """The database of this deployment: as the application, and as the one who may change its schema."""

    app: DatabaseConfig
    owner: DatabaseConfig
    embedded: bool
    superuser: DatabaseConfig | None = None  # of the embedded server


def load_settings(**overrides: object) -> Settings:
    loaded = settings.load(**{name: value for name, value in overrides.items() if value is not None})
    logs.configure(format=loaded.log_format, level=loaded.log_level)
    return loaded


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run on uvloop, as every part of Headrace does."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


@contextmanager
def database_of(chosen: Settings, *, role: str, report: Report, make: bool = False) -> Iterator[Deployment]:
    """The database that the settings name; without one the embedded PostgreSQL, started if need be.

    Only who says ``make`` gets a new one: a command in the wrong folder shall not leave a database there.
    """
    if chosen.database_url is not None:
        app_url = chosen.database_url.get_secret_value()
        owner_url = chosen.database_owner_url.get_secret_value() if chosen.database_owner_url else app_url
        yield _deployment(chosen, role, app_url, owner_url, embedded=False)
        return
    config = embedded_postgres.EmbeddedConfig(
        data_dir=chosen.data_dir.resolve(),
        binaries=chosen.postgres_binaries,
        port=chosen.postgres_port,
        run_as=chosen.postgres_run_as,
    )
    if make:
        data_folder(chosen)
    elif not embedded_postgres.is_made(config):
        raise DatabaseMissing(
            f"There is no database in {config.data_dir} yet: `headrace up` makes one. If yours is elsewhere, go to its"
            " folder, set HEADRACE_DATA_DIR, or HEADRACE_DATABASE_URL."
        )
    with embedded_postgres.attach(config, report=report) as server:
        found = _deployment(chosen, role, server.app_url, server.owner_url, embedded=True)
        yield replace(found, superuser=replace(found.owner, url=server.url_for_superuser))


def _deployment(chosen: Settings, role: str, app_url: str, owner_url: str, *, embedded: bool) -> Deployment:
    def config(url: str, *, pooled: bool) -> DatabaseConfig:
        return DatabaseConfig(
            url=url,
            role=role,
            pool_min=chosen.database_pool_min,
            pool_max=chosen.database_pool_max,
            connect_timeout=chosen.database_connect_timeout,
            statement_timeout=chosen.database_statement_timeout,
            pooled=pooled,
        )

    pooled = chosen.database_pooled and not embedded
    # An address of its own for the owner is the server's: what migrates needs a connection that stays the same.
    return Deployment(
        config(app_url, pooled=pooled), config(owner_url, pooled=pooled and owner_url == app_url), embedded
    )


def data_folder(chosen: Settings) -> Path:
    """Make the data folder, out of reach of git whatever the project's ignore file says.

    What root makes here belongs to the owner of the folder above: a first `sudo` must not lock them out.
    """
    folder = chosen.data_dir.resolve()
    try:
        if not folder.exists():
            files.make_home(folder)
            files.write(folder / ".gitignore", "*\n", mode=0o644)
    except (OSError, HeadraceError) as exc:
        told = exc if isinstance(exc, OSError) else exc.__cause__
        why = told.strerror if isinstance(told, OSError) else "not writable"
        raise DataFolderClosed(
            f"The data folder {folder} cannot be made ({why}): mend its rights, or set HEADRACE_DATA_DIR."
        ) from exc
    return folder


def secret_key(chosen: Settings, *, make: bool = False) -> bytes:
    """The deployment's secret, from the settings or from the data folder, where ``make`` puts one once."""
    if chosen.secret_key is not None:
        return chosen.secret_key.get_secret_value().encode()
    file = chosen.data_dir / _SECRET_FILE
    try:
        if make:
            _write_once(data_folder(chosen) / _SECRET_FILE, secrets.token_hex(32))
        return file.read_bytes()
    except FileNotFoundError:
        raise SecretKeyMissing from None
    except OSError as exc:
        raise DataFolderClosed(f"{file} cannot be read or written: {exc.strerror}.") from exc


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
    """Where the heads of the trail are kept: beside the archives. No folder is made for them where nobody asked."""
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
    config = replace(deployment.app.for_role("scheduler"), pool_max=3, idle_in_transaction_timeout=FROZEN_FOR)
    stop = asyncio.Event()
    async with await Database.connect(config) as db, asyncio.TaskGroup() as group:
        await ensure_schedules(db, with_maintenance(Registry(), maintenance(chosen, deployment, db)), retention.ROWS)
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
    config = replace(deployment.app.for_role("relay"), pool_max=6, idle_in_transaction_timeout=FROZEN_FOR)
    wanted = consumers(chosen)
    stop = asyncio.Event()
    async with (
        await until_reachable(lambda: Database.connect(config), say=say) as db,
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


def maintenance(chosen: Settings, deployment: Deployment, db: Database) -> Maintenance:
    """What the product's own tasks work with."""
    return Maintenance(
        db=db,
        owner=deployment.owner,
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
    connection = replace(deployment.app.for_role("worker"), pool_max=6, idle_in_transaction_timeout=config.lease)
    stop = asyncio.Event()
    async with await Database.connect(connection) as db, asyncio.TaskGroup() as group:
        working = Worker(
            db,
            with_maintenance(Registry(), maintenance(chosen, deployment, db)),
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
    """Write a file that nobody else can read, unless it is there; never half of it, also under a race or a crash."""
    if file.exists():
        return
    draft = file.with_name(f"{file.name}.{secrets.token_hex(4)}")
    try:
        files.write(draft, content, durable=True)
        with suppress(FileExistsError):  # another process was faster, and theirs counts
            os.link(draft, file)
    finally:
        draft.unlink(missing_ok=True)
