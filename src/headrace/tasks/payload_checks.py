"""The part of a type's JSON Schema that the database checks, so that payloads are checked on every way in.

``headrace.payload_fault`` knows the keywords that pydantic writes for models, dataclasses and the like. Unknown
keywords are left out when the type is declared: so the database may accept what the API refuses, and never the
other way round. A test runs made-up schemas and payloads through both.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote

from headrace.tasks.patterns import translate

Check = Mapping[str, Any] | bool

_PLAIN = frozenset(
    {
        "type", "enum", "const", "required", "minItems", "maxItems", "uniqueItems", "minLength", "maxLength", "minimum",
        "maximum", "exclusiveMinimum", "exclusiveMaximum", "minProperties", "maxProperties",
    }
)  # fmt: skip
_SEVERAL = frozenset({"prefixItems", "anyOf", "oneOf", "allOf"})  # a list of schemas
_NAMED = frozenset({"properties", "$defs"})  # schemas by name
_PARTS = _SEVERAL | _NAMED | {"items", "additionalProperties", "propertyNames"}
_UNKNOWN = frozenset(
    {
        "not", "if", "contains", "dependentRequired", "dependentSchemas", "dependencies", "unevaluatedItems",
        "unevaluatedProperties", "patternProperties", "$dynamicRef", "$recursiveRef", "$id", "$anchor", "definitions",
    }
)  # fmt: skip
_REFERENCE = re.compile(r"#/\$defs/([^/]+)")


def compile_schema(schema: Mapping[str, Any]) -> tuple[Check | None, frozenset[str]]:
    """What ``headrace.payload_fault`` is given, None if that is nothing, and the keywords that it is not given."""
    left_out: set[str] = set()
    check = _compiled(schema, left_out)
    if left_out:
        # Of branches that check less, two may fit where one did.
        check = _with_any_of(check)
    return (None if check in (True, {}) else check), frozenset(left_out)


def _compiled(schema: Any, left_out: set[str]) -> Any:
    if isinstance(schema, bool):
        return schema
    left_out |= _UNKNOWN & schema.keys()
    compiled: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword == "additionalProperties" and "patternProperties" in schema:
            continue  # it is for what no pattern names
        if keyword in _PLAIN:
            compiled[keyword] = value
        elif keyword in _VALUES:
            translated = _VALUES[keyword](value)
            if translated is None:
                left_out.add(keyword)
            else:
                compiled[keyword] = translated
        elif keyword in _PARTS:
            compiled[keyword] = _each(keyword, value, lambda part: _compiled(part, left_out))
    return compiled


def _each(keyword: str, value: Any, change: Callable[[Any], Any]) -> Any:
    """The schemas that stand under a keyword, changed."""
    if keyword in _SEVERAL:
        return [change(part) for part in value]
    if keyword in _NAMED:
        return {name: change(part) for name, part in value.items()}
    return change(value)


def _whole(number: float) -> int | None:
    """Of fractions Python and PostgreSQL do not say the same: one counts in binary, the other in decimals."""
    return int(number) if number == int(number) else None


def _name(reference: str) -> str | None:
    match = _REFERENCE.fullmatch(reference)
    return None if match is None else unquote(match[1]).replace("~1", "/").replace("~0", "~")


_VALUES: Mapping[str, Callable[[Any], Any]] = {"multipleOf": _whole, "pattern": translate, "$ref": _name}


def _with_any_of(check: Any) -> Any:
    """The same with every ``oneOf`` as an ``anyOf``, beside one that may be there already."""
    if isinstance(check, bool):
        return check
    loose = {
        keyword: _each(keyword, value, _with_any_of) if keyword in _PARTS else value for keyword, value in check.items()
    }
    if "oneOf" in loose:
        loose["allOf"] = [*loose.get("allOf", []), {"anyOf": loose.pop("oneOf")}]
    return loose
