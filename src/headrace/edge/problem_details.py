"""Errors in answers: RFC 9457 problem details, with a stable code and the request's id.

One table maps kinds of errors to statuses. Packages raise errors and do not know HTTP.
"""

import math
from collections.abc import Mapping, Sequence
from datetime import timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import orjson
from pydantic import BaseModel, ConfigDict, Field

from headrace.access import PreconditionFailed
from headrace.edge import errors as edge
from headrace.edge.limits import Refused
from headrace.errors import (
    Conflict,
    Denied,
    Exhausted,
    HeadraceError,
    Invalid,
    NotFound,
    QuotaExhausted,
    Unauthenticated,
    Unavailable,
)

if TYPE_CHECKING:  # the commands print problems too, and need no web framework for that
    from fastapi import Response

    from headrace.edge.facts import Facts

MEDIA_TYPE = "application/problem+json"

# The nearest ancestor in this table decides.
STATUSES: Mapping[type[HeadraceError], int] = {
    NotFound: 404,
    Invalid: 400,
    edge.IdempotencyKeyReused: 422,
    edge.RequestTooSlow: 408,
    edge.BodyTooLarge: 413,
    edge.UnsupportedMediaType: 415,
    Conflict: 409,
    PreconditionFailed: 412,
    Denied: 403,
    Unauthenticated: 401,
    Exhausted: 429,
    QuotaExhausted: 402,
    Unavailable: 503,
    HeadraceError: 500,
}

_DEFAULT_RETRY = timedelta(seconds=1)


class FieldError(BaseModel):
    """One fault of the request."""

    field: str = Field(description="Where: `body.name`, `query.limit`, `header.If-Match`.", examples=["body.name"])
    message: str = Field(examples=["String should have at least 1 character"])


class Problem(BaseModel):
    """An error (RFC 9457). Programs decide by `code`."""

    model_config = ConfigDict(title="Problem")

    type: str = Field(default="about:blank", examples=["about:blank"])
    title: str = Field(examples=["Not Found"])
    status: int = Field(examples=[404])
    detail: str = Field(description="One sentence for people.", examples=["There is no such thing here."])
    instance: str | None = Field(default=None, description="The requested path.", examples=["/v1/me"])
    code: str = Field(description="Stable: what programs decide by.", examples=["not_found"])
    request_id: str | None = Field(default=None, examples=["req_01h455vb4pex5vsknk084sn02q"])
    errors: list[FieldError] | None = Field(default=None, description="The faults of an invalid request.")
    details: dict[str, Any] | None = Field(default=None, description="Facts for programs, by `code`.")


# Python's own phrases differ from version to version.
_PHRASES = {413: "Content Too Large", 422: "Unprocessable Content"}


def plain(status: int, *, code: str | None = None, detail: str | None = None) -> Problem:
    """A problem without an error class."""
    title = _PHRASES.get(status) or HTTPStatus(status).phrase
    return Problem(
        title=title,
        status=status,
        detail=detail or f"{title}.",
        code=code or title.lower().replace(" ", "_").replace("-", "_"),
    )


NOT_VALID = plain(422, code="validation_failed", detail="The request does not match the schema of this route.")
INTERNAL = plain(500, code="internal", detail="An internal error occurred. The request id helps us to find it.")


def status_of(error: HeadraceError | type[HeadraceError]) -> int:
    kind = error if isinstance(error, type) else type(error)
    return next(STATUSES[ancestor] for ancestor in kind.__mro__ if ancestor in STATUSES)


def problem_of(error: HeadraceError) -> Problem:
    details = {name: _as_json(value) for name, value in error.details.items()} or None
    problem = plain(status_of(error), code=error.code, detail=error.message)
    return problem.model_copy(update={"details": details})


def headers_of(error: HeadraceError) -> dict[str, str]:
    """Headers that the status requires."""
    headers: dict[str, str] = {}
    status = status_of(error)
    retry_after: timedelta | None = getattr(error, "retry_after", None)
    if retry_after is None and status == HTTPStatus.SERVICE_UNAVAILABLE:
        retry_after = _DEFAULT_RETRY
    if retry_after is not None:
        headers["Retry-After"] = str(max(1, math.ceil(retry_after.total_seconds())))
    if status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, Refused):
        headers |= error.allowance.headers()
    return headers


def answer(problem: Problem, facts: "Facts | None", *, headers: Mapping[str, str] | None = None) -> "Response":
    """The response with this problem."""
    from fastapi import Response

    if facts is not None:
        problem = problem.model_copy(update={"instance": facts.path, "request_id": facts.request_id})
    body = problem.model_dump_json(exclude_none=True)
    return Response(body, status_code=problem.status, media_type=MEDIA_TYPE, headers=dict(headers or {}))


def answer_to(error: HeadraceError, facts: "Facts | None") -> "Response":
    return answer(problem_of(error), facts, headers=headers_of(error))


def problems(*kinds: type[HeadraceError]) -> dict[int | str, dict[str, Any]]:
    """Entries for a route's ``responses=``: one for each status, with an example for each code.

    >>> @router.post("/users", responses=problems(UsernameTaken, RegistrationClosed))
    """
    by_status: dict[int, list[type[HeadraceError]]] = {}
    for kind in kinds:
        by_status.setdefault(status_of(kind), []).append(kind)
    return {status: _documented(status, members) for status, members in sorted(by_status.items())}


def _documented(status: int, kinds: Sequence[type[HeadraceError]]) -> dict[str, Any]:
    # No "model": FastAPI would list it under application/json. The app factory adds the named schema.
    examples = {kind.code: {"value": _example(status, kind)} for kind in kinds}
    return {
        "description": " ".join(f"`{kind.code}`: {meaning(kind)}" for kind in kinds),
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}, "examples": examples}},
    }


def _example(status: int, kind: type[HeadraceError]) -> dict[str, Any]:
    return as_example(plain(status, code=kind.code, detail=meaning(kind)))


def as_example(problem: Problem) -> dict[str, Any]:
    seen = {"instance": "/v1/…", "request_id": "req_01h455vb4pex5vsknk084sn02q"}
    return problem.model_copy(update=seen).model_dump(exclude_none=True)


def meaning(kind: type[HeadraceError]) -> str:
    """The first paragraph of the error's docstring."""
    return " ".join((kind.__doc__ or kind.__name__).split("\n\n")[0].split())


def _as_json(value: object) -> object:
    """Any detail of an error in JSON's types."""
    return orjson.loads(orjson.dumps(value, default=str))
