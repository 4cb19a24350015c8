"""Instants in requests have a zone and a storable year, in every route."""

import typing
from datetime import datetime
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from headrace.billing.ledger_routes import _wanted
from headrace.edge.instants import Instant
from headrace.webhooks.routes.deliveries import list_deliveries
from headrace.webhooks.schemas import ResendIn


@pytest.mark.parametrize(
    "given", ["2026-06-01T12:00:00", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00", "tomorrow"]
)
def test_an_instant_without_a_zone_or_beyond_the_calendar_is_refused(given: str) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(Instant).validate_python(given)


def test_resending_since_an_instant_without_a_zone_is_refused() -> None:
    """It was answered with 500."""
    with pytest.raises(ValidationError):
        ResendIn.model_validate({"since": "2026-06-01T12:00:00"})


@pytest.mark.parametrize(("function", "names"), [(_wanted, ("since", "until")), (list_deliveries, ("created_after",))])
def test_lists_and_exports_take_storable_instants(function: Any, names: tuple[str, ...]) -> None:
    """`/v1/usage/export` with the years 0001 and 9999 broke off after 200."""
    hints = typing.get_type_hints(function, include_extras=True)
    for name in names:
        with pytest.raises(ValidationError):
            TypeAdapter(hints[name]).validate_python("0001-01-01T00:00:00+14:00")


def test_no_request_schema_takes_a_plain_datetime() -> None:
    found = [
        f"{model.__module__}.{model.__name__}.{name}"
        for model in _request_schemas()
        for name, field in model.model_fields.items()
        if field.annotation in (datetime, datetime | None) and not field.metadata
    ]
    assert found == []


def test_names_and_titles_in_requests_are_one_line_without_control_characters() -> None:
    """A removal's title could clear the screen of an operator who listed tasks."""
    checked, taken = 0, []
    for model in _request_schemas():
        for name in {"name", "title"} & model.model_fields.keys() - _CLEANED.get(model.__name__, set()):
            field = model.model_fields[name]
            checked += 1
            try:
                annotation: Any = Annotated[field.annotation, None, *field.metadata]
                TypeAdapter(annotation).validate_python("a\x1b[2J")
            except ValidationError:
                continue
            taken.append(f"{model.__name__}.{name}")
    assert checked > 5
    assert taken == []


# The name of a file is kept without what cannot be printed; a filter compares.
_CLEANED = {"UploadIn": {"name"}, "ScheduleFilterIn": {"name"}}


def _request_schemas() -> list[type[BaseModel]]:
    from headrace.assembly import routers  # noqa: F401 - loads every schema

    def below(model: type[BaseModel]) -> list[type[BaseModel]]:
        return [each for child in model.__subclasses__() for each in (child, *below(child))]

    return [
        model
        for model in below(BaseModel)
        if model.__module__.startswith("headrace.") and model.__name__.endswith("In")
    ]
