"""The part of Helm's templates that our chart uses: no package that can be had here carries Helm itself.

It knows actions, pipes, `if`, `else`, `range`, `define` and `include`, and the functions below. What it does not
know it refuses, so that the chart cannot quietly use more than is checked.
"""

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

_ACTION = re.compile(r"\{\{(-?)\s*(.*?)\s*(-?)\}\}", re.DOTALL)
_WORD = re.compile(r'"(?:[^"\\]|\\.)*"|\S+')


class TemplateError(ValueError):
    pass


@dataclass
class Block:
    """A stretch of template between two actions that belong together."""

    parts: list[Any] = field(default_factory=list)
    otherwise: "Block | None" = None


@dataclass
class Text:
    text: str


@dataclass
class Action:
    words: str
    body: Block | None = None


def parse(source: str) -> tuple[Block, dict[str, Block]]:
    """The template, and what it defines."""
    defined: dict[str, Block] = {}
    tokens = _tokens(source)
    top = _block(tokens, defined, nested=False)
    return top, defined


def _tokens(source: str) -> Iterator[Text | Action]:
    position, trim = 0, False
    for found in _ACTION.finditer(source):
        text = source[position : found.start()]
        text = text.lstrip() if trim else text
        yield Text(text.rstrip() if found[1] else text)
        if not found[2].startswith("/*"):
            yield Action(found[2])
        position, trim = found.end(), bool(found[3])
    yield Text(source[position:].lstrip() if trim else source[position:])


def _block(tokens: Iterator[Text | Action], defined: dict[str, Block], *, nested: bool) -> Block:
    block = first = Block()
    for token in tokens:
        if isinstance(token, Text):
            block.parts.append(token)
            continue
        verb = token.words.split(" ", 1)[0]
        if verb == "end":
            if not nested:
                raise TemplateError("an end too many")
            return first
        if verb == "else":
            first.otherwise = block = Block()
        elif verb == "define":
            defined[token.words.split(" ", 1)[1].strip('"')] = _block(tokens, defined, nested=True)
        elif verb in ("if", "range"):
            block.parts.append(Action(token.words, _block(tokens, defined, nested=True)))
        else:
            block.parts.append(token)
    if nested:
        raise TemplateError("an end is missing")
    return first


class Chart:
    def __init__(self, templates: Mapping[str, str], context: Mapping[str, Any]) -> None:
        self._context = dict(context)
        self._defined: dict[str, Block] = {}
        self._templates: dict[str, Block] = {}
        for name, source in templates.items():
            self._templates[name], defined = parse(source)
            self._defined |= defined

    def render(self, name: str) -> str:
        return self._block(self._templates[name], self._context)

    def _block(self, block: Block, variables: Mapping[str, Any]) -> str:
        return "".join(part.text if isinstance(part, Text) else self._action(part, variables) for part in block.parts)

    def _action(self, action: Action, variables: Mapping[str, Any]) -> str:
        if action.body is None:
            return _shown(self._pipe(action.words, variables))
        verb, rest = action.words.split(" ", 1)
        if verb == "if":
            if self._pipe(rest, variables):
                return self._block(action.body, variables)
            return self._block(action.body.otherwise, variables) if action.body.otherwise else ""
        names, _, over = rest.partition(":=")
        key, value = (name.strip() for name in names.split(","))
        items = sorted(self._pipe(over.strip(), variables).items())
        return "".join(self._block(action.body, {**variables, key: k, value: v}) for k, v in items)

    def _pipe(self, words: str, variables: Mapping[str, Any]) -> Any:
        value: Any = None
        for number, stage in enumerate(words.split("|")):
            first, *rest = _WORD.findall(stage.strip())
            given = [self._value(word, variables) for word in rest] + ([value] if number else [])
            if first == "include":
                value = self._block(self._defined[given[0]], given[1])
            elif first in FUNCTIONS:
                value = FUNCTIONS[first](*given)
            elif given:
                raise TemplateError(f"unknown function: {first}")
            else:
                value = self._value(first, variables)
        return value

    def _value(self, word: str, variables: Mapping[str, Any]) -> Any:
        if word.startswith('"'):
            return word[1:-1]
        if word.lstrip("-").isdigit():
            return int(word)
        if word == ".":
            return variables
        if word.startswith("$"):
            return variables[word]
        if not word.startswith("."):
            raise TemplateError(f"neither a value nor a function: {word}")
        found: Any = variables
        for name in word[1:].split("."):
            if name not in found:
                raise TemplateError(f"nothing is called {word}")  # stricter than Helm, which would write nothing
            found = found[name]
        return found


def _quote(value: Any) -> str:
    text = _shown(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def _shown(value: Any) -> str:
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)


def _indent(width: int, text: str) -> str:
    return "\n".join(" " * width + line if line else line for line in text.split("\n"))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "quote": _quote,
    "default": lambda other, value: value or other,
    "not": lambda value: not value,
    "toYaml": lambda value: yaml.safe_dump(value).strip() if value else ("[]" if isinstance(value, list) else "{}"),
    "nindent": lambda width, text: "\n" + _indent(width, text),
    "indent": _indent,
    "sha256sum": lambda text: hashlib.sha256(text.encode()).hexdigest(),
}
