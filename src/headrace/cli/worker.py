"""``headrace worker``: run the tasks of a program and the product's own, in one process or several."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from typing import Annotated

import typer

from headrace import __version__, logs
from headrace.assembly.deployment import Deployment
from headrace.assembly.metrics import metrics_served
from headrace.assembly.removal import removes
from headrace.assembly.storage_check import check_storage
from headrace.assembly.worker import open_worker, worker_config
from headrace.cli.figures import Display, Totals, display_for, reporting
from headrace.cli.output import Json, as_log, err, number_of, say
from headrace.cli.payloads import pairs
from headrace.cli.program import load_program
from headrace.cli.session import current_database, load_settings, run
from headrace.cli.signals import stop_on_signals
from headrace.cli.supervisor import Supervisor, supervised, worker_command
from headrace.database import Database
from headrace.errors import Invalid
from headrace.figures import Meters
from headrace.settings import Settings
from headrace.tasks.registry import Registry
from headrace.tasks.worker.config import WorkerConfig
from headrace.tasks.worker.loop import Worker

log = logs.get(__name__)

App = Annotated[
    str | None,
    typer.Argument(
        metavar="[APP]",
        help="Where the program's task types are: module:registry, from this folder. Without it: only Headrace's own.",
    ),
]
Queues = Annotated[str | None, typer.Option(help="Take tasks from these queues only: a,b. All of them by default.")]
Labels = Annotated[
    list[str] | None,
    typer.Option(help="What this worker has to offer, as key=value; tasks that ask for it come here. Repeatable."),
]


def worker(
    app: App = None,
    queues: Queues = None,
    concurrency: Annotated[
        int | None, typer.Option(help="Tasks at the same time in each process (HEADRACE_WORKER_CONCURRENCY).")
    ] = None,
    processes: Annotated[int, typer.Option(min=1, max=256, help="Worker processes; crashed ones are restarted.")] = 1,
    labels: Labels = None,
    poll_only: Annotated[
        bool, typer.Option("--poll-only", help="Do not listen for notifications (HEADRACE_WORKER_LISTEN=false).")
    ] = False,
    json: Json = False,
    figures_fd: Annotated[int | None, typer.Option(hidden=True)] = None,
) -> None:
    """Run the tasks of a program, and Headrace's own, until Ctrl-C or SIGTERM; a second Ctrl-C ends it at once."""
    settings = load_settings(worker_concurrency=concurrency, worker_listen=False if poll_only else None)
    names, offers = _names(queues), pairs(labels)
    if processes > 1:
        options = _pass_on(queues, concurrency, labels, poll_only=poll_only)
        _supervise(settings, app, processes, options, names, json=json)
        return
    registry = Registry() if app is None else load_program(app)
    config = worker_config(settings, queues=names, labels=offers)
    with ExitStack() as stack:
        deployment = _database(settings, stack, names, quiet=figures_fd is not None)
        display = stack.enter_context(display_for(settings, json=json, pipe=figures_fd))
        done = run(_work(settings, deployment, registry, config, display))
    if figures_fd is None:
        say(f"stopped; {number_of(done, 'task')} done")


def _database(settings: Settings, stack: ExitStack, queues: Sequence[str] | None, *, quiet: bool = False) -> Deployment:
    deployment = stack.enter_context(current_database(settings, role="worker", quiet=quiet))
    # A worker that removes no marks and names no storage may have none: its handlers may save no file.
    if not quiet and (settings.files_url is not None or removes(settings, queues)):
        run(check_storage(settings, notify=say))
    return deployment


def say_what_is_waited_for(working: Sequence[Worker], limit: timedelta) -> None:
    running = sum(each.running for each in working)
    if running:
        left = f"{limit.total_seconds():g} s"
        say(f"stopping: waiting for {number_of(running, 'task')} to end, at most {left}; Ctrl-C again ends at once")
    if blocked := sum(each.blocked_ends for each in working):
        say(
            f"stopping: another session's open transaction blocks the ends of {number_of(blocked, 'task')}; another "
            "process writes them later; `headrace doctor` names the session"
        )


async def _work(
    settings: Settings, deployment: Deployment, program: Registry, config: WorkerConfig, display: Display
) -> int:
    waits_for: list[Worker] = []
    stop = stop_on_signals(
        at_once=lambda: os._exit(130), at_first=lambda: say_what_is_waited_for(waits_for, config.shutdown_timeout)
    )
    async with open_worker(settings, deployment, program, config) as (db, working):
        waits_for.append(working)
        figures = working.figures

        def totals() -> tuple[int, Totals]:
            return 1, Totals(working.running, figures.finished, figures.failed, figures.lost)

        meters = Meters("worker", __version__)
        meters.add(working.read_figures)
        with _past_deaf_handlers(working):
            async with (
                metrics_served(settings, deployment, meters, reasons=working.reasons_not_ready),
                reporting(display, totals, db, config.queues, stop=stop),
            ):
                await working.run(stop)
        return figures.finished


@contextmanager
def _past_deaf_handlers(working: Worker) -> Iterator[None]:
    """A handler that swallows every cancellation would keep the event loop, and so the process, from ever ending."""
    try:
        yield
    except Exception:
        if working.abandoned:
            log.exception("worker.fell")
            _exit_hard(working, 1)
        raise
    if working.abandoned:
        _exit_hard(working, 0)


def _exit_hard(working: Worker, status: int) -> None:
    log.error("worker.exits_hard", handlers_left=len(working.abandoned), finished=working.figures.finished)
    err.show_cursor()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


# -- several processes


def _supervise(
    settings: Settings,
    app: str | None,
    processes: int,
    options: Sequence[str],
    queues: Sequence[str] | None,
    *,
    json: bool,
) -> None:
    with ExitStack() as stack:
        deployment = _database(settings, stack, queues)
        display = stack.enter_context(display_for(settings, json=json))
        supervisor = Supervisor(
            worker_command(app, *options),
            processes,
            relay=err.is_terminal and not as_log(),
            environment={"HEADRACE_LOG_FORMAT": _child_log_format(settings), "PYTHONUNBUFFERED": "1"},
        )
        run(_watch(deployment, display, supervisor, queues))
    say(f"stopped; {number_of(supervisor.totals()[1].finished, 'task')} done")


async def _watch(
    deployment: Deployment, display: Display, supervisor: Supervisor, queues: Sequence[str] | None
) -> None:
    def end_at_once() -> None:
        supervisor.kill()
        os._exit(130)

    stop = stop_on_signals(at_once=end_at_once)
    async with (
        await Database.connect(deployment.app) as db,
        reporting(display, supervisor.totals, db, queues, stop=stop),
        supervised(supervisor, stop=stop),
    ):
        await stop.wait()


def _child_log_format(settings: Settings) -> str:
    # Children write to a pipe, but the reader is a person.
    return "human" if err.is_terminal and settings.log_format == "auto" else settings.log_format


def _pass_on(
    queues: str | None, concurrency: int | None, labels: Sequence[str] | None, *, poll_only: bool
) -> list[str]:
    """The options of this command for a child's."""
    options = ["--poll-only"] if poll_only else []
    if queues is not None:
        options += ["--queues", queues]
    if concurrency is not None:
        options += ["--concurrency", str(concurrency)]
    for label in labels or ():
        options += ["--labels", label]
    return options


# -- options


def _names(text: str | None) -> list[str] | None:
    if text is None:
        return None
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise Invalid("--queues names no queue: write --queues a,b or leave it out for all of them.")
    return names
