"""Turns all failures of requests into problem details."""

import http
from collections.abc import Sequence
from typing import Any

import asyncpg
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import iter_route_contexts
from starlette.exceptions import HTTPException

from headrace import logs
from headrace.edge.errors import InvalidJson, NumberOutOfRange, UnstorableText
from headrace.edge.facts import facts_of
from headrace.edge.problem_details import NOT_VALID, FieldError, answer, answer_to, plain, status_of
from headrace.errors import HeadraceError
from headrace.web import misspelt

log = logs.get(__name__)

_TEXT = (asyncpg.CharacterNotInRepertoireError, asyncpg.UntranslatableCharacterError)
_MAX_PART = 64
_MAX_ERRORS = 20

_DETAILS = {
    404: "There is nothing at this path.",
    405: "This path does not support this method; Allow lists the supported ones.",
}


def install(app: FastAPI) -> None:
    app.add_exception_handler(HeadraceError, _known_error)  # type: ignore[arg-type]
    install_for_requests(app)


def install_for_requests(app: FastAPI) -> None:
    """What is wrong with the request itself; errors of the verbs leave the app as they are."""
    app.add_exception_handler(RequestValidationError, _not_valid)  # type: ignore[arg-type]
    app.add_exception_handler(HTTPException, _http)  # type: ignore[arg-type]
    app.add_exception_handler(asyncpg.DataError, _refused_by_database)  # type: ignore[arg-type]


async def _known_error(request: Request, error: HeadraceError) -> Response:
    if status_of(error) >= http.HTTPStatus.INTERNAL_SERVER_ERROR:
        # The client gets a retryable error; the cause is logged for the operator.
        hidden = error.operator_message != error.message
        cause = error.__cause__
        reason = error.operator_message if hidden or cause is None else repr(cause)
        log.warning("request.unserved", code=error.code, reason=reason)
    return answer_to(error, facts_of(request))


async def _refused_by_database(request: Request, error: asyncpg.DataError) -> Response:
    """The last check: values that passed the schemas but PostgreSQL cannot store are the client's error."""
    refusal: HeadraceError
    if isinstance(error, _TEXT) or isinstance(error.__cause__, UnicodeEncodeError):
        refusal = UnstorableText()
    elif isinstance(error, asyncpg.NumericValueOutOfRangeError) or isinstance(error.__cause__, OverflowError):
        refusal = NumberOutOfRange()
    else:
        raise error
    log.warning("request.data_refused", code=refusal.code, reason=type(error).__name__)
    return answer_to(refusal, facts_of(request))


async def _not_valid(request: Request, error: RequestValidationError) -> Response:
    found = error.errors()
    if any(one["type"] == "json_invalid" for one in found):
        return answer_to(InvalidJson(), facts_of(request))
    named = [misspelt.explained(one, request.scope.get("route")) for one in found[:_MAX_ERRORS]]
    problem = NOT_VALID.model_copy(update={"errors": field_errors(named)})
    return answer(problem, facts_of(request))


def field_errors(found: Sequence[Any]) -> list[FieldError]:
    """Position and message of each error, never the value, which may be a misplaced secret."""
    return [
        FieldError(field=".".join(str(part)[:_MAX_PART] for part in one["loc"]), message=one["msg"])
        for one in found[:_MAX_ERRORS]
    ]


async def _http(request: Request, error: HTTPException) -> Response:
    if error.status_code == http.HTTPStatus.BAD_REQUEST and error.__cause__ is not None:
        # FastAPI's error for a body that failed to parse: too deep, not UTF-8, a number of thousands of digits.
        return answer_to(InvalidJson(), facts_of(request))
    problem = plain(error.status_code, detail=_DETAILS.get(error.status_code))
    headers = dict(error.headers or {})
    if error.status_code == http.HTTPStatus.METHOD_NOT_ALLOWED:
        headers["Allow"] = _methods_at(request)
    return answer(problem, facts_of(request), headers=headers)


def _methods_at(request: Request) -> str:
    """All methods of the path; the framework lists only those of its first route."""
    here = [each for each in iter_route_contexts(request.app.routes) if each.path_regex.match(request.scope["path"])]
    methods = set[str]().union(*(each.methods or () for each in here))
    return ", ".join(sorted(methods | ({"HEAD"} if "GET" in methods else set())))
