"""The API description without prose: the source of typed clients, small enough to be checked in."""

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, cast

from headrace.access import Caller
from headrace.assembly.routers import RouteDeps, routers
from headrace.database import Database
from headrace.edge.services import Services
from headrace.web.app import create_app
from headrace.web.config import WebConfig

_PROSE = frozenset({"description", "examples", "example", "title", "summary", "tags", "headers"})
# Keys below these are our own names.
_NAMED = frozenset({"properties", "schemas", "paths"})


def shape() -> str:
    """The description as JSON with one line for each path and schema, for readable diffs."""
    document = _without_prose(whole())
    paths, schemas = document["paths"], document["components"]["schemas"]
    for methods in paths.values():
        for operation in methods.values():
            operation["responses"] = _successes(operation["responses"])
            operation.pop("security", None)
    return (
        '{"openapi": "3.1.0", "info": {"title": "Headrace", "version": "1"},\n'
        f'"paths": {_lines(paths)},\n"components": {{"schemas": {_lines(schemas)}}}}}\n'
    )


def whole() -> Mapping[str, Any]:
    """The description of every route, as served at ``/openapi.json``."""
    # This app serves no requests: it only has the routes.
    deps = RouteDeps(**{field.name: cast("Any", None) for field in fields(RouteDeps)})
    services = Services(db=cast("Database", None), authenticate=_refuse_all, secret=bytes(32))
    return create_app(services, WebConfig(), routers=routers(deps)).openapi()


async def _refuse_all(*_: object) -> Caller:
    raise AssertionError("this app serves no requests")


def _without_prose(node: Any, *, named: bool = False) -> Any:
    if isinstance(node, dict):
        return {
            key: _without_prose(value, named=not named and key in _NAMED)
            for key, value in node.items()
            if named or key not in _PROSE
        }
    return [_without_prose(each) for each in node] if isinstance(node, list) else node


def _successes(responses: Mapping[str, Any]) -> Mapping[str, Any]:
    """The successful responses: errors are the same problems everywhere."""
    return {status: {"description": "", **answer} for status, answer in responses.items() if status.startswith("2")}


def _lines(entries: Mapping[str, Any]) -> str:
    lines = [f"{json.dumps(name)}: {json.dumps(entry, sort_keys=True)}" for name, entry in sorted(entries.items())]
    return "{\n" + ",\n".join(lines) + "\n}"
