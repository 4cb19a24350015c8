"""The API description (OpenAPI 3.1): FastAPI's, completed with the common parts of all routes."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic.json_schema import models_json_schema

from headrace.access import AdminOnly, PreconditionFailed, ScopeMissing
from headrace.edge import idempotency
from headrace.edge.cookies import CSRF_HEADER
from headrace.edge.errors import (
    BodyTooLarge,
    InvalidCursor,
    InvalidIfMatch,
    InvalidJson,
    NumberOutOfRange,
    RateLimited,
    UnstorableText,
    UnsupportedMediaType,
)
from headrace.edge.problem_details import INTERNAL, MEDIA_TYPE, NOT_VALID, FieldError, Problem, as_example, problems
from headrace.edge.services import Services
from headrace.errors import HeadraceError, Unauthenticated, Unavailable

TITLE = "Headrace"

DESCRIPTION = """\
Tasks, schedules, audit, metering and webhooks on one PostgreSQL.

**Authentication.** Programs send an API key as `Authorization: Bearer …`. Browsers have a session cookie, and send the
CSRF token as `X-CSRF-Token` with every change.

**Errors** are problems (RFC 9457, `application/problem+json`). Decide by `code`, which is stable; `detail` is for
people. Quote `request_id` when you ask for help.

**Idempotency.** POSTs that create something take an `Idempotency-Key`. The same key with the same bytes gets the first
answer again, with `Idempotency-Replayed: true`; with another body it is refused (422); while the first is still
running the answer is 409. Keys are stored for a day.

**Lists** are sorted newest first and paged: send `next_cursor` as `cursor` until it is null.

**Concurrent changes** of objects with a `version`: send its `ETag` as `If-Match`, and no other change is overwritten
unseen (412).

**Limits.** `RateLimit` has the remaining allowance and `RateLimit-Policy` the limit; a 429 has the time to wait in
`Retry-After`.
"""

TAGS = [
    {"name": "Accounts", "description": "Registration, login, logout, and your profile."},
    {"name": "Sessions", "description": "Your active sessions."},
    {"name": "API keys", "description": "Credentials of programs."},
    {"name": "Tasks", "description": "Submit, follow, cancel and retry work."},
    {"name": "Queues", "description": "Waiting tasks, workers, pausing and limits."},
    {"name": "Schedules", "description": "Schedules by cron, by interval or once, and their runs."},
    {"name": "Locks", "description": "Distributed locks, over any number of machines."},
    {"name": "Usage", "description": "Entitlements, usage, and the ledger that accounts for them."},
    {"name": "Plans", "description": "Plans for sale: prices, units, features."},
    {"name": "Subscriptions", "description": "Order, renew and cancel plans."},
    {"name": "Payments", "description": "Orders, payment with WeChat Pay, refunds."},
    {"name": "Webhooks", "description": "Your events, sent to your servers, signed by Standard Webhooks."},
    {"name": "Notifications", "description": "Your notifications, and which you have read."},
    {"name": "Events", "description": "Event types, and the state of the outbox, for administrators."},
    {"name": "Files", "description": "Upload, read, share and delete files, including results of tasks."},
    {"name": "Removals", "description": "Remove watermarks from your files: detect, quote, order."},
    {"name": "Audit", "description": "The audit trail: actor, action, resource, origin; and proofs."},
    {"name": "Operations", "description": "Monthly partitions of tables, and archived months."},
    {"name": "Administration", "description": "Accounts of users, for administrators."},
    {"name": "Configs", "description": "Capabilities of this installation, and settings that change at run time."},
    {"name": "Risks", "description": "Known risks, their owners and mitigations, for administrators."},
]

_METHODS = ("get", "put", "post", "delete", "patch")
_SAFE = frozenset({"get", "head", "options"})

Document = dict[str, Any]


def operation_id(route: APIRoute) -> str:
    """The name of the function, such as ``create_api_key``."""
    return route.name


def describe(app: FastAPI, services: Services) -> Callable[[], Document]:
    """The method that builds the description on its first call."""

    def openapi() -> Document:
        if app.openapi_schema is None:
            app.openapi_schema = _complete(
                get_openapi(
                    title=TITLE,
                    version=app.version,
                    openapi_version="3.1.0",
                    description=DESCRIPTION,
                    routes=app.routes,
                    tags=TAGS,
                ),
                services,
            )
        return app.openapi_schema

    return openapi


def _complete(document: Document, services: Services) -> Document:
    components = document.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    schemas.update(_problem_schemas())
    components["headers"] = _HEADERS
    components["securitySchemes"] = _security_schemes(services)
    seen: set[str] = set()
    for path, methods in document.get("paths", {}).items():
        for method, operation in methods.items():
            if method in _METHODS:
                _complete_operation(path, method, operation)
                name = operation["operationId"]
                assert name not in seen, f"two operations have the name {name}"
                seen.add(name)
    _drop_unused(document, schemas)
    _share_errors(document)
    return document


def _share_errors(document: Document) -> None:
    """Each example once, and each answer that several operations give: repeated, they were 94 % of the document."""
    components = document["components"]
    errors = [
        (responses, status)
        for methods in document.get("paths", {}).values()
        for method, operation in methods.items()
        if method in _METHODS
        for responses in [operation["responses"]]
        for status in responses
        if MEDIA_TYPE in responses[status].get("content", {})
    ]
    examples = components.setdefault("examples", {})
    for responses, status in errors:
        own = responses[status]["content"][MEDIA_TYPE].get("examples", {})
        for code, example in own.items():
            if examples.setdefault(code, example) == example:
                own[code] = {"$ref": f"#/components/examples/{code}"}
    counted = Counter(json.dumps([status, responses[status]], sort_keys=True) for responses, status in errors)
    names: dict[str, str] = {}
    shared = components.setdefault("responses", {})
    for text, count in counted.most_common():
        if count > 1:
            status, response = json.loads(text)
            number = sum(name.startswith(f"Error{status}") for name in shared) + 1
            names[text] = f"Error{status}" if number == 1 else f"Error{status}_{number}"
            shared[names[text]] = response
    for responses, status in errors:
        name = names.get(json.dumps([status, responses[status]], sort_keys=True))
        if name is not None:
            responses[status] = {"$ref": f"#/components/responses/{name}"}


def _drop_unused(document: Document, schemas: Document) -> None:
    """Drop schemas that no answer uses: FastAPI's own errors, and enums with other public names."""
    while True:
        used = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(document)))
        unused = schemas.keys() - used
        if not unused:
            return
        for name in unused:
            del schemas[name]


