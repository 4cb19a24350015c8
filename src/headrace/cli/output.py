"""The program's output: results on standard output, everything else on standard error."""

import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, NoReturn

import orjson
import typer
from rich.table import Table
from rich.text import Text

from headrace import errors, extras, logs
from headrace.cli.terminal import SafeConsole, cell, json_escaped
from headrace.visible import make_visible

# One message, one line: a terminal folds it by itself; who copies a path or a command, or pipes it, wants it whole.
out = SafeConsole(highlight=False, soft_wrap=True)
err = SafeConsole(stderr=True, highlight=False)

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON, for programs.")]
AlwaysJson = Annotated[bool, typer.Option("--json", help="Taken for scripts: the result is JSON in any case.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]

_PIPE_WIDTH = 4096
# Shown while a connection is made: a moving line in a terminal, and nothing in a log.
LOOKING = "looking at the database"
_USAGE_ERROR: Any = typer.BadParameter.__base__  # which Typer has no name for

# One exit code for each kind of error (docs/reference/cli.md), so that scripts can tell "later" from "never".
EXIT_CODES: Mapping[type[Exception], int] = {
    errors.Invalid: 2,
    errors.NotFound: 3,
    errors.Conflict: 4,
    errors.Denied: 5,
    errors.Exhausted: 6,
    errors.Unavailable: 7,
}
POOR_RESULT = 8  # the result exists, and should be checked before it is used


def exit_code(error: errors.HeadraceError) -> int:
    return next((code for kind, code in EXIT_CODES.items() if isinstance(error, kind)), 1)


def print_json(value: object) -> None:
    document = orjson.dumps(value, default=str, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    sys.stdout.buffer.write(json_escaped(document))
    sys.stdout.flush()


def print_done(result: Mapping[str, object], sentence: str, *, json: bool) -> None:
    """The result of a command that has one line to say."""
    if json:
        print_json(result)
    else:
        out.print(sentence, soft_wrap=True)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]], *, title: str | None = None) -> None:
    shown_title = None if title is None else cell(title)
    table = Table(*columns, title=shown_title, title_justify="left", header_style="bold", box=None, pad_edge=False)
    for row in rows:
        table.add_row(*(_cell(cell) for cell in row))
    # A terminal's width is a reason to shorten; the 80 columns that a pipe is taken to have are none.
    (out if out.is_terminal else SafeConsole(highlight=False, width=_PIPE_WIDTH)).print(table, soft_wrap=False)


def _cell(value: object) -> Text:
    if value is None:
        return Text()
    if isinstance(value, Text):
        return value
    if isinstance(value, dict | list | tuple):
        return cell(orjson.dumps(value, default=str).decode())
    return cell(str(value))


