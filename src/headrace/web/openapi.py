"""The description of the API (OpenAPI 3.1): FastAPI's, completed with what every route has in common."""

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

**Signing in.** Programs send an API key as `Authorization: Bearer …`. Browsers have a session cookie, and send the
CSRF token as `X-CSRF-Token` with everything that changes something.

**Errors** are problems (RFC 9457, `application/problem+json`). Decide by `code`, which is stable; `detail` is for
people. Quote `request_id` when you ask for help.

**Sending again.** POSTs that create something take an `Idempotency-Key`. The same key with the same bytes gets the
first answer again, with `Idempotency-Replayed: true`; with another body it is refused (422); while the first is still
running the answer is 409. Keys are remembered for a day.

**Lists** come newest first, a page at a time: pass `next_cursor` on as `cursor` until it is null.

**Changing** what has a `version`: send its `ETag` as `If-Match`, and nobody's change is overwritten unseen (412).

**Limits.** `RateLimit` says how much is left and `RateLimit-Policy` what the limit is; a 429 says in `Retry-After` how
long to wait.
"""

TAGS = [
    {"name": "Accounts", "description": "Registering, logging in and out, and who you are."},
    {"name": "Sessions", "description": "Where you are logged in."},
    {"name": "API keys", "description": "What programs log in with."},
    {"name": "Tasks", "description": "Submitting work, following it, canceling and retrying it."},
    {"name": "Queues", "description": "What waits where, who works on it, and holding it back."},
    {"name": "Schedules", "description": "When it runs: by cron, by interval, once; and what became of the runs."},
    {"name": "Locks", "description": "One thing at a time, over any number of machines."},
    {"name": "Usage", "description": "What may be used and what was: entitlements, and the ledger that explains them."},
    {"name": "Plans", "description": "What can be bought: prices, units, features."},
    {"name": "Subscriptions", "description": "Ordering a plan, renewing it, canceling it."},
    {"name": "Payments", "description": "Orders, how to pay them with WeChat Pay, refunds."},
    {"name": "Webhooks", "description": "Your events, sent to servers of yours, signed by Standard Webhooks."},
    {"name": "Notifications", "description": "What you are told, and what you have read of it."},
    {"name": "Events", "description": "Which events there are, and how they are getting on, for administrators."},
    {"name": "Files", "description": "Uploading, reading, handing out and deleting files, and those that tasks make."},
    {"name": "Removals", "description": "Having marks taken off your files: looking, asking the price, ordering."},
    {"name": "Audit", "description": "Who did what, to what, from where; and proof of it."},
    {"name": "Operations", "description": "Months of the tables that are kept by months, and those in the archive."},
    {"name": "Administration", "description": "Other people's accounts, for administrators."},
    {"name": "Configs", "description": "What this installation offers, and settings that change while it runs."},
    {"name": "Risks", "description": "Known risks, who owns them and what is done about them, for administrators."},
]

_METHODS = ("get", "put", "post", "delete", "patch")
_SAFE = frozenset({"get", "head", "options"})

Document = dict[str, Any]


def operation_id(route: APIRoute) -> str:
    """The name of the function: ``create_api_key``."""
    return route.name


def describe(app: FastAPI, services: Services) -> Callable[[], Document]:
    """The method that makes the description, once, when it is first asked for."""

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
                assert name not in seen, f"two operations are called {name}"
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
    """FastAPI also describes what no answer has: its own errors, and enums that are shown with other words."""
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
        "description": "The id of this request: yours if you sent a usable one.",
        "schema": {"type": "string"},
    },
    "RateLimit": {
        "description": 'What is left (`r`) and in how many seconds all of it is back (`t`): `"default";r=119;t=1`.',
        "schema": {"type": "string"},
    },
    "RateLimit-Policy": {
        "description": 'The limit: `q` requests in `w` seconds, `"default";q=120;w=12`.',
        "schema": {"type": "string"},
    },
    "Retry-After": {"description": "Seconds to wait before asking again.", "schema": {"type": "integer"}},
}


def _security_schemes(services: Services) -> Document:
    return {
        "bearer": {"type": "http", "scheme": "bearer", "description": "An API key."},
        "session": {
            "type": "apiKey",
            "in": "cookie",
            "name": services.cookies.session_name,
            "description": "A person's session.",
        },
        "csrf": {
            "type": "apiKey",
            "in": "header",
            "name": CSRF_HEADER,
            "description": "The session's CSRF token, with every request that changes something.",
        },
    }


def _complete_operation(path: str, method: str, operation: Document) -> None:
    for parameter in operation.get("parameters", ()):
        parameter["schema"] = _without_null(parameter["schema"])
    responses = operation.setdefault("responses", {})
    # FastAPI's own description of validation errors is not what we send.
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
    """Optional in Python is null or a value; in a query or a header it is there or not."""
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
    """What any such route can answer, whatever it does."""
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
    """Add answers; where the route has the same status already, the new codes join its own."""
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
