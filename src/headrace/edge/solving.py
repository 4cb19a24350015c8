"""Runs a route by a plan of its dependencies that is made once.

FastAPI walks the tree of dependencies for each request and asks each node again what kind it is, which took as long as
the submission of a task. The plan covers what our routes that answer with a ``Response`` of their own have: ``async``
dependencies, parameters, and a body of JSON. Parameters and bodies are read and validated by FastAPI's own functions.
Every other route runs as FastAPI runs it.
"""

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fastapi import Request, Response, params
from fastapi.dependencies.models import Dependant
from fastapi.dependencies.utils import request_body_to_args, request_params_to_args, solve_dependencies
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

# As the installed FastAPI marks it: releases differ.
_NO_BODY: Any = inspect.signature(solve_dependencies).parameters["body"].default


@dataclass(frozen=True, slots=True)
class _Step:
    """One dependency, or the route's own function."""

    call: Callable[..., Any]
    own: Dependant
    before: Sequence[tuple[str | None, "_Step"]]
    headers: Sequence[Any]  # fields of one value each
    has_others: bool  # further parameters


@dataclass(slots=True)
class _Solving:
    """One request: what its dependencies gave, and what is wrong with its parameters."""

    request: Request
    body: Any
    embeds: bool
    results: dict[Callable[..., Any], Any] = field(default_factory=dict)
    errors: list[Any] = field(default_factory=list)


def planned(route: APIRoute) -> ASGIApp | None:
    """The application of this route by a plan; None if FastAPI must run it."""
    returned = inspect.signature(route.endpoint).return_annotation
    if not (isinstance(returned, type) and issubclass(returned, Response)):
        return None
    has_form = route.body_field is not None and isinstance(route.body_field.field_info, params.Form)
    step = None if has_form else _step(route.dependant)
    if step is None:
        return None
    as_usual, reads_body, embeds = route.app, route.body_field is not None, route._embed_body_fields  # noqa: SLF001

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["app"].dependency_overrides:
            await as_usual(scope, receive, send)
            return
        request = Request(scope, receive, send)
        body = await _body_of(request) if reads_body else _NO_BODY
        solving = _Solving(request, body, embeds)
        values = await _values(step, solving)
        if solving.errors:
            raise RequestValidationError(solving.errors, body=None if body is _NO_BODY else body)
        response = await step.call(**values)
        await response(scope, receive, send)

    return app


def _step(own: Dependant) -> _Step | None:
    """The plan of a dependency and of all below it; None if it needs what is not covered here."""
    unlike = (
        own.websocket_param_name, own.background_tasks_param_name,
        own.security_scopes_param_name, own.response_param_name, own.own_oauth_scopes, own.parent_oauth_scopes,
        not own.use_cache,
    )  # fmt: skip
    if own.call is None or any(unlike) or not _is_asynchronous(own.call):
        return None
    before = []
    for each in own.dependencies:
        if (step := _step(each)) is None:
            return None
        before.append((each.name, step))
    others = bool(own.path_params or own.query_params or own.cookie_params)
    # Of a field with an alias that is no list, no model and no text of JSON, one look gives its value.
    simple = all(each.field_info.alias and _is_text(each.field_info.annotation) for each in own.header_params)
    headers = own.header_params if simple and not others else ()
    return _Step(own.call, own, before, headers, others or bool(own.header_params and not headers))


def _is_text(annotation: Any) -> bool:
    return annotation in (str, str | None, None | str)


def _is_asynchronous(call: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(getattr(type(call), "__call__", None))  # noqa: B004


async def _values(step: _Step, solving: _Solving) -> dict[str, Any]:
    """The arguments of a step, whose dependencies run before it, each once for a request."""
    values: dict[str, Any] = {}
    results = solving.results
    for name, each in step.before:
        if each.call not in results:
            before = len(solving.errors)
            given = await _values(each, solving)
            if len(solving.errors) > before:
                continue  # it cannot run; what else is wrong is found all the same
            results[each.call] = await each.call(**given)
        if name is not None:
            values[name] = results[each.call]
    own, request = step.own, solving.request
    if step.headers:
        _read_headers(step.headers, request, values, solving.errors)
    if step.has_others:
        _read(own.path_params, request.path_params, values, solving.errors)
        _read(own.query_params, request.query_params, values, solving.errors)
        _read(own.header_params, request.headers, values, solving.errors)
        _read(own.cookie_params, request.cookies, values, solving.errors)
    if own.body_params:
        found, errors = await request_body_to_args(
            body_fields=own.body_params, received_body=solving.body, embed_body_fields=solving.embeds
        )
        values.update(found)
        solving.errors += errors
    for wanted in (own.request_param_name, own.http_connection_param_name):
        if wanted:
            values[wanted] = request
    return values


def _read(fields: Sequence[Any], given: Mapping[str, Any], values: dict[str, Any], errors: list[Any]) -> None:
    if fields:
        found, faults = request_params_to_args(fields, given)
        values.update(found)
        errors += faults


def _read_headers(fields: Sequence[Any], request: Request, values: dict[str, Any], errors: list[Any]) -> None:
    for one in fields:
        if (text := request.headers.get(one.alias)) is None:
            _read([one], request.headers, values, errors)  # the default, or what a missing one is answered with
            continue
        values[one.name], faults = one.validate(text, values, loc=("header", one.alias))
        errors += faults


async def _body_of(request: Request) -> Any:
    """The body as FastAPI reads it: parsed if it says that it is JSON."""
    try:
        body = await request.body()
        if not body:
            return _NO_BODY
        return await request.json() if _is_json(request.headers.get("content-type", "")) else body
    except json.JSONDecodeError as exc:
        error = {"type": "json_invalid", "loc": ("body", exc.pos), "msg": "JSON decode error", "input": {}}
        raise RequestValidationError([{**error, "ctx": {"error": exc.msg}}], body=exc.doc) from exc
    except HTTPException:
        raise
    except Exception as exc:  # too deep, not UTF-8, a number of thousands of digits
        raise HTTPException(400, "There was an error parsing the body") from exc


def _is_json(content_type: str) -> bool:
    kind = content_type.partition(";")[0].strip().lower()
    return kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))
