"""Every way to fail has one shape, and says no more than it should."""

from typing import Any

import httpx2
import pytest

from headrace.database import Database
from headrace.edge.problem_details import Problem, problems, status_of
from headrace.errors import (
    Conflict,
    Denied,
    Exhausted,
    HeadraceError,
    Invalid,
    NotFound,
    Unauthenticated,
    Unavailable,
)
from tests.edge import stand

JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        (NotFound, 404),
        (Invalid, 400),
        (Conflict, 409),
        (Denied, 403),
        (Unauthenticated, 401),
        (Exhausted, 429),
        (Unavailable, 503),
        (HeadraceError, 500),
        (stand.NameTaken, 409),
    ],
)
def test_kinds_have_statuses(kind: type[HeadraceError], status: int) -> None:
    assert status_of(kind) == status_of(kind()) == status


async def test_a_problem_has_all_its_parts(client: httpx2.AsyncClient) -> None:
    answer = await client.get("/v1/failing/conflict", headers={"X-Request-Id": "r1"})
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.json() == {
        "type": "about:blank",
        "title": "Conflict",
        "status": 409,
        "detail": "Somebody else has this name.",
        "instance": "/v1/failing/conflict",
        "code": "name_taken",
        "request_id": "r1",
        "details": {"name": "x"},
    }


@pytest.mark.parametrize(("how", "status", "seconds"), [("unavailable", 503, "1"), ("exhausted", 429, "3")])
async def test_come_back_later_says_when(client: httpx2.AsyncClient, how: str, status: int, seconds: str) -> None:
    answer = await client.get(f"/v1/failing/{how}")
    assert (answer.status_code, answer.headers["Retry-After"]) == (status, seconds)


async def test_users_are_not_shown_the_bucket_the_endpoint_or_the_key(client: httpx2.AsyncClient) -> None:
    """A missing bucket or a wrong key was told to ordinary users, with the inner address."""
    answer = await client.get("/v1/failing/storage")
    assert (answer.status_code, answer.json()["code"]) == (503, "storage_unreachable")
    assert not any(word in answer.text for word in ("inner-bucket", "10.0.0.7", "AKIA7"))


async def test_a_path_that_is_not_there(client: httpx2.AsyncClient) -> None:
    answer = await client.get("/v1/nowhere")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert (await client.get("/healthz/")).status_code == 404


async def test_a_method_that_is_not_taken(client: httpx2.AsyncClient) -> None:
    answer = await client.delete("/v1/echo")
    assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")
    assert answer.headers["Allow"] == "POST"
    allowed = (await client.delete("/v1/things")).headers["Allow"]
    assert allowed == "GET, HEAD, POST", "all of them, whichever route has which"


async def test_validation_names_the_fields_and_not_the_values(client: httpx2.AsyncClient) -> None:
    secret = "swordfish"
    answer = await client.post("/v1/echo", json={"name": {"nested": secret}, "data": secret, secret * 20: 1})
    assert (answer.status_code, answer.json()["code"]) == (422, "validation_failed")
    fields = {error["field"] for error in answer.json()["errors"]}
    assert {"body.name", "body.data"} < fields
    assert all(len(field) < 80 for field in fields)
    assert secret not in str([error["message"] for error in answer.json()["errors"]])


async def test_a_thousand_mistakes_make_a_short_answer(client: httpx2.AsyncClient) -> None:
    answer = await client.post("/v1/echo", json={f"field{number}": 1 for number in range(1000)})
    assert len(answer.json()["errors"]) == 20


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", "invalid_json"),
        (b"nonsense", "invalid_json"),
        (b'{"name": "\xff"}', "invalid_json"),  # not UTF-8
        (b'{"name": "\xed\xa0\x80"}', "unstorable_text"),  # half a surrogate pair, as bytes
        (rb'{"name": "\ud800"}', "unstorable_text"),
        (rb'{"name": "a\u0000b"}', "unstorable_text"),
        (rb'{"name": "a", "data": {"k": ["\u0000"]}}', "unstorable_text"),
        (rb'{"name": "a", "data": {"\u0000": 1}}', "unstorable_text"),
        (rb'{"name": "a", "data": {"\udfff": 1}}', "unstorable_text"),
        ('{"name": "a\\u0000"}'.encode("utf-16"), "unstorable_text"),
        (b'{"name": "a", "data": {"k": NaN}}', "invalid_json"),
        (b'{"name": "a", "data": {"k": -Infinity}}', "invalid_json"),
        (b'{"name": "a", "data": {"k": 1e999}}', "invalid_json"),
        (b'{"name": "a", "data": {"k": 9223372036854775808}}', "invalid_json"),
        (b'{"name": "a", "data": {"k": -9223372036854775809}}', "invalid_json"),
        (b'{"name": "a", "data": {"k": ' + b"9" * 5000 + b"}}", "invalid_json"),
        (b'{"name": "a", "data": {"k": ' + b"[" * 64 + b"]" * 64 + b"}}", "invalid_json"),
        (b'{"name": "a", "data": ' + b'{"k":' * 900 + b"1" + b"}" * 901, "invalid_json"),
        (b"[" * 1_000_000, "invalid_json"),
        (b'{"k":' * 200_000, "invalid_json"),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_json_that_cannot_be_worked_with(client: httpx2.AsyncClient, body: bytes, code: str) -> None:
    answer = await client.post("/v1/echo", content=body, headers=JSON)
    assert (answer.status_code, answer.json()["code"]) == (400, code)


