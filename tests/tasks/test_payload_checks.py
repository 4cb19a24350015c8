"""Payloads are judged alike by the API's validator and by the database, whatever their schema. D-02."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

import jsonschema
import orjson
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from headrace.database import Database
from headrace.tasks.catalog import declare_types
from headrace.tasks.patterns import translate
from headrace.tasks.payload_checks import compile_schema
from tests.conftest import TestServer
from tests.open_types import OpenRegistry
from tests.tasks.conftest import Bench
from tests.tasks.sql import submit

FAULT = "SELECT headrace.payload_fault(%s::jsonb, %s::jsonb)"


@pytest.fixture(scope="module")
def connection(server: TestServer, shared_database: str) -> Iterator["psycopg.Connection[Any]"]:
    with psycopg.connect(server.url(shared_database), autocommit=True) as opened:
        yield opened


def fits(schema: Any, value: Any) -> bool:
    return not list(jsonschema.Draft202012Validator(schema).iter_errors(value))


def fault(connection: "psycopg.Connection[Any]", check: Any, value: Any) -> str | None:
    given = [None if check is None else orjson.dumps(check).decode(), orjson.dumps(value).decode()]
    row = connection.execute(FAULT, given).fetchone()
    assert row is not None
    found: str | None = row[0]
    return found


# -- made-up schemas

NAMES = st.sampled_from(["a", "b", "c", "type"])
PATTERNS = ["^[a-c]+$", "b", "^a.c$", r"^\d{2}$", r"\s", "[^a]", "^(a|bc)*$", "a{2,}?", r"^[a\-.]?$", ""]
TEXTS = st.one_of(
    st.sampled_from(
        ["", "a", "b", "ab", "abc", "a-c", "bc", "aa", "12", "٣٤", "a\nc", "ab\n", "\x85", "\u2003", "é", "😀"]
    ),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=4),
)
NUMBERS = st.one_of(
    st.integers(-6, 12), st.sampled_from([0.5, 1.0, -2.0, 2.5, 1e3, 10**15, -(10**15)]), st.integers(-(2**53), 2**53)
)
SCALARS = st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=8,
)
TYPES = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])
SMALL = st.integers(0, 3)
KEYWORDS: dict[str, st.SearchStrategy[Any]] = {
    "type": TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True),
    "enum": st.lists(VALUES, min_size=1, max_size=3),
    "const": VALUES,
    "minimum": NUMBERS,
    "maximum": NUMBERS,
    "exclusiveMinimum": NUMBERS,
    "exclusiveMaximum": NUMBERS,
    "multipleOf": st.sampled_from([1, 2, 3, 5.0]),
    "minLength": SMALL,
    "maxLength": SMALL,
    "pattern": st.sampled_from(PATTERNS),
    "minItems": SMALL,
    "maxItems": SMALL,
    "uniqueItems": st.booleans(),
    "required": st.lists(NAMES, max_size=2, unique=True),
    "minProperties": SMALL,
    "maxProperties": SMALL,
    "$ref": st.sampled_from(["#/$defs/one", "#/$defs/an~1other"]),
    "title": TEXTS,
    "default": VALUES,
    "format": st.sampled_from(["date-time", "uuid"]),
}
# What the database does not know: it is left out, and the API may refuse more.
UNKNOWN: dict[str, st.SearchStrategy[Any]] = {
    "multipleOf": st.just(0.1),
    "pattern": st.sampled_from([r"^\w+$", "(?!a)b", r"\bx"]),
    "not": st.just({"type": "null"}),
    "contains": st.just({"type": "string"}),
    "patternProperties": st.just({"^a": {"type": "integer"}}),
}


def schemas(further: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Any]:
    flat = st.fixed_dictionaries({}, optional={**KEYWORDS, **further})

    def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        several = st.lists(inner, min_size=1, max_size=3)
        parts = {
            "properties": st.dictionaries(NAMES, inner, max_size=3),
            "additionalProperties": inner,
            "propertyNames": inner,
            "items": inner,
            "prefixItems": several,
            "anyOf": several,
            "oneOf": several,
            "allOf": several,
        }
        # A few keywords at a time: with all of them at once nothing ever fits.
        some = st.sampled_from(sorted({**KEYWORDS, **further, **parts})) if parts else st.nothing()
        chosen = st.lists(some, max_size=3, unique=True)
        every = {**KEYWORDS, **further, **parts}
        return chosen.flatmap(lambda names: st.fixed_dictionaries({name: every[name] for name in names}))

    tree = st.recursive(st.booleans() | flat.filter(lambda schema: len(schema) < 3), nested, max_leaves=6)
    # Definitions refer to nothing: a schema may go round in circles that end nowhere.
    leaf = tree.filter(lambda schema: "$ref" not in str(schema))
    return st.tuples(tree.filter(lambda schema: isinstance(schema, dict)), leaf, leaf).map(
        lambda each: {**each[0], "$defs": {"one": each[1], "an/other": each[2]}}
    )


QUIET = settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much, HealthCheck.too_slow],
)


@QUIET
@given(schema=schemas({}), value=VALUES)
def test_python_and_sql_give_the_same_verdict(
    connection: "psycopg.Connection[Any]", schema: dict[str, Any], value: Any
) -> None:
    check, left_out = compile_schema(schema)
    assert not left_out
    assert (fault(connection, check, value) is None) == fits(schema, value)


@QUIET
@given(schema=schemas(UNKNOWN), value=VALUES)
def test_what_the_database_does_not_know_it_lets_pass(
    connection: "psycopg.Connection[Any]", schema: dict[str, Any], value: Any
) -> None:
    check, _ = compile_schema(schema)
    if fits(schema, value):
        assert fault(connection, check, value) is None


# -- what people really declare


class Colour(StrEnum):
    RED = "red"


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: Annotated[int, Field(ge=1, le=9)]


class Dog(BaseModel):
    model_config = ConfigDict(extra="forbid")
    kind: Literal["dog"]
    name: Annotated[str, Field(pattern=r"^[A-Z][a-z]+$", max_length=9)]
    puppies: list["Dog"] = []


@dataclass
class Point:
    x: float
    y: float = 0
    tags: dict[str, set[Colour]] = field(default_factory=dict)


class Order(BaseModel):
    pages: int
    pet: Annotated[Cat | Dog, Field(discriminator="kind")] | None = None
    where: tuple[Point, Point] | None = None
    when: datetime | None = None


GOOD = {"pages": 3, "pet": {"kind": "dog", "name": "Rex", "puppies": [{"kind": "dog", "name": "Max"}]}}
CASES: list[tuple[Any, str | None]] = [
    (GOOD, None),
    ({"pages": 3.0, "where": [{"x": 1}, {"x": 2, "tags": {"t": ["red"]}}], "when": "2026-03-01T08:00:00Z"}, None),
    ({"pages": 1, "unknown": True}, None),
    ({}, "(payload): 'pages' is missing"),
    ([], "(payload): is not of the type object"),
    ({"pages": "3"}, "pages: is not of the type integer"),
    ({"pages": 1, "pet": {"kind": "cat", "lives": 10}}, "pet.lives: is too large"),
    ({"pages": 1, "pet": {"kind": "fish"}}, "pet"),
    ({"pages": 1, "pet": {"kind": "dog", "name": "rex"}}, "pet"),
    ({"pages": 1, "pet": {"kind": "dog", "name": "Rex", "age": 3}}, "pet"),
    ({"pages": 1, "pet": {"kind": "dog", "name": "Rex", "puppies": [{"kind": "cat"}]}}, "pet"),
    ({"pages": 1, "where": [{"x": 1}]}, "where"),
    ({"pages": 1, "where": [{"x": 1}, {"x": 2, "tags": {"t": ["blue"]}}]}, "where"),
]


def test_models_of_pydantic_are_checked_whole(connection: "psycopg.Connection[Any]") -> None:
    schema = TypeAdapter(Order).json_schema()
    check, left_out = compile_schema(schema)
    assert not left_out
    for value, says in CASES:
        found = fault(connection, check, value)
        assert (found is None) == (says is None) == fits(schema, value), value
        assert (found or "").startswith(says or ""), found


def test_what_is_left_out_is_named() -> None:
    assert compile_schema({"items": {"pattern": r"^\w+$", "not": {}}})[1] == {"pattern", "not"}
    assert compile_schema({"title": "anything"}) == (None, frozenset())
    assert translate("[a") is None


@pytest.mark.parametrize(
    "pattern", ["(?i)a", "a**", "a{300}", "a{,3}", r"\w", r"(?<x>a)", r"\1", "[[a]", "[a-\\d]", "^*"]
)
def test_patterns_that_mean_something_else_there_are_left_out(pattern: str) -> None:
    assert translate(pattern) is None


async def test_sql_refuses_what_does_not_fit_and_settling_fails_it(bench: Bench) -> None:
    early = await submit(bench.db, "order", {"pages": "three"})  # before anybody has declared it
    registry = bench.registry = OpenRegistry()

    @registry.task("order")
    async def order(context: Any, payload: Order) -> int:
        return payload.pages

    async with bench.db.transaction() as tx:
        await declare_types(tx, registry)
    with pytest.raises(Exception, match="the payload does not fit order: pages: is not of the type integer") as refused:
        await submit(bench.db, "order", {"pages": "three"})
    assert getattr(refused.value, "sqlstate", None) == "HR004"
    fine = await submit(bench.db, "order", GOOD)
    async with bench.working():
        [failed, done] = await bench.over(early, fine)
    assert (done["status"], done["result"]) == ("SUCCEEDED", 3)
    assert (failed["status"], failed["attempt"]) == ("FAILED", 0)
    assert failed["error_message"] == "The payload does not fit order: pages: is not of the type integer."


async def test_types_without_a_schema_are_not_checked(bench: Bench, db: Database) -> None:
    @bench.registry.task("anything")
    async def anything(context: Any, payload: Any) -> None: ...

    async with db.transaction() as tx:
        await declare_types(tx, bench.registry)
    [row] = await db.fetch_alone("SELECT payload_check FROM headrace.task_types WHERE name = 'anything'")
    assert row["payload_check"] is None