def _problem_schemas() -> Mapping[str, Any]:
    _, definitions = models_json_schema(
        [(Problem, "serialization"), (FieldError, "serialization")], ref_template="#/components/schemas/{model}"
    )
    schemas: Mapping[str, Any] = definitions["$defs"]
    return schemas


_HEADERS = {
    "X-Request-Id": {
        "description": "The id of this request: yours if you sent a valid one.",
        "schema": {"type": "string"},
    },
    "RateLimit": {
        "description": 'The remaining requests (`r`) and the seconds to a full allowance (`t`): `"default";r=119;t=1`.',
        "schema": {"type": "string"},
    },
    "RateLimit-Policy": {
        "description": 'The limit: `q` requests in `w` seconds, `"default";q=120;w=12`.',
        "schema": {"type": "string"},
    },
    "Retry-After": {"description": "Seconds to wait before the next attempt.", "schema": {"type": "integer"}},
}


def _security_schemes(services: Services) -> Document:
    return {
        "bearer": {"type": "http", "scheme": "bearer", "description": "An API key."},
        "session": {
            "type": "apiKey",
            "in": "cookie",
            "name": services.cookies.session_name,
            "description": "A user's session.",
        },
        "csrf": {
            "type": "apiKey",
            "in": "header",
            "name": CSRF_HEADER,
            "description": "The session's CSRF token, required for every change.",
        },
    }


def _complete_operation(path: str, method: str, operation: Document) -> None:
    for parameter in operation.get("parameters", ()):
        parameter["schema"] = _without_null(parameter["schema"])
    responses = operation.setdefault("responses", {})
    # FastAPI's description of validation errors does not match ours.
    if "HTTPValidationError" in str(responses.get("422", "")):
        del responses["422"]
    if path.startswith("/v1"):
        errors, examples = _common(method, operation)
        _merge(responses, problems(*errors))
        for problem in examples:
            _merge(responses, {problem.status: _documented(problem)})
    if "security" in operation and method not in _SAFE:
        operation["security"] = [{"bearer": []}, {"session": [], "csrf": []}]
    for status, response in responses.items():
        headers = response.setdefault("headers", {})
        names = ["X-Request-Id", *(("RateLimit", "RateLimit-Policy") if path.startswith("/v1") else ())]
        if status in {"429", "503"}:
            names.append("Retry-After")
        for name in names:
            headers.setdefault(name, {"$ref": f"#/components/headers/{name}"})


def _without_null(schema: Document) -> Document:
    """Remove null from optional parameters: queries and headers are present or absent."""
    options = [option for option in schema.get("anyOf", ()) if option != {"type": "null"}]
    if len(options) != 1:
        return schema
    return {**options[0], **{name: value for name, value in schema.items() if name != "anyOf"}}


_BY_PARAMETER: Mapping[str, tuple[type[HeadraceError], ...]] = {
    "cursor": (InvalidCursor,),
    "If-Match": (InvalidIfMatch, PreconditionFailed),
    idempotency.HEADER: idempotency.ONCE,
}


def _common(method: str, operation: Document) -> tuple[list[type[HeadraceError]], list[Problem]]:
    """Errors that any such route can return."""
    errors: list[type[HeadraceError]] = [UnstorableText, NumberOutOfRange, RateLimited, Unavailable]
    examples = [INTERNAL]
    if "security" in operation:
        errors += [Unauthenticated, ScopeMissing, AdminOnly]
    for parameter in operation.get("parameters", ()):
        errors += _BY_PARAMETER.get(parameter["name"], ())
    if "requestBody" in operation:
        errors += [InvalidJson, BodyTooLarge, UnsupportedMediaType]
    if "requestBody" in operation or "parameters" in operation or method not in _SAFE:
        examples.append(
            NOT_VALID.model_copy(update={"errors": [FieldError(field="body.name", message="Field required")]})
        )
    return errors, examples


def _documented(problem: Problem) -> Document:
    return {
        "description": f"`{problem.code}`: {problem.detail}",
        "content": {
            MEDIA_TYPE: {
                "schema": {"$ref": "#/components/schemas/Problem"},
                "examples": {problem.code: {"value": as_example(problem)}},
            }
        },
    }


def _merge(responses: Document, more: Mapping[int | str, Document]) -> None:
    """Add responses; codes of an existing status are merged."""
    for status, entry in more.items():
        there = responses.setdefault(str(status), {"description": "", "content": {}})
        content = there.setdefault("content", {}).setdefault(
            MEDIA_TYPE, {"schema": {"$ref": "#/components/schemas/Problem"}, "examples": {}}
        )
        new = {
            code: example
            for code, example in entry["content"][MEDIA_TYPE]["examples"].items()
            if code not in content.setdefault("examples", {})
        }
        content["examples"].update(new)
        described: Iterable[str] = (f"`{code}`: {example['value']['detail']}" for code, example in new.items())
        there["description"] = " ".join(filter(None, (there["description"], *described)))
