"""The reference of what Python programs import: names, signatures and docstrings, as the source has them.

Fields are described by the string that stands below them, which Python forgets and editors show: so the source is read,
and not only the objects.
"""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, is_dataclass
from enum import Enum
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

_WIDTH = 100
_CODE = re.compile(r"``(.+?)``", re.DOTALL)
Function = ast.FunctionDef | ast.AsyncFunctionDef
# What a program receives and never makes, and verbs that only we call.
_GIVEN = ("TaskContext", "BlockingTaskContext", "TestWorker")
_INSIDE = ("of", "as_json")
_KEYWORDS = {
    ("method", False): "def ",
    ("method", True): "async def ",
    ("context", False): "with ",
    ("context", True): "async with ",
}


class Section(NamedTuple):
    """A part of the page: where its names are imported from, and which come first (None: all, as they are listed)."""

    title: str
    module: str
    names: Sequence[str] | None
    text: str


SECTIONS = (
    Section(
        "Declare and run tasks",
        "headrace",
        (
            "Registry",
            "TaskOptions",
            "Backoff",
            "ProcessLimits",
            "TaskContext",
            "BlockingTaskContext",
            "Step",
            "Snooze",
            "Fatal",
            "TaskCanceled",
            "LeaseLost",
        ),
        "What a module with handlers needs. [Write and submit tasks](../howto/write-tasks.md) shows it at work.",
    ),
    Section(
        "Inside a program of your own",
        "headrace",
        ("Headrace", "TaskSpec", "Task", "TaskStatus", "WorkerConfig", "HeadraceError"),
        "For a program with a connection to the database. Errors of all kinds derive from `HeadraceError`.",
    ),
    Section(
        "Over the network",
        "headrace",
        ("Client", "SyncClient"),
        "For a program with an address and an API key. What its verbs give back is in `headrace.client`, below.",
    ),
    Section(
        "What the client gives and takes",
        "headrace.client",
        None,
        "Frozen dataclasses with what the API says of each thing, and the errors that every verb may raise.",
    ),
    Section(
        "Kinds of errors", "headrace.errors", None, "[Errors](errors.md) lists the codes of all that derive from these."
    ),
    Section(
        "Test your tasks",
        "headrace.testing",
        None,
        "[Test your tasks](../howto/test-your-tasks.md) shows it at work.",
    ),
    Section(
        "Fixtures",
        "headrace.testing.fixtures",
        None,
        'With `pytest_plugins = ["headrace.testing.fixtures"]` in the `conftest.py` of your project\'s root.',
    ),
)


def python_page() -> str:
    """The page. A name that two sections have is shown by the first."""
    lines = [
        "# Python",
        "",
        "<!-- Rendered from the docstrings in src/headrace by `make docs`; edit there. -->",
        "",
        "Everything that a program may import and rely on. What is not on this page may change at any time. All of it",
        "is typed: `mypy --strict` finds a misspelt option before anything runs.",
    ]
    shown: set[int] = set()
    for section in SECTIONS:
        module = import_module(section.module)
        lines += ["", f"## {section.title}", "", f"`from {section.module} import …`. {section.text}"]
        for name in section.names if section.names is not None else public_names(module):
            value = getattr(module, name)
            if id(value) not in shown:
                lines += _entry(f"{section.module.partition('.')[2]}.{name}".lstrip("."), value)
            shown.add(id(value))
    return "\n".join(lines).rstrip() + "\n"


def public_names(module: ModuleType) -> list[str]:
    """The public names of a module: its ``__all__``, or else the classes that it defines."""
    listed: list[str] | None = getattr(module, "__all__", None)
    if listed is not None:
        return [name for name in listed if not name.startswith("__")]
    return [
        name for name, value in vars(module).items() if inspect.isclass(value) and value.__module__ == module.__name__
    ]


# -- entries


