"""The answer classes, from the schemas of the API description."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from headrace.cli.client_code.source import Schema, docstring, header, name_of, type_of, without_null
from headrace.cli.client_code.tables import ANSWERS, AnswerClass

_HEADER = (
    header("The server's answers as frozen dataclasses; ``Answer.of`` reads them.", "the API description")
    + """
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar

from headrace.client.answer import Answer, ExecutionState, RemovalState, TaskState
"""
)


class _Field(NamedTuple):
    name: str
    type: str
    default: str
    doc: str
    schema: Schema


def class_names() -> dict[str, str]:
    """The class for each schema that has one."""
    return {schema: name for name, answer in ANSWERS.items() for schema in answer.schemas}


def render(schemas: Mapping[str, Schema]) -> str:
    """The module. A class follows the classes of its fields."""
    rendered = {name: "".join(_class(name, answer, schemas)) for name, answer in ANSWERS.items()}
    return _HEADER + "".join(f"\n\n{rendered[name]}" for name in _in_order(schemas)) + "\n"


def _in_order(schemas: Mapping[str, Schema]) -> list[str]:
    ordered: list[str] = []

    def add(name: str) -> None:
        for field in _fields(ANSWERS[name], schemas):
            if (part := _part(field.schema)) and part not in ordered:
                add(part)
        base = ANSWERS[name].base
        if base in ANSWERS and base not in ordered:
            add(base)
        if name not in ordered:
            ordered.append(name)

    for name in ANSWERS:
        add(name)
    return ordered


def _class(name: str, answer: AnswerClass, schemas: Mapping[str, Schema]) -> Iterator[str]:
    fields = _fields(answer, schemas)
    yield "@dataclass(frozen=True, slots=True, kw_only=True)\n"
    yield f"class {name}({answer.base}):\n"
    yield docstring(answer.doc, "    ")
    times = [each.name for each in fields if each.type.startswith("datetime")]
    if times:
        yield f"\n    _times: ClassVar = frozenset({times!r})\n"
    parts = {each.name: part for each in fields if (part := _part(each.schema))}
    if parts:
        pairs = ", ".join(f"{field!r}: {part}" for field, part in parts.items())
        yield f"\n    _parts: ClassVar[Mapping[str, type[Answer]]] = {{{pairs}}}\n"
    yield "\n"
    for each in fields:
        yield f"    {each.name}: {each.type}{_assigned(each, answer)}\n{docstring(each.doc, '    ')}"


def _assigned(field: _Field, answer: AnswerClass) -> str:
    if field.name in answer.secret:  # never in a log
        return f" = field({f'default={field.default}, ' if field.default else ''}repr=False)"
    return f" = {field.default}" if field.default else ""


def _fields(answer: AnswerClass, schemas: Mapping[str, Schema]) -> list[_Field]:
    """The fields of all its schemas. One that a schema lacks or does not require has a default."""
    several = [schemas[each] for each in answer.schemas]
    found: dict[str, Any] = {}
    for schema in several:
        found = {**schema["properties"], **found}
    order = {name: None for schema in several for name in schema["properties"]}
    made = [
        _field(name, found[name], schemas, required=all(name in schema.get("required", ()) for schema in several))
        for name in order
    ]
    return made + [_Field(name, kind, default, doc, {}) for name, kind, default, doc in answer.extra]


def _field(name: str, schema: Schema, schemas: Mapping[str, Schema], *, required: bool) -> _Field:
    kind = type_of(schema, schemas, class_names())
    doc = str(schema.get("description", ""))
    if kind == "Any" or without_null(schema)[1]:
        return _Field(name, kind, "None", doc, schema)
    default = next((empty for start, empty in _EMPTY.items() if kind.startswith(start)), "")
    if required:
        return _Field(name, kind, default, doc, schema)
    if isinstance(schema.get("default"), int):
        default = repr(schema["default"])
    return _Field(name, kind if default else f"{kind} | None", default or "None", doc, schema)


# What a server of an earlier release, which does not send the field yet, seems to have sent.
_EMPTY = {
    "tuple": "()",
    "Sequence": "()",
    "Mapping": "field(default_factory=dict)",
    "bool": "False",
    "int": "0",
    "float": "0.0",
}


def _part(schema: Schema) -> str:
    """The class of a field, or of its items."""
    plain, _ = without_null(schema)
    items: Schema = plain.get("items", {}) if plain.get("type") == "array" else plain
    return class_names().get(name_of(items), "")
