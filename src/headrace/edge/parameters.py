"""Refuses unknown query parameters, so that a misspelt filter is not ignored."""

from difflib import get_close_matches
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError


async def refuse_unknown_parameters(request: Request) -> None:
    """A dependency of every route. Names the first unknown parameter, with a suggestion."""
    if not request.query_params:
        return
    known = _known(request.scope["route"].dependant)
    for name in request.query_params:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            there = f"did you mean {near[0]}?" if near else f"there are: {', '.join(sorted(known)) or 'none'}."
            message = f"There is no such parameter here: {there}"
            raise RequestValidationError([{"type": "unknown_parameter", "loc": ("query", name), "msg": message}])


def _known(dependant: Any) -> set[str]:
    """The query parameters of the route and its dependencies."""
    known = {field.alias for field in dependant.query_params}
    return known.union(*map(_known, dependant.dependencies))
