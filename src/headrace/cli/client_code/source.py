"""Python source from parts: headers, docstrings, types of JSON schemas, and ruff's format."""

import subprocess
import sys
import textwrap
from collections.abc import Mapping
from typing import Any

_LINE_LENGTH = 120

Schema = Mapping[str, Any]


def header(summary: str, made_from: str) -> str:
    """The docstring of a generated module."""
    return f'"""{summary}\n\nGenerated from {made_from} by `make docs`: do not edit.\n"""\n'


def docstring(text: str, indent: str) -> str:
    """A docstring of any length at this indentation, or nothing for an empty text."""
    plain = text.strip().replace("\\", "\\\\").replace('"""', "'''")
    if not plain:
        return ""
    quoted = plain + (" " if plain.endswith('"') else "")
    paragraphs = [
        textwrap.fill(" ".join(each.split()), _LINE_LENGTH - len(indent) - 2 * len('"""'), break_on_hyphens=False)
        for each in quoted.split("\n\n")
    ]
    whole = "\n\n".join(paragraphs)
    closing = '\n"""' if "\n" in whole else '"""'
    return textwrap.indent(f'"""{whole}{closing}', indent, lambda line: bool(line.strip())) + "\n"


def formatted(source: str) -> str:
    """The source with sorted imports and without unused ones, in the project's format."""
    name = ["--stdin-filename", "src/headrace/client/generated/code.py"]
    for command in (["check", "--select", "I,F401", "--fix", "--quiet"], ["format", "--quiet"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, *name, "-"], input=source, capture_output=True, text=True
        )
        if done.returncode:
            raise RuntimeError(f"ruff could not format the generated client: {done.stderr.strip()[-300:]}")
        source = done.stdout
    return source


def resolved(schema: Schema, schemas: Mapping[str, Schema]) -> Schema:
    """The schema behind a reference."""
    return schemas[name_of(schema)] if "$ref" in schema else schema


def name_of(schema: Schema) -> str:
    """The name of the referenced schema, or an empty string."""
    return str(schema.get("$ref", "")).rpartition("/")[2]


def without_null(schema: Schema) -> tuple[Schema, bool]:
    """The schema without null, and whether null was allowed."""
    options = [each for each in schema.get("anyOf", ()) if each.get("type") != "null"]
    if len(options) == 1 and len(schema["anyOf"]) == 2:
        return options[0], True
    return schema, False


def type_of(schema: Schema, schemas: Mapping[str, Schema], classes: Mapping[str, str]) -> str:
    """The Python type of a JSON schema; ``classes`` names the class for some of the schemas."""
    schema, nullable = without_null(schema)
    optional = " | None" * nullable
    if name_of(schema) in classes:
        return classes[name_of(schema)] + optional
    plain = resolved(schema, schemas)
    match plain.get("type"):
        case "array":
            item = type_of(plain.get("items", {}), schemas, classes)
            made = f"tuple[{item}, ...]" if item in classes.values() else f"Sequence[{item}]"
        case "object":
            more = plain.get("additionalProperties")
            value = type_of(more, schemas, classes) if isinstance(more, dict) and more else "Any"
            made = f"Mapping[str, {value}]"
        case "string":
            made = "datetime" if plain.get("format") == "date-time" else "str"
        case "integer" | "number" | "boolean" as kind:
            made = {"integer": "int", "number": "float", "boolean": "bool"}[kind]
        case _:
            return "Any"
    return made + optional
