"""The user's program, named on the command line: imports it, and reports a failure in one line."""

import importlib
import sys
import traceback
from pathlib import Path

from headrace.errors import Invalid
from headrace.tasks.isolation.errors import ProgramBroken
from headrace.tasks.isolation.program import load_registry
from headrace.tasks.registry import Registry

_OURS = Path(__file__).parent.parent


class ProgramNotLoaded(Invalid):
    """The program with the task types cannot be loaded."""

    code = "program_not_loaded"


def load_program(address: str) -> Registry:
    """The registry at ``module:attribute``; modules are looked for in the current folder, too."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        registry = load_registry(address)
    except ProgramBroken as exc:
        raise ProgramNotLoaded(exc.message) from exc
    except (Exception, SystemExit) as exc:
        raise ProgramNotLoaded(_explain(address.partition(":")[0], exc)) from exc
    if not len(registry):
        raise ProgramNotLoaded(f"{address} has no task types: declare them with @registry.task(…) in its modules.")
    return registry


def _explain(module: str, exc: BaseException) -> str:
    if isinstance(exc, ModuleNotFoundError) and exc.name and f"{module}.".startswith(f"{exc.name}."):
        return f"There is no module {exc.name} here: run this in the folder that it lies in, or install it."
    lines = "".join(traceback.format_exception_only(exc)).strip().splitlines()
    # What a long message is about stands in its first line; that of a syntax error in its last, behind the source.
    what = lines[-1] if isinstance(exc, SyntaxError) else lines[0]
    return f"{module} cannot be imported: {what}{_where(exc)}"


def _where(exc: BaseException) -> str:
    if isinstance(exc, SyntaxError):
        return f" ({exc.filename}, line {exc.lineno})"
    # The last frame that is neither ours, nor the import's, nor an installed library's: there is the line to mend.
    frames = [frame for frame in traceback.extract_tb(exc.__traceback__) if not _is_loading(frame.filename)]
    theirs = [frame for frame in frames if "site-packages" not in Path(frame.filename).parts] or frames
    return f" ({theirs[-1].filename}, line {theirs[-1].lineno})" if theirs else ""


def _is_loading(filename: str) -> bool:
    return filename.startswith("<frozen") or filename == importlib.__file__ or Path(filename).is_relative_to(_OURS)
