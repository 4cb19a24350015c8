"""``headrace up``: all of Headrace in one process group, on its own PostgreSQL unless the settings name another."""

import asyncio
import fcntl
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from time import monotonic, sleep
from typing import Annotated, NoReturn, TextIO

import httpx2
import orjson
import typer
from rich.markup import escape

from headrace import __version__
from headrace.assembly import serving
from headrace.assembly.api import application
from headrace.assembly.deployment import Deployment, data_folder, database_of
from headrace.assembly.development import for_development
from headrace.assembly.first_password import FirstPassword
from headrace.assembly.local_payments import Paying, paying
from headrace.assembly.maintenance import maintenance_loops
from headrace.assembly.relay import relaying
from headrace.assembly.scheduler import scheduling
from headrace.assembly.storage_check import check_storage
from headrace.assembly.up import prepare, watch_schema
from headrace.assembly.worker import working_here
from headrace.cli.api import Host, Port
from headrace.cli.output import LOOKING, as_log, out, progress, say
from headrace.cli.program import load_program
from headrace.cli.session import load_settings, run
from headrace.cli.signals import stop_on_signals
from headrace.cli.supervisor import Supervisor, supervised, worker_command
from headrace.cli.worker import say_what_is_waited_for, worker
from headrace.database_errors import SchemaMissing
from headrace.embedded_postgres import EmbeddedConfig, files, is_running
from headrace.errors import Conflict
from headrace.figures import Meters
from headrace.settings import Settings
from headrace.tasks.worker.loop import Worker

App = Annotated[
    str | None,
    typer.Option(metavar="APP", help="Run the tasks of this program, too: module:registry, as for `worker`."),
]


_LOCAL_TARGETS = """
  Webhooks  may go to this machine, for development (HEADRACE_WEBHOOK_LOCAL_TARGETS=false forbids it)"""
_OPEN = """
  Register  open to everyone who can reach this address (HEADRACE_REGISTRATION=closed forbids it)"""
_CLOSED = """
  Register  closed: an administrator makes accounts (HEADRACE_REGISTRATION=open lets strangers in)"""


_READY_WITHIN_S = 60.0

PayLocally = Annotated[
    bool,
    typer.Option("--pay-locally", help="Stand in for WeChat Pay on a page of this machine, to try buying."),
]


def up(host: Host = None, port: Port = None, app: App = None, pay_locally: PayLocally = False) -> None:
    """Start everything: PostgreSQL, the schema, the API, scheduler and relay. Ctrl-C stops it; the data stays."""
    started = monotonic()
    if app is not None:
        load_program(app)  # before anything is made: a wrong name must not cost a start
    settings = for_development(load_settings(api_host=host, api_port=port))
    with _alone(data_folder(settings) / "up.lock") as lock:
        if isinstance(lock, _Running):
            _beside(lock, app, options_set=[host is not None, port is not None, pay_locally])
            return
        with ExitStack() as stack:
            listening = stack.enter_context(serving.listen(settings))
            lock.write(orjson.dumps({"pid": os.getpid(), "url": listening.url}).decode())
            lock.flush()
            theirs = settings.database_url is not None
            with progress(LOOKING if theirs else "starting PostgreSQL") as report:
                deployment = stack.enter_context(database_of(settings, role="up", report=report, make=True, notify=say))
                first = FirstPassword.within(settings.data_dir)
                secret = run(prepare(settings, deployment, first, report))
                run(check_storage(settings, notify=say))
            how = _How(app, pay_locally, first, started)
            try:
                run(_serve(settings, deployment, secret, listening, how))
            except Exception:
                if not how.schema_gone.is_set():  # else nothing can be written at the end either
                    raise
            if how.schema_gone.is_set():
                _end_without_schema(embedded=deployment.embedded)
            say("stopping")
            if not as_log() and (unused := first.read()) is not None:  # by now it has scrolled away
                # To the first output, and not to the log.
                out.print(f"Log in as {unused[0]} with the password {unused[1]} (it stays in {first.file})")
    say(_stopped(settings, embedded=deployment.embedded))


def _end_without_schema(*, embedded: bool) -> NoReturn:
    """Keep the embedded server up after its schema was dropped: a restore must not lose its server."""
    gone = SchemaMissing(
        "Headrace's schema was dropped from the database: restore a backup with `headrace restore`, or start again, "
        "which makes an empty one."
    )
    if embedded:
        say(f"headrace up: {gone.message} PostgreSQL alone stays up until Ctrl-C.")
        run(_wait_for_signal())
    raise gone


async def _wait_for_signal() -> None:
    await stop_on_signals().wait()


def _stopped(settings: Settings, *, embedded: bool) -> str:
    """Report whether PostgreSQL still writes to the data folder: a copy taken now would be inconsistent."""
    if embedded and is_running(EmbeddedConfig(settings.data_dir.resolve())):
        return (
            "stopped, but PostgreSQL stays up for another process that uses it (a worker, or a command): do not copy "
            f"{settings.data_dir} before that one has ended"
        )
    return f"stopped; the data stays in {settings.data_dir}"