def _entry(name: str, value: Any) -> Iterator[str]:
    yield from ("", f"### `{name}`", "")
    if not inspect.isclass(value):
        yield from _function(value)
        return
    members = members_of(value)
    init = members.pop("__init__", None)
    if init is not None and value.__name__ not in _GIVEN:
        yield from _code(_signature(value.__name__, init.node, keyword=""))
    yield from markdown(inspect.getdoc(value) or "")
    yield from _fields(value)
    if value.__name__ == "SyncClient":
        yield from ("", ", ".join(f"`{verb}`" for verb in members) + ".")
        return
    yield from _members("", members)
    for part, kind in parts_of(value).items():
        yield from ("", f"#### `client.{part}`", "", *markdown(inspect.getdoc(kind) or ""))
        yield from _members(f"{part}.", members_of(kind))


def _members(prefix: str, members: "dict[str, Member]") -> Iterator[str]:
    properties = {name: member for name, member in members.items() if member.kind == "property"}
    if properties:
        yield ""
    for name, member in properties.items():
        returns = "" if member.node.returns is None else f": {ast.unparse(member.node.returns)}"
        yield f"- `{prefix}{name}{returns}`: {' '.join(_plain(member.doc).split())}"
    for name, member in members.items():
        if member.kind != "property" and not name.startswith("_"):
            signature = _signature(name, member.node, keyword=_KEYWORDS[member.kind, member.is_async])
            yield from ("", f"**`{prefix}{name}`**", "", *_code(signature), *markdown(member.doc))


def _function(value: Any) -> Iterator[str]:
    fixture = hasattr(value, "_get_wrapped_function")
    function = unwrapped(value)
    node = _parse(function)
    assert isinstance(node, Function)
    if fixture and node.returns is not None:
        yield from _code(f"{node.name}: {_returned('with', ast.unparse(node.returns))}")
    else:
        keyword = _KEYWORDS["method", isinstance(node, ast.AsyncFunctionDef)]
        yield from _code(_signature(node.name, node, keyword=keyword))
    yield from markdown(inspect.getdoc(function) or "")


def unwrapped(value: Any) -> Any:
    """The function of a fixture; anything else as it is."""
    return value._get_wrapped_function() if hasattr(value, "_get_wrapped_function") else value  # noqa: SLF001


def _fields(kind: type) -> Iterator[str]:
    if issubclass(kind, Enum):
        yield from ("", ", ".join(f"`{member.value}`" for member in kind) + ".")
        return
    fields = fields_of(kind)
    if not fields:
        return
    if not any(field.doc for field in fields):
        yield from ("", "Fields: " + ", ".join(f"`{field.name}: {field.type}`" for field in fields) + ".")
        return
    yield from ("", "| field | type | |", "|---|---|---|")
    for field in fields:
        default = f" `{field.default}` by default." if field.default else ""
        text = " ".join(_plain(field.doc).split()) + default
        yield f"| `{field.name}` | `{field.type.replace('|', chr(92) + '|')}` | {text.replace('|', chr(92) + '|')} |"


