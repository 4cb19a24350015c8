"""The client without an event loop, from the source of the one with a loop.

Each public verb becomes a method with the same signature and docstring that runs the verb on the client's loop. Verbs
that a base class in ``headrace.client.blocking`` has are written there by hand.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from headrace.cli.client_code.source import docstring, header

_SUMMARY = "The client for programs without an event loop: each verb runs on a loop in a background thread."
_BLOCKING = "headrace.client.blocking"
_CLIENT = "Client"


class _Module(NamedTuple):
    name: str
    tree: ast.Module

    def origin_of(self, name: str) -> str:
        """The import of a name as this module has it: ``from x import name``."""
        for node in self.tree.body:
            if isinstance(node, ast.ImportFrom) and any(each.name == name for each in node.names):
                return f"from {node.module} import {name}"
            if isinstance(node, ast.Import) and any(each.name == name for each in node.names):
                return f"import {name}"
            if name in _defined(node):
                return f"from {self.name} import {name}"
        return ""  # a builtin


def _defined(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Assign):
        return [name.id for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name)]
    return []


def render(folder: Path, operators: str) -> str:
    """The module, from the modules in ``folder`` and the rendered verbs of operators."""
    sources = {f"headrace.client.{path.stem}": path.read_text() for path in sorted(folder.glob("*.py"))}
    modules = [_Module(name, ast.parse(text)) for name, text in sources.items() if name != _BLOCKING]
    modules.append(_Module("headrace.client.generated.operators", ast.parse(operators)))
    by_hand = _verbs_by_hand(ast.parse(sources[_BLOCKING]))
    imports = {"from collections.abc import Iterator"}
    classes: list[str] = []
    for module in modules:
        verbs = [each for each in module.tree.body if isinstance(each, ast.ClassDef) and "Verbs" in _bases(each)]
        classes += [_twin(each, module, by_hand, imports) for each in verbs]
    # The client is last: its parts are defined then.
    classes.sort(key=lambda text: text.startswith(f"class Sync{_CLIENT}("))
    lines = "\n".join(sorted(imports))
    future = "from __future__ import annotations  # a verb is called list"
    return f"{header(_SUMMARY, 'the client with an event loop')}\n{future}\n\n{lines}\n\n\n" + "\n\n".join(classes)


def _verbs_by_hand(tree: ast.Module) -> dict[str, tuple[str, set[str]]]:
    """For each class of verbs its base in ``blocking`` and the methods there: ``class LockBlocks(Blocking[Locks])``."""
    found = {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and (made := re.fullmatch(r"Blocking\[(\w+)\]", "".join(_bases(node)))):
            methods = {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
            found[made[1]] = (node.name, methods)
    return found


def _bases(node: ast.ClassDef) -> list[str]:
    return [ast.unparse(base) for base in node.bases]


def _twin(node: ast.ClassDef, module: _Module, by_hand: Mapping[str, tuple[str, set[str]]], imports: set[str]) -> str:
    base, written = by_hand.get(node.name, (f"Blocking[{node.name}]", set()))
    imports.add(f"from {_BLOCKING} import {base.partition('[')[0]}")
    imports.add(f"from {module.name} import {node.name}")
    text = f"class Sync{node.name}({base}):\n{docstring(ast.get_docstring(node) or '', '    ')}"
    for method in node.body:
        if isinstance(method, ast.FunctionDef) and method.name == "__init__":
            text += "".join(_opening(method))
        elif isinstance(method, ast.AsyncFunctionDef) and method.name[0] != "_" and method.name not in written:
            text += "".join(_method(method))
        else:
            continue
        for name in _names(method):
            imports.add(module.origin_of(name))
    imports -= {"", "from collections.abc import AsyncGenerator"}
    return text


def _names(method: ast.AsyncFunctionDef | ast.FunctionDef) -> set[str]:
    parts: list[ast.AST] = [method.args, *([method.returns] if method.returns else [])]
    return {name.id for part in parts for name in ast.walk(part) if isinstance(name, ast.Name)}


def _method(method: ast.AsyncFunctionDef) -> Iterator[str]:
    returns = "None" if method.returns is None else ast.unparse(method.returns)
    run = "self._loop.run"
    if returns.startswith("AsyncGenerator["):
        returns, run = f"Iterator[{returns[len('AsyncGenerator[') : -len(', None]')]}]", "self._loop.iterate"
    yield f"\n    def {method.name}({ast.unparse(method.args)}) -> {returns}:\n"
    yield docstring(ast.get_docstring(method) or "", " " * 8)
    keyword = "" if returns == "None" else "return "
    yield f"        {keyword}{run}(self._verbs.{method.name}({_passed(method.args)}))\n"


def _opening(method: ast.FunctionDef) -> Iterator[str]:
    """The constructor: that of the client, and a twin for each of its parts."""
    yield f"\n    def __init__({ast.unparse(method.args)}) -> None:\n"
    yield f"        super().__init__(Client({_passed(method.args)}))\n"
    for statement in method.body:
        match statement:
            case ast.Assign(targets=[ast.Attribute(attr=part)], value=ast.Call(func=ast.Name(id=kind))):
                yield f"        self.{part} = Sync{kind}(self._verbs.{part}, self._loop)\n"


def _passed(args: ast.arguments) -> str:
    positional = [each.arg for each in [*args.posonlyargs, *args.args] if each.arg != "self"]
    passed = positional + [f"{each.arg}={each.arg}" for each in args.kwonlyargs]
    return ", ".join(passed + ([f"**{args.kwarg.arg}"] if args.kwarg else []))