def number_of(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


# Long-running or unattended commands: their messages go to the log, in its form.
_LOGGING = frozenset({"up", "api", "worker", "scheduler", "relay", "migrate"})
_logging = False


def choose_form() -> None:
    """Find out what this command's notes are: text for people, or lines of a log."""
    global _logging
    _logging = sys.argv[1:2] != [] and sys.argv[1] in _LOGGING
    if _logging and os.environ.get("HEADRACE_LOG_FORMAT") == "json":  # settings are loaded later, and may be wrong
        logs.configure_later(format="json")
        logs.catch_all()


def as_log() -> bool:
    """Whether notes are lines of a log: HEADRACE_LOG_FORMAT=json, in a command that stays up."""
    return _logging and logs.json_alone()


def say(message: str, *, style: str | None = None) -> None:
    if as_log():
        logs.write("process.note", message, level="warning" if message.startswith("warning: ") else "info")
        return
    # One message, one line: a terminal folds it by itself, and readers of a log want it whole.
    err.print(message, style=style, soft_wrap=True)


class Progress:
    """A line with the current step: moving in a terminal, one line for each step elsewhere. There, a step that
    counts on ("what: 1,000 so far") gets a line every ten seconds."""

    _EVERY_S = 10.0

    def __init__(self, status: Any | None) -> None:
        self._status = status
        self._written: tuple[str, float] = ("", 0.0)

    def __call__(self, message: str) -> None:
        if self._status is not None:
            self._status.update(cell(message))
            return
        step, last = self._written
        if message.partition(":")[0] != step or time.monotonic() - last >= self._EVERY_S:
            self._written = message.partition(":")[0], time.monotonic()
            say(message if as_log() else f"· {message}")

    def stop(self) -> None:
        """Leave the terminal to another program."""
        if self._status is not None:
            self._status.stop()


@contextmanager
def progress(message: str) -> Iterator[Progress]:
    if as_log() or not err.is_terminal:
        report = Progress(None)
        if message != LOOKING:
            report(message)
        yield report
        return
    with err.status(cell(message)) as status:
        yield Progress(status)


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on standard error, on a terminal, for a process with a known total."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:
        shown = bar.add_task(make_visible(what), total=None)

        def report(done: int, total: int) -> None:
            bar.update(shown, completed=done, total=total)

        yield report


@contextmanager
def bytes_bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """The same for bytes on their way, with their speed."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    shown = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    columns = (*shown, TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:
        task = bar.add_task(make_visible(what), total=None)

        def report(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield report


def _unwrapped(exc: Exception) -> Exception:
    """The exceptions of several loops, out of the groups that each level wraps around them."""
    while isinstance(exc, ExceptionGroup) and len(exc.exceptions) == 1:
        exc = exc.exceptions[0]
    return exc


def wants_json() -> bool:
    """Whether the result is for a program, which then wants to read errors as well."""
    words = sys.argv[1:]
    return "--json" in (words[: words.index("--")] if "--" in words else words)


def _complain(error: errors.HeadraceError) -> NoReturn:
    """A line for people on standard error; with --json also the problem, as the API tells it, in the result's place."""
    if wants_json():
        from headrace.edge.problem_details import problem_of

        problem = problem_of(error).model_dump(mode="json", exclude_none=True) | {"detail": error.operator_message}
        print_json({**problem, "status": getattr(error, "status", problem["status"])})
    if as_log():
        logs.write("process.failed", error.operator_message, level="error", code=error.code)
    else:
        say(f"headrace: {error.operator_message}", style="red" if err.is_terminal else None)
    sys.exit(exit_code(error))


def _report_defect(exc: Exception) -> NoReturn:
    """Report an unforeseen error."""
    what = f"this should not have happened: {type(exc).__name__}: {exc}"
    if as_log():
        logs.write("process.failed", what, level="error", exception="".join(traceback.format_exception(exc)))
        sys.exit(1)
    if "HEADRACE_TEST_TRACEBACK" in os.environ:
        traceback.print_exception(exc)
    if wants_json():
        print_json({"type": "about:blank", "title": "Internal", "status": 500, "detail": str(exc), "code": "internal"})
    say(f"headrace: {what}")
    say("Please report it, with the output of `HEADRACE_TEST_TRACEBACK=1 headrace …`.")
    sys.exit(1)


@contextmanager
def errors_in_one_line() -> Iterator[None]:
    """Foreseen errors become one line and an exit code; the rest a line that says where the details are."""
    try:
        yield
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # the reader of our output has gone, which is its right
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except Exception as raised:  # noqa: BLE001 - the edge of the program
        exc = _unwrapped(raised)
        if isinstance(exc, ModuleNotFoundError):
            exc = extras.explain(exc) or exc
        if isinstance(exc, errors.HeadraceError):
            _complain(exc)
        if (wants_json() or as_log()) and isinstance(exc, _USAGE_ERROR):  # Typer shows it otherwise
            _complain(errors.Invalid(exc.format_message()))
        if isinstance(exc, typer.Abort):
            say("Aborted.")
            sys.exit(1)
        import asyncpg  # not for `headrace --help`

        if isinstance(exc, asyncpg.InsufficientPrivilegeError):
            _complain(
                errors.Denied(
                    f"PostgreSQL says: {exc}. Name a user in HEADRACE_DATABASE_URL who is a member of "
                    "headrace_app, or make this one a member: GRANT headrace_app TO <user>;"
                )
            )
        _report_defect(exc)
