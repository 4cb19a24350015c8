"""``headrace settings``: what this deployment has chosen."""

import typer

from headrace.cli.output import Json, print_json, print_table
from headrace.cli.session import load_settings
from headrace.settings import PREFIX, Settings, shown_as

app = typer.Typer(help="What this deployment has chosen.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Keeps `show` a subcommand while it is the only one."""


@app.command()
def show(json: Json = False) -> None:
    """Every setting with its present value; secrets are hidden."""
    settings = load_settings()
    values = {name: shown_as(name, getattr(settings, name)) for name in Settings.model_fields}
    if json:
        print_json(values)
        return
    chosen = settings.model_fields_set
    print_table(
        ("setting", "value", ""),
        [(f"{PREFIX}{name.upper()}", value, "set" if name in chosen else "default") for name, value in values.items()],
    )
