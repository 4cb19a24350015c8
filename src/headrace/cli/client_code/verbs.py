"""The verbs that follow from the API description alone: path, parameters, body and answer of an operation."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from headrace.cli.client_code.answers import class_names
from headrace.cli.client_code.source import (
    Schema,
    docstring,
    header,
    name_of,
    resolved,
    type_of,
    without_null,
)
from headrace.cli.client_code.tables import GROUPS, REPEATABLE

_HEADER = (
    header("Verbs that follow from the API description alone.", "the API description")
    + """
from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import datetime
from typing import Any

from headrace.client.generated.answers import {answers}
from headrace.client.verbs import Verbs, given, part
"""
)
_PAGING = ("limit", "cursor")


class _Argument(NamedTuple):
    name: str
    type: str
    default: str | None
    value: str
    """How it is sent."""

    @property
    def declared(self) -> str:
        return f"{self.name}: {self.type}" + ("" if self.default is None else f" = {self.default}")


class _Operation:
    def __init__(self, name: str, path: str, method: str, operation: Mapping[str, Any], document: Mapping[str, Any]):
        self.name, self.path, self.method = name, path, method.upper()
        self.schemas: Mapping[str, Schema] = document["components"]["schemas"]
        self.doc = str(operation.get("description") or operation.get("summary") or "")
        parameters: Sequence[Mapping[str, Any]] = operation.get("parameters", ())
        headers = {each["name"] for each in parameters if each["in"] == "header"}
        self.has_version, self.has_key = "If-Match" in headers, "Idempotency-Key" in headers
        queries = [each for each in parameters if each["in"] == "query"]
        self.paged = any(each["name"] == "cursor" for each in queries)
        self.in_path = [self._in_path(each) for each in parameters if each["in"] == "path"]
        self.queries = [
            self._argument(each["name"], each["schema"], required=each.get("required", False))
            for each in queries
            if each["name"] not in _PAGING
        ]
        content = operation.get("requestBody", {}).get("content", {})
        self.has_body = bool(content)
        body = resolved(content["application/json"]["schema"], self.schemas) if content else {}
        # A change sends what the caller names: None is a value there.
        self.body = [
            self._argument(field, schema, required=field in body.get("required", ()))
            for field, schema in body.get("properties", {}).items()
            if self.method != "PATCH"
        ]
        [answer] = [response for status, response in operation["responses"].items() if status.startswith("2")]
        [content] = answer.get("content", {"": {}}).values()
        self.answer: Schema = content.get("schema", {})

    def _in_path(self, parameter: Mapping[str, Any]) -> _Argument:
        kind = type_of(parameter["schema"], self.schemas, {})
        return _Argument(parameter["name"], kind, None, f"{{part({parameter['name']})}}")

    def _argument(self, name: str, schema: Schema, *, required: bool) -> _Argument:
        plain, _ = without_null(schema)
        kind = type_of(plain, self.schemas, {})
        value = name
        if resolved(plain, self.schemas).get("type") == "array" and kind == "Sequence[str]":
            kind, value = "str | Sequence[str]", f"[{name}] if isinstance({name}, str) else {name}"
        if required:
            return _Argument(name, kind, None, value)
        return _Argument(name, kind if kind == "Any" else f"{kind} | None", "None", value)

    # -- source

    def render(self, verb: str) -> Iterator[str]:
        yield f"\n    async def {verb}({', '.join(self._signature())}) -> {self._returns()}:\n"
        yield docstring(self.doc, " " * 8)
        yield from (f"        {line}\n" for line in self._lines())

    def _signature(self) -> Iterator[str]:
        arguments = [*self.body, *self.queries]
        yield "self"
        yield from (each.declared for each in [*self.in_path, *(each for each in arguments if each.default is None)])
        named = [each.declared for each in arguments if each.default is not None]
        named += ["version: int | None = None"] * self.has_version + ["key: str | None = None"] * self.has_key
        yield from ["*", *named] if named else []
        if self.method == "PATCH":
            yield "**changes: Any"

    def _items(self) -> str:
        """The class of a page's items, or an empty string for an answer that is no page."""
        page = resolved(self.answer, self.schemas)
        if not name_of(self.answer).startswith("Page_"):
            return ""
        return class_names()[name_of(page["properties"]["items"]["items"])]

    def _returns(self) -> str:
        if items := self._items():
            return f"AsyncGenerator[{items}, None]" if self.paged else f"Sequence[{items}]"
        if not self.answer:
            return "None"
        only = self._only()
        return type_of(only[1] if only else self.answer, self.schemas, class_names())

    def _only(self) -> tuple[str, Schema] | None:
        """The one field of an answer without a class: the verb returns its value."""
        if name_of(without_null(self.answer)[0]) in class_names():
            return None
        [only] = resolved(self.answer, self.schemas)["properties"].items()
        return str(only[0]), only[1]

    def _lines(self) -> Iterator[str]:
        path = f'f"{self._path()}"' if self.in_path else f'"{self.path}"'
        queries = _pairs(self.queries)
        if items := self._items():
            if self.paged:
                yield f"async for item in self._pages({path}, {queries}):"
                yield f"    yield {items}.of(item)"
            else:
                yield f'return [{items}.of(item) for item in (await self._get({path}))["items"]]'
            return
        request = f"await {self._request(path, queries)}"
        only = self._only() if self.answer else None
        if not self.answer:
            yield request
        elif only:
            yield f"value: {self._returns()} = ({request})[{only[0]!r}]"
            yield "return value"
        elif self._returns().endswith("| None"):
            yield f"answer = {request}"
            yield f"return None if answer is None else {self._returns().removesuffix(' | None')}.of(answer)"
        else:
            yield f"return {self._returns()}.of({request})"

    def _request(self, path: str, queries: str) -> str:
        body = "changes" if self.method == "PATCH" else f"given({_pairs(self.body)})" if self.has_body else "None"
        if self.method == "GET":
            return f"self._get({path}, given({queries}))" if self.queries else f"self._get({path})"
        if self.has_key:
            return f"self._create({path}, {body}, key)"
        safe = {"PUT": "True", "PATCH": "version is not None"}.get(self.method, str(self.name in REPEATABLE))
        more = f", method={self.method!r}" if self.method != "POST" else ""
        more += f", body={body}" if self.has_body else ""
        more += f", params=given({queries})" if self.queries else ""
        return f"self._change({path}, {'version' if self.has_version else 'None'}, safe={safe}{more})"

    def _path(self) -> str:
        values = {each.name: each.value for each in self.in_path}
        return re.sub(r"{(\w+)}", lambda match: values[match[1]], self.path)


def _pairs(arguments: Sequence[_Argument]) -> str:
    return "{" + ", ".join(f'"{each.name}": {each.value}' for each in arguments) + "}"


def render(document: Mapping[str, Any]) -> str:
    """The module: a class for each group, a method for each of its operations."""
    operations = {
        operation["operationId"]: _Operation(operation["operationId"], path, method, operation, document)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if _is_named(operation)
    }
    body = ""
    for name, group in GROUPS.items():
        body += f"\n\nclass {name}(Verbs):\n{docstring(group.doc, '    ')}"
        body += "".join(line for verb, named in group.verbs.items() for line in operations[named].render(verb))
    return _HEADER.format(answers=", ".join(dict.fromkeys(class_names().values()))) + body


def _is_named(operation: Mapping[str, Any]) -> bool:
    return any(operation["operationId"] in group.verbs.values() for group in GROUPS.values())
