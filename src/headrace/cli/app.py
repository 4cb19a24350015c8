"""The command tree."""

from typing import Annotated

import typer

from headrace import __version__
from headrace.cli import admin, api, docs, doctor, migrate, queues, settings, submit, tasks, up, worker
from headrace.cli.output import errors_in_one_line

app = typer.Typer(
    name="headrace",
    help="Tasks, schedules, audit, metering and webhooks on one PostgreSQL.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"headrace {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print it.")
    ] = False,
) -> None:
    """What holds for every command: settings come from HEADRACE_… variables or headrace.toml."""


app.command()(up.up)
app.command()(api.api)
app.command()(worker.worker)
app.command()(submit.submit)
app.add_typer(tasks.app, name="tasks")
app.add_typer(queues.app, name="queues")
app.command()(queues.workers)
app.command()(migrate.migrate)
app.command()(doctor.doctor)
app.command(hidden=True)(docs.docs)
app.add_typer(admin.app, name="admin")
app.add_typer(settings.app, name="settings")


def main() -> None:
    with errors_in_one_line():
        # Also under `python -m headrace`: the name is what completion scripts are written for.
        app(prog_name="headrace")
