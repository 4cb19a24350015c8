"""The command tree."""

import sys
from typing import Annotated

import typer

from headrace import __version__
from headrace.cli.later import Entry, group_of
from headrace.cli.output import as_log, choose_form, errors_in_one_line, wants_json
from headrace.errors import Invalid

COMMANDS = {
    "up": Entry(
        "headrace.cli.up:up",
        "Start everything: PostgreSQL, the schema, the API, scheduler and relay. Ctrl-C stops it; the data stays.",
    ),
    "init": Entry(
        "headrace.cli.init:init",
        "Write a small project of your own: a typed task, its tests, and how to run both. Overwrites nothing.",
    ),
    "api": Entry("headrace.cli.api:api", "Serve the REST API. The schema must be there: `headrace migrate`."),
    "worker": Entry(
        "headrace.cli.worker:worker",
        "Run the tasks of a program, and Headrace's own, until Ctrl-C or SIGTERM; a second Ctrl-C ends it at once.",
    ),
    "scheduler": Entry(
        "headrace.cli.scheduler:scheduler",
        "Fire schedules when they are due, and do the maintenance that an API does. Any number share the work.",
    ),
    "relay": Entry(
        "headrace.cli.relay:relay",
        "Give events to webhooks, notifications and brokers, and send them. Any number share the work.",
    ),
    "submit": Entry("headrace.cli.submit:submit", "Submit a task and print its id.", afar=True),
    "detect": Entry(
        "headrace.cli.removal:detect",
        "Detect a watermark in a picture, a clip, a PDF or slides; exits with 1 if none is certain.",
    ),
    "remove": Entry(
        "headrace.cli.removal:remove",
        "Take the watermark off files that are yours; exits with 1 if one is left as it is, 8 if one needs a look.",
    ),
    "tasks": Entry("headrace.cli.tasks:app", "Tasks: list, cancel, retry and delete them.", afar=True),
    "schedules": Entry(
        "headrace.cli.schedules:app", "Schedules: make, change, enable, disable and run them.", afar=True
    ),
    "executions": Entry("headrace.cli.executions:app", "The runs of schedules: list and cancel them.", afar=True),
    "cron": Entry("headrace.cli.cron:cron", "Print when a cron expression is due next."),
    "queues": Entry("headrace.cli.queues:app", "Queues: list, pause, resume and limit them.", afar=True),
    "workers": Entry("headrace.cli.queues:workers", "Worker processes that have not ended.", afar=True),
    "stats": Entry(
        "headrace.cli.stats:stats",
        "Throughput, failures, queue depth and latency of the last hour, day or week.",
        afar=True,
    ),
    "users": Entry(
        "headrace.cli.users:app", "Users: list, make, suspend and reinstate them, set their role.", afar=True
    ),
    "keys": Entry("headrace.cli.keys:app", "API keys, for programs: list, make and revoke them.", afar=True),
    "locks": Entry("headrace.cli.locks:app", "Locks: list, take, keep and release them.", afar=True),
    "ledger": Entry(
        "headrace.cli.ledger:app", "The ledger: list it, prove that it adds up, adjust a quota.", afar=True
    ),
    "usage": Entry("headrace.cli.usage:app", "Usage: by day and task, the remaining units; as CSV.", afar=True),
    "plans": Entry("headrace.cli.plans:app", "Plans: the offers and their prices.", afar=True),
    "subscriptions": Entry(
        "headrace.cli.subscriptions:app",
        "Subscriptions and their orders: list, cancel and refund them.",
        afar=True,
    ),
    "webhooks": Entry(
        "headrace.cli.webhooks:app",
        "Webhooks: endpoints, deliveries, keys, and a receiver to try them with.",
        afar=True,
    ),
    "outbox": Entry("headrace.cli.outbox:app", "Events: list waiting and dead ones; revive them.", afar=True),
    "files": Entry("headrace.cli.files:app", "Files: send, fetch, list and delete them.", afar=True),
    "backup": Entry(
        "headrace.cli.backup:backup",
        "Write everything to one file while everything runs: rows, roles, files and archives; never the secret key.",
    ),
    "restore": Entry(
        "headrace.cli.backup:restore",
        "Put a backup into an empty deployment, whatever the versions of the two PostgreSQL servers.",
    ),
    "database": Entry(
        "headrace.cli.databases:app",
        "The database: its address, psql and pg_dump for it, and room in it for your own tables.",
    ),
    "migrate": Entry(
        "headrace.cli.migrate:migrate",
        "Bring the schema to what this program needs. Safe at any time, from any number of processes.",
    ),
    "doctor": Entry(
        "headrace.cli.doctor:doctor",
        "Check settings, storage, database, schema, rights, clocks and months; list the faults; exits with 1 if bad.",
    ),
    "partitions": Entry(
        "headrace.cli.partitions:app",
        "Tables that are kept by months: which months there are, and letting old ones go.",
        afar=True,
    ),
    "archive": Entry(
        "headrace.cli.archive:app", "Months that have left the database: list, verify, ask and restore them.", afar=True
    ),
    "docs": Entry("headrace.cli.docs:docs", "Render the reference pages from the code.", hidden=True),
    "audit": Entry("headrace.cli.audit:app", "The audit trail: search, export, verify, prove, import.", afar=True),
    "admin": Entry("headrace.cli.admin:app", "Accounts, for an operator with access to the database.", afar=True),
    "configs": Entry("headrace.cli.configs:app", "Settings that change while Headrace runs.", afar=True),
    "risks": Entry("headrace.cli.risks:app", "The ledger of known risks.", afar=True),
    "settings": Entry("headrace.cli.settings:app", "What this deployment has chosen."),
}

app = typer.Typer(
    name="headrace",
    cls=group_of(COMMANDS),
    help="Tasks, schedules, audit, metering and webhooks on one PostgreSQL.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"headrace {__version__}")
        raise typer.Exit


def _place_of_option(option: typer.CallbackParam, value: str | None) -> None:
    if value is not None:
        name = option.opts[0]
        raise Invalid(f"{name} goes behind the command: headrace tasks list {name} …")


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print it.")
    ] = False,
    url: Annotated[str | None, typer.Option("--url", callback=_place_of_option, hidden=True)] = None,
    key: Annotated[str | None, typer.Option("--key", callback=_place_of_option, hidden=True)] = None,
    profile: Annotated[str | None, typer.Option("--profile", callback=_place_of_option, hidden=True)] = None,
) -> None:
    """What holds for every command: settings come from HEADRACE_… variables or headrace.toml."""


def main() -> None:
    choose_form()
    with errors_in_one_line():
        # Also under `python -m headrace`: the name is what completion scripts are written for.
        ended = app(prog_name="headrace", standalone_mode=not (wants_json() or as_log()))
        if isinstance(ended, int) and ended:
            sys.exit(ended)