@pytest.mark.parametrize(
    "data",
    [
        {"k": 2**63 - 1, "l": -(2**63)},
        {"k": "\U0001f600 \\u0000 \ud7ff"},
        {"k": 1.5e300},
        {"k": [[[{"a": [1] * 200}]]]},
        {"NaN": "Infinity 12345678901234567890"},
    ],
)
async def test_unusual_json_is_still_json(db: Database, data: dict[str, Any]) -> None:
    async with stand.client(stand.app(db)) as client:
        answer = await client.post("/v1/store", json=data)
        assert (answer.status_code, answer.json()) == (200, {"stored": data})


@pytest.mark.parametrize("path", ["/v1/echo/a%00b", "/v1/echo/a?number=1&x=%00", "/v1/failing/text"])
async def test_text_that_no_schema_looked_at(client: httpx2.AsyncClient, path: str) -> None:
    answer = await client.get(path)
    assert (answer.status_code, answer.json()["code"]) == (400, "unstorable_text")


async def test_what_the_database_cannot_store_is_no_fault_of_ours_and_what_it_cannot_read_is(
    client: httpx2.AsyncClient,
) -> None:
    number = await client.get("/v1/failing/number")
    assert (number.status_code, number.json()["code"]) == (400, "number_out_of_range")
    assert (await client.get("/v1/failing/data")).status_code == 500


@pytest.mark.parametrize(
    ("number", "status"),
    [(str(2**63 - 1), 200), (str(2**63), 400), ("9" * 30, 400), ("9" * 5000, 422), ("1e5", 422), ("abc", 422)],
    ids=lambda value: str(value)[:20],
)
async def test_numbers_in_the_query(db: Database, number: str, status: int) -> None:
    async with stand.client(stand.app(db)) as client:
        assert (await client.get("/v1/echo/a", params={"number": number})).status_code == status


@pytest.mark.parametrize("media_type", ["text/plain", "application/x-www-form-urlencoded", "application/jsonx", ""])
async def test_bodies_that_are_not_called_json(client: httpx2.AsyncClient, media_type: str) -> None:
    answer = await client.post("/v1/echo", content=b'{"name":"a"}', headers={"Content-Type": media_type})
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")


@pytest.mark.parametrize("media_type", ["application/json", "Application/JSON; charset=utf-8", "application/ld+json"])
async def test_bodies_that_are(client: httpx2.AsyncClient, media_type: str) -> None:
    answer = await client.post("/v1/echo", content=b'{"name":"a"}', headers={"Content-Type": media_type})
    assert answer.status_code == 200


async def test_no_body_at_all_is_a_missing_field(client: httpx2.AsyncClient) -> None:
    assert (await client.post("/v1/echo")).status_code == 422


def test_documented_problems_join_codes_of_one_status() -> None:
    documented = problems(stand.NameTaken, Conflict, NotFound)
    assert list(documented) == [404, 409]
    examples = documented[409]["content"]["application/problem+json"]["examples"]
    assert list(examples) == ["name_taken", "conflict"]
    assert Problem.model_validate(examples["name_taken"]["value"]).status == 409
    assert documented[409]["description"].startswith("`name_taken`: Somebody else has this name.")


def test_whatever_an_error_carries_can_be_shown() -> None:
    from datetime import UTC, datetime

    from headrace.edge.problem_details import problem_of

    details = problem_of(Conflict(at=datetime(2026, 1, 1, tzinfo=UTC), what={1, 2}, why=ValueError("x"))).details
    assert details == {"at": "2026-01-01T00:00:00+00:00", "what": "{1, 2}", "why": "x"}
