"""``headrace up``: all of Headrace in one process group, on its own PostgreSQL unless the settings name another."""

import asyncio
import fcntl
import os
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Annotated, TextIO

import orjson
import typer
from rich.markup import escape

from headrace import migrations
from headrace.accounts import administration, service
from headrace.accounts.administration import FirstAdmin
from headrace.assembly.newcomers import newcomers
from headrace.assembly.webhooks import for_development
from headrace.cli import serving
from headrace.cli.api import Host, Port
from headrace.cli.maintenance import maintenance_loops
from headrace.cli.output import out, progress, say
from headrace.cli.paying_locally import Paying, paying
from headrace.cli.program import load_program
from headrace.cli.removal_wiring import removing
from headrace.cli.supervisor import Supervisor, supervised, worker_command
from headrace.cli.wiring import (
    Deployment,
    Report,
    accounts_config,
    data_folder,
    database_of,
    load_settings,
    maintaining,
    relaying,
    run,
    scheduling,
    secret_key,
)
from headrace.database import Database
from headrace.embedded_postgres import files
from headrace.settings import Settings

App = Annotated[
    str | None,
    typer.Option(metavar="APP", help="Run the tasks of this program, too: module:registry, as for `worker`."),
]


_LOCAL_TARGETS = """
  Webhooks  may go to this machine, for development (HEADRACE_WEBHOOK_LOCAL_TARGETS=false forbids it)"""


PayLocally = Annotated[
    bool,
    typer.Option("--pay-locally", help="Stand in for WeChat Pay on a page of this machine, to try buying."),
]


def up(host: Host = None, port: Port = None, app: App = None, pay_locally: PayLocally = False) -> None:
    """Start everything: PostgreSQL, the schema, the API, scheduler and relay. Ctrl-C stops it; the data stays."""
    started = monotonic()
    if app is not None:
        load_program(app)  # before anything is made: a password that is shown once must not be lost to a wrong name
    settings = for_development(load_settings(api_host=host, api_port=port))
    with _alone(data_folder(settings) / "up.lock") as lock:
        if lock is None:
            return
        with ExitStack() as stack:
            listening = stack.enter_context(serving.listen(settings))
            lock.write(orjson.dumps({"pid": os.getpid(), "url": listening.url}).decode())
            lock.flush()
            theirs = settings.database_url is not None
            with progress("looking at the database" if theirs else "starting PostgreSQL") as report:
                deployment = stack.enter_context(database_of(settings, role="up", report=report, make=True))
                secret = secret_key(settings, make=True)
                admin = run(_prepare(settings, deployment, secret, report))
            how = _How(app, pay_locally, admin, started)
            run(_serve(settings, deployment, secret, listening, how))
            say("stopping PostgreSQL" if deployment.embedded else "stopping")
    say(f"stopped; the data stays in {settings.data_dir}")


async def _prepare(settings: Settings, deployment: Deployment, secret: bytes, report: Report) -> FirstAdmin | None:
    """The schema and the first administrator, who is given only if it was made just now."""
    await migrations.migrate(deployment.owner, lock_timeout=settings.database_migrate_lock_timeout, report=report)
    async with (
        await Database.connect(deployment.app) as db,
        service.open_accounts(accounts_config(settings), secret=secret, welcomes=newcomers()) as known,
    ):
        return await administration.ensure_first_admin(db, known)


@dataclass(frozen=True, slots=True)
class _How:
    """What `up` was told, and what it found."""

    program: str | None
    pay_locally: bool
    admin: FirstAdmin | None
    started: float


async def _serve(
    settings: Settings,
    deployment: Deployment,
    secret: bytes,
    listening: serving.Listening,
    how: _How,
) -> None:
    stop = serving.stop_on_signals()
    async with (
        paying(settings, listening.url, locally=how.pay_locally) as told,
        _working(told, deployment, how.program, stop),
        removing(told.settings, deployment),
        scheduling(told.settings, deployment),
        relaying(told.settings, deployment),
        maintenance_loops(told.settings, deployment),
        serving.application(told.settings, deployment, secret, url=listening.url) as app,
    ):
        _greet(listening.url, how.admin, settings, pay_at=told.url, seconds=monotonic() - how.started)
        await serving.serve(app, listening, settings, stop=stop)


def _working(
    told: Paying, deployment: Deployment, program: str | None, stop: asyncio.Event
) -> AbstractAsyncContextManager[None]:
    """A worker beside the API, in a process of its own: a busy handler must not keep requests waiting. Without a
    program there are only the product's own tasks, which are no trouble here; removal's work is done in children."""
    if program is None:
        return maintaining(told.settings, deployment)
    environment = {**told.environment, "HEADRACE_REMOVAL_PROCESSES": "0"}  # that is done here
    return supervised(Supervisor(worker_command(program), 1, environment=environment), stop=stop)


def _greet(url: str, admin: FirstAdmin | None, settings: Settings, *, pay_at: str | None, seconds: float) -> None:
    login = (
        f"as [bold]{admin.user.username}[/] with the password [bold]{admin.password}[/] (shown only now)"
        if admin
        else "as before (password lost? `.venv/bin/headrace admin reset-password NAME`)"
    )
    paid_at = f"\n  Pay       {pay_at}/   stands in for WeChat Pay" if pay_at else ""
    out.print(
        f"""
[bold green]Headrace is running[/] [dim](started in {seconds:.1f} s)[/]
  Console   {url}/
  API       {url}/v1   reference: {url}/docs
  Log in    {login}{paid_at}
  Data      {escape(str(settings.data_dir))}{_LOCAL_TARGETS if settings.webhook_local_targets else ""}
[dim]Ctrl-C stops it.[/]
""",
        soft_wrap=True,
    )


@contextmanager
def _alone(file: Path) -> Iterator[TextIO | None]:
    """Hold the file that says who is up in this folder; None, with a word about it, when somebody else is."""
    with os.fdopen(files.open_own(file, os.O_RDWR | os.O_APPEND), "a+") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            stream.seek(0)
            try:
                running = orjson.loads(stream.read())
            except orjson.JSONDecodeError:
                say("Headrace is already starting in this folder.")
            else:
                say(f"Headrace is already running at {running['url']} (process {running['pid']}).")
            yield None
            return
        stream.truncate(0)
        yield stream
