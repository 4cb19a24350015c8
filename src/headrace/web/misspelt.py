"""Suggests the intended name for an unknown field of a body."""

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel


def explained(error: Any, route: Any) -> Any:
    """The error of a field, with a suggestion if the field is unknown."""
    if error["type"] != "extra_forbidden" or error["loc"][0] != "body" or route is None:
        return error
    *above, name = error["loc"][1:] or [""]
    known = _fields_at(route.dependant.body_params, above)
    near = get_close_matches(str(name), known, n=1)
    there = f"did you mean {near[0]}?" if near else f"there are: {', '.join(sorted(known))}." if known else ""
    return {**error, "msg": f"There is no such field here: {there}" if there else "There is no such field here."}


def _fields_at(body: Sequence[Any], above: Sequence[Any]) -> set[str]:
    """The field names at this position of the body, by its models."""
    here = [model for parameter in body for model in _models(parameter.field_info.annotation)]
    for part in above:
        if isinstance(part, str):  # not an index of a list
            inner = [field for model in here for key, field in model.model_fields.items() if part in (key, field.alias)]
            here = [model for field in inner for model in _models(field.annotation)]
    return {field.alias or key for model in here for key, field in model.model_fields.items()}


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for each in get_args(annotation):
        yield from _models(each)
