"""``headrace docs``: render the reference pages from the code, or check that they are up to date."""

from collections.abc import Callable, Mapping
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.core

from headrace import settings
from headrace.assembly import description
from headrace.cli import client_code, place
from headrace.cli.later import Later
from headrace.cli.output import EXIT_CODES, POOR_RESULT, say
from headrace.cli.python_page import python_page
from headrace.errors import Conflict, Invalid
from headrace.migrations import definitions
from headrace.outbox.catalogue import EVENT_TYPES
from headrace.web import reference

# What the console's client is made from.
_CONSOLE = Path("console")
# Where the number of the definitions stands, beside them.
_MIGRATIONS = Path("src/headrace/migrations")


class PagesStale(Conflict):
    """A reference page does not say what the code says: run `make docs`."""

    code = "pages_stale"


def docs(
    folder: Annotated[Path, typer.Option(help="Where the pages lie.")] = Path("docs/reference"),
    check: Annotated[bool, typer.Option("--check", help="Write nothing; fail if a page is out of date.")] = False,
) -> None:
    """Render the reference pages from the code."""
    if not folder.is_dir():
        raise Invalid(f"There is no folder {folder} here: run this in the project's root.")
    # The client is first: the page of Python names reads it.
    pages = client_code.files() if client_code.CLIENT.is_dir() else {}
    pages |= {folder / name: render for name, render in _pages().items()}
    if _MIGRATIONS.is_dir():
        pages[_MIGRATIONS / "revision"] = definitions.numbered
    if _CONSOLE.is_dir():
        pages[_CONSOLE / "openapi.json"] = description.shape
    for page, render in pages.items():
        text = render()
        if page.exists() and page.read_text() == text:
            continue
        if check:
            raise PagesStale(f"{page} does not say what the code says: run `make docs`.")
        page.write_text(text)
        say(f"wrote {page}")


def _pages() -> Mapping[str, Callable[[], str]]:
    return {
        "settings.md": settings.reference_page,
        "errors.md": reference.errors_page,
        "cli.md": _cli_page,
        "event-types.md": _event_types_page,
        "python.md": python_page,
    }


def _event_types_page() -> str:
    lines = [
        "# Types of events",
        "",
        "<!-- Rendered from src/headrace/outbox/catalogue.py by `make docs`; edit there. -->",
        "",
        "What each event is about and what its `data` holds. `GET /v1/event-types` and `headrace outbox types --json`",
        "give the same as JSON Schemas. [Events](events.md) says what goes for all of them.",
        "",
        "| type | version | in order for | when |",
        "|---|---|---|---|",
        *(f"| `{known.name}` | {known.version} | {known.aggregate} | {known.description} |" for known in EVENT_TYPES),
    ]
    for group, named in groupby(EVENT_TYPES, key=lambda known: known.group):
        fields: dict[str, Any] = {}
        for known in named:
            fields |= {
                name: (schema, name in known.schema["required"]) for name, schema in known.schema["properties"].items()
            }
        lines += ["", f"## `{group}.*`", "", "| field | type | |", "|---|---|---|"]
        lines += [_field_row(name, schema, required=required) for name, (schema, required) in fields.items()]
    return "\n".join(lines) + "\n"


def _field_row(name: str, schema: Mapping[str, Any], *, required: bool) -> str:
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    notes = [
        schema.get("description", ""),
        f"One of {', '.join(f'`{word}`' for word in schema['enum'])}." if "enum" in schema else "",
        "An instant, ISO 8601 in UTC." if schema.get("format") == "date-time" else "",
        "" if required else "Not in every event.",
    ]
    return f"| `{name}` | {' or '.join(kinds)} | {' '.join(filter(None, notes))} |"


def _cli_page() -> str:
    from headrace.cli.app import app

    lines = [
        "# Command line",
        "",
        "<!-- Rendered from src/headrace/cli by `make docs`; edit there. -->",
        "",
        "Commands that print data take `--json`: errors are JSON then, too, as the API has them, on standard output.",
        "`headrace --install-completion` teaches your shell to complete them.",
        "",
        "Those marked *also afar* act on the database of the settings, or over a server's API:",
        "[use it from afar](../howto/from-afar.md).",
        "",
        *(f"- `--{name}`: {text}" for name, text in place.HELP.items()),
        "",
        "## Exit codes",
        "",
        "| code | meaning |",
        "|---|---|",
        "| 0 | done |",
        "| 1 | something unforeseen, or a check that failed |",
        *(f"| {code} | {(kind.__doc__ or '').partition(chr(10))[0]} |" for kind, code in EXIT_CODES.items()),
        f"| {POOR_RESULT} | `headrace remove` has written a poor result: look at it; `--accept-poor` makes this 0 |",
        "| 130 | interrupted by Ctrl-C |",
        "",
        "## Commands",
    ]
    _describe(typer.main.get_command(app), ["headrace"], lines)
    return "\n".join(lines) + "\n"


def _describe(command: Any, path: list[str], lines: list[str]) -> None:
    if isinstance(command, Later):
        command = command.loaded
    if isinstance(command, typer.core.TyperGroup):
        for name, child in command.commands.items():
            if not child.hidden:
                _describe(child, [*path, name], lines)
        return
    afar = place.can_be_sent(command)
    lines += ["", f"### `{' '.join(path)}`", "", f"{(command.help or '').strip()}{' *Also afar.*' * afar}", ""]
    for parameter in command.params:
        if getattr(parameter, "hidden", False) or (afar and parameter.name in place.OPTIONS):
            continue
        if isinstance(parameter, typer.core.TyperArgument):
            lines.append(f"- `{str(parameter.name).upper()}`: {parameter.help}")
        else:
            lines.append(f"- `{', '.join(parameter.opts)}`: {parameter.help}")
