"""Renders the reference of errors from the code."""

import importlib
import pkgutil
from collections.abc import Iterator, Sequence

import headrace
from headrace.edge.problem_details import INTERNAL, NOT_VALID, meaning, status_of
from headrace.errors import (
    Conflict,
    Denied,
    Exhausted,
    HeadraceError,
    Invalid,
    NotFound,
    Unauthenticated,
    Unavailable,
)

_KINDS = (Unauthenticated, NotFound, Invalid, Conflict, Denied, Exhausted, Unavailable)

_HEAD = """\
# Errors

<!-- Rendered from the error classes by `make docs`; edit their docstrings. -->

Every error of the API is a problem (RFC 9457, `application/problem+json`):

```json
{
  "type": "about:blank",
  "title": "Not Found",
  "status": 404,
  "detail": "There is no such thing here.",
  "instance": "/v1/me",
  "code": "not_found",
  "request_id": "req_01h455vb4pex5vsknk084sn02q"
}
```

Programs decide by `code`, which is stable. `detail` is for people and may be reworded. `errors` lists the faults of an
invalid request (`field`, `message`), `details` holds facts for programs. An error without its own code has the code of
its kind. The command line's exit code follows the kind (`cli.md`).

| code | kind | status | meaning |
|---|---|---|---|
"""


_COMMAND_LINE = """
## Of the command line only

These concern the machine that runs Headrace, and are never sent to a client of the API.

| code | kind | meaning |
|---|---|---|
"""

_LOCAL = ("headrace.cli.", "headrace.embedded_postgres.", "headrace.migrations.", "headrace.settings")


def errors_page() -> str:
    """Render `docs/reference/errors.md`: all errors by status and code."""
    api: list[tuple[int, str, str, str]] = [(p.status, p.code, "", p.detail) for p in (NOT_VALID, INTERNAL)]
    local: list[tuple[str, str, str]] = []
    for kind in all_errors():
        if kind.__module__.startswith(_LOCAL):
            local.append((kind.code, _kind_of(kind), meaning(kind)))
        else:
            api.append((status_of(kind), kind.code, _kind_of(kind), meaning(kind)))
    rows = [f"| `{code}` | {kind} | {status} | {text} |" for status, code, kind, text in sorted(api)]
    local_rows = [f"| `{code}` | {kind} | {text} |" for code, kind, text in sorted(local)]
    return _HEAD + "\n".join(rows) + "\n" + _COMMAND_LINE + "\n".join(local_rows) + "\n"


def all_errors() -> Sequence[type[HeadraceError]]:
    """All errors of the product with their own code."""
    _import_everything()
    return list(_defined(HeadraceError))


def _import_everything() -> None:
    # A class is found once its module is imported; the page must not depend on earlier imports.
    for module in pkgutil.walk_packages(headrace.__path__, "headrace."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


def _defined(kind: type[HeadraceError]) -> Iterator[type[HeadraceError]]:
    """All subclasses of this error in the product with their own code."""
    for child in kind.__subclasses__():
        if "code" in vars(child) and child.__module__.startswith("headrace."):
            yield child
        yield from _defined(child)


def _kind_of(error: type[HeadraceError]) -> str:
    return next((kind.__name__ for kind in _KINDS if issubclass(error, kind)), "")