# -- reading the source


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a dataclass or a TypedDict."""

    name: str
    type: str
    default: str
    doc: str


@dataclass(frozen=True, slots=True)
class Member:
    """A method or a property; ``doc`` is empty if it has none."""

    node: Function
    kind: str
    doc: str

    @property
    def is_async(self) -> bool:
        return isinstance(self.node, ast.AsyncFunctionDef)


def fields_of(kind: type) -> list[Field]:
    """The fields that are meant to be seen, each with the string below it."""
    if not is_dataclass(kind) and not hasattr(kind, "__total__"):
        return []
    node = _parse(kind)
    assert isinstance(node, ast.ClassDef)
    fields = []
    for statement, below in zip(node.body, [*node.body[1:], None], strict=True):
        if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
            continue
        if statement.target.id.startswith("_"):
            continue
        doc = ""
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) and isinstance(below.value.value, str):
            doc = below.value.value
        fields.append(Field(statement.target.id, ast.unparse(statement.annotation), _default(statement.value), doc))
    return fields


def _default(value: ast.expr | None) -> str:
    text = "" if value is None else ast.unparse(value)
    return "" if text.startswith("field(") else text


def members_of(kind: type) -> dict[str, Member]:
    """Methods and properties by name, also those of bases that have no name outside."""
    members: dict[str, Member] = {}
    for each in kind.__mro__:
        if not each.__module__.startswith("headrace"):
            continue
        node = _parse(each)
        assert isinstance(node, ast.ClassDef)
        for statement in node.body:
            if not isinstance(statement, Function) or statement.name in members:
                continue
            if (statement.name.startswith("_") and statement.name != "__init__") or statement.name in _INSIDE:
                continue
            members[statement.name] = Member(
                statement, _kind_of(statement), inspect.cleandoc(ast.get_docstring(statement) or "")
            )
    return members


def _kind_of(node: Function) -> str:
    marks = [ast.unparse(mark) for mark in node.decorator_list]
    if "property" in marks:
        return "property"
    return "context" if {"contextmanager", "asynccontextmanager"} & set(marks) else "method"


def parts_of(kind: type) -> dict[str, type]:
    """What a client has verbs on: ``self.schedules = Schedules(connection)``."""
    module = inspect.getmodule(kind)
    init = members_of(kind).get("__init__")
    if init is None or kind.__name__ != "Client":
        return {}
    parts = {}
    for statement in init.node.body:
        match statement:
            case ast.Assign(targets=[ast.Attribute(attr=name)], value=ast.Call(func=ast.Name(id=made))) if (
                name[0] != "_"
            ):
                parts[name] = getattr(module, made)
    return parts


def _parse(value: Any) -> ast.AST:
    return ast.parse(textwrap.dedent(inspect.getsource(value))).body[0]


# -- text


def _signature(name: str, node: Function, *, keyword: str) -> str:
    args = node.args
    positional = [*args.posonlyargs, *args.args]
    defaults = [None] * (len(positional) - len(args.defaults)) + list(args.defaults)
    parameters = [_parameter(arg, default) for arg, default in zip(positional, defaults, strict=True)]
    if positional and positional[0].arg in ("self", "cls"):
        parameters.pop(0)
    if args.vararg:
        parameters.append("*" + _parameter(args.vararg, None))
    elif args.kwonlyargs:
        parameters.append("*")
    parameters += [_parameter(arg, default) for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True)]
    if args.kwarg:
        parameters.append("**" + _parameter(args.kwarg, None))
    returns = ""
    if node.returns is not None and node.name != "__init__":
        returns = " -> " + _returned(keyword, ast.unparse(node.returns))
    line = f"{keyword}{name}({', '.join(parameters)}){returns}"
    if len(line) <= _WIDTH:
        return line
    return f"{keyword}{name}(\n" + "".join(f"    {each},\n" for each in parameters) + f"){returns}"


def _returned(keyword: str, annotation: str) -> str:
    # What a context manager yields is what stands behind "as".
    if "with" in keyword:
        return re.sub(r"^(Async)?Iterator\[(.*)\]$", r"\2", annotation)
    return annotation.strip("'\"")


def _parameter(arg: ast.arg, default: ast.expr | None) -> str:
    annotation = "" if arg.annotation is None else ": " + ast.unparse(arg.annotation).strip("'\"")
    return f"{arg.arg}{annotation}" + ("" if default is None else f" = {ast.unparse(default)}")


def _code(text: str) -> list[str]:
    return ["```python", *text.split("\n"), "```", ""]


def _plain(doc: str) -> str:
    return _CODE.sub(lambda match: f"`{match[1]}`", doc)


def markdown(doc: str) -> list[str]:
    """A docstring as Markdown: code between single backticks, examples in blocks of their own."""
    lines: list[str] = []
    example: list[str] = []
    for line in [*_plain(doc).splitlines(), ""]:
        if line.startswith((">>> ", "... ")) or line == "...":
            example.append(line[4:])
            continue
        if example:
            lines += ["```python", *example, "```"]
            example = []
        lines.append(line)
    while lines and not lines[-1]:
        lines.pop()
    return lines