@dataclass(frozen=True, slots=True)
class _How:
    """The options of `up`, and its state."""

    program: str | None
    pay_locally: bool
    first: FirstPassword
    started: float
    schema_gone: threading.Event = field(default_factory=threading.Event)


async def _serve(
    settings: Settings,
    deployment: Deployment,
    secret: bytes,
    listening: serving.Listening,
    how: _How,
) -> None:
    stop = stop_on_signals()
    meters = Meters("up", __version__)
    async with (
        paying(settings, listening.url, locally=how.pay_locally) as payment,
        _program(payment, how.program, stop),
        working_here(payment.settings, deployment, maintains=how.program is None) as working,
        scheduling(payment.settings, deployment) as firing,
        relaying(payment.settings, deployment) as relay,
        maintenance_loops(payment.settings, deployment) as reaper,
        application(payment.settings, deployment, secret, url=listening.url, meters=meters) as app,
        how.first.watched(deployment.app),
    ):
        for part in (working, firing, relay, reaper):
            if part is not None:
                meters.add(part.read_figures)
        _greet(listening.url, how.first, settings, pay_at=payment.url, seconds=monotonic() - how.started)
        here = [] if working is None else [working]
        telling = asyncio.create_task(_tell_what_is_waited_for(stop, here, settings.worker_shutdown_timeout))
        watching = asyncio.create_task(watch_schema(deployment, stop, how.schema_gone))
        try:
            await serving.serve(app, listening, settings, stop=stop)
        finally:
            telling.cancel()
            watching.cancel()


async def _tell_what_is_waited_for(stop: asyncio.Event, working: Sequence[Worker], limit: timedelta) -> None:
    await stop.wait()
    say_what_is_waited_for(working, limit)


def _program(payment: Paying, program: str | None, stop: asyncio.Event) -> AbstractAsyncContextManager[None]:
    """A worker for the program's tasks, in a process of its own: a busy handler must not keep requests waiting."""
    if program is None:
        return nullcontext()
    environment = {**payment.environment, "HEADRACE_REMOVAL_PROCESSES": "0"}  # that is done here
    return supervised(Supervisor(worker_command(program), 1, environment=environment), stop=stop)


def _greet(url: str, first: FirstPassword, settings: Settings, *, pay_at: str | None, seconds: float) -> None:
    unused = first.read()
    if as_log():  # which goes to many places: without the password
        login = f"log in as {unused[0]}, with the password in {first.file}" if unused else "log in as before"
        say(f"Headrace is running at {url} (started in {seconds:.1f} s); {login}")
        return
    login = (
        f"as [bold]{unused[0]}[/] with the password [bold]{unused[1]}[/] (in {escape(str(first.file))} until used)"
        if unused
        else "as before (password lost? `headrace admin reset-password NAME`)"
    )
    allowed = _OPEN if settings.registration == "open" else _CLOSED
    if settings.webhook_local_targets:
        allowed += _LOCAL_TARGETS
    paid_at = f"\n  Pay       {pay_at}/   stands in for WeChat Pay" if pay_at else ""
    out.print(
        f"""
[bold green]Headrace is running[/] [dim](started in {seconds:.1f} s)[/]
  Console   {url}/
  API       {url}/v1   reference: {url}/docs
  Log in    {login}{paid_at}
  Data      {escape(str(settings.data_dir))}{allowed}
[dim]Ctrl-C stops it.[/]
""",
        soft_wrap=True,
        markup=True,
    )


class AlreadyUp(Conflict):
    """Headrace is already running in this folder."""

    code = "already_up"


@dataclass(frozen=True, slots=True)
class _Running:
    """The process that runs in this folder; both fields are unknown while it starts."""

    url: str | None = None
    pid: int | None = None

    def __str__(self) -> str:
        if self.url is None:
            return "Headrace is already starting in this folder"
        return f"Headrace is already running at {self.url} (process {self.pid})"


def _beside(running: _Running, app: str | None, *, options_set: Sequence[bool]) -> None:
    """Headrace already runs here: report it, add a worker to it, or refuse new options."""
    if any(options_set):
        raise AlreadyUp(f"{running}: stop it, then start it with these options.")
    if app is None:
        say(f"{running}.")
        return
    if running.url is None or not _gets_ready(running.url):  # its schema may not be there yet
        raise AlreadyUp(f"{running} and is not ready: once it is, this starts a worker for {app} beside it.")
    say(f"{running}; this is a worker for {app} beside it.")
    worker(app)


def _gets_ready(url: str) -> bool:
    until = monotonic() + _READY_WITHIN_S
    while monotonic() < until:
        with suppress(httpx2.TransportError):
            if httpx2.get(f"{url}/readyz", trust_env=False).is_success:
                return True
        sleep(0.2)
    return False


@contextmanager
def _alone(file: Path) -> Iterator[TextIO | _Running]:
    """Hold the lock file of this folder; or give the process that holds it."""
    with os.fdopen(files.open_own(file, os.O_RDWR | os.O_APPEND), "a+") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            stream.seek(0)
            try:
                state = orjson.loads(stream.read())
            except orjson.JSONDecodeError:
                yield _Running()
            else:
                yield _Running(state["url"], state["pid"])
            return
        stream.truncate(0)
        yield stream
