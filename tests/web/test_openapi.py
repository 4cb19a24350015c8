"""The description of the API: complete, stable, and readable without the internet."""

import gzip
import json
import re
from collections import Counter
from typing import Any

import httpx2
import pytest

from headrace.assembly.description import whole
from headrace.database import Database
from headrace.edge.cookies import CookieConfig
from headrace.web import apipage
from tests.edge import stand


@pytest.fixture
async def description(client: httpx2.AsyncClient) -> dict[str, Any]:
    document: dict[str, Any] = (await client.get("/openapi.json")).json()
    return document


def resolved(description: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    """The node itself, or what its reference names."""
    for part in node.get("$ref", "#").split("/")[1:]:
        description = description[part]
    return description if "$ref" in node else node


def test_errors_are_described_once() -> None:
    """The document was 1.68 MB, of which 94 % were repeated examples, and the page of it had a megabyte."""
    document = whole()
    assert len(json.dumps(document)) < 800_000
    assert len(apipage.render(document)) < 500_000


async def test_the_description_and_its_page_are_packed(client: httpx2.AsyncClient) -> None:
    """The page of the whole API has 420 kB, and 51 kB packed."""
    assert len(gzip.compress(apipage.render(whole()).encode())) < 100_000
    for path in ("/docs", "/openapi.json"):
        packed = await client.get(path, headers={"Accept-Encoding": "gzip"})
        plain = await client.get(path, headers={"Accept-Encoding": "identity"})
        assert (packed.headers["Content-Encoding"], "Content-Encoding" in plain.headers) == ("gzip", False)
        assert packed.text == plain.text
        assert int(packed.headers["Content-Length"]) < int(plain.headers["Content-Length"])


def operations(description: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (path, method, operation)
        for path, methods in description["paths"].items()
        for method, operation in methods.items()
    ]


def test_it_is_openapi_3_1_of_the_api_alone(description: dict[str, Any]) -> None:
    assert description["openapi"].startswith("3.1")
    assert all(path.startswith("/v1/") for path in description["paths"])


def test_operations_are_called_what_their_functions_are(description: dict[str, Any]) -> None:
    names = [operation["operationId"] for _, _, operation in operations(description)]
    assert "create_thing" in names
    assert len(names) == len(set(names))


def test_every_operation_documents_what_any_operation_can_answer(description: dict[str, Any]) -> None:
    for _, _, operation in operations(description):
        expected = {"400", "429", "500", "503"}
        if "requestBody" in operation:
            expected |= {"413", "415", "422"}
        if "security" in operation:
            expected |= {"401", "403"}
        assert expected <= set(operation["responses"]), operation["operationId"]


def test_every_error_is_a_problem_with_examples(description: dict[str, Any]) -> None:
    for _, _, operation in operations(description):
        for status, answer in operation["responses"].items():
            response = resolved(description, answer)
            if int(status) >= 400:
                assert list(response["content"]) == ["application/problem+json"]
                content = response["content"]["application/problem+json"]
                assert content["schema"] == {"$ref": "#/components/schemas/Problem"}
                assert content["examples"]
                for code, reference in content["examples"].items():
                    example = resolved(description, reference)
                    assert (example["value"]["code"], example["value"]["status"]) == (code, int(status))
                    assert f"`{code}`" in response["description"]


def test_own_and_common_codes_of_one_status_are_joined(description: dict[str, Any]) -> None:
    response = resolved(description, description["paths"]["/v1/things"]["post"]["responses"]["422"])
    examples = response["content"]["application/problem+json"]
    assert {"idempotency_key_reused", "validation_failed"} == set(examples["examples"])


def test_what_takes_a_cursor_an_entity_tag_or_a_key_says_what_is_wrong_with_it(description: dict[str, Any]) -> None:
    def codes(path: str, method: str, status: str) -> set[str]:
        response = resolved(description, description["paths"][path][method]["responses"][status])
        return set(response["content"]["application/problem+json"]["examples"])

    assert "invalid_cursor" in codes("/v1/things", "get", "400")
    assert "invalid_if_match" in codes("/v1/me", "put", "400")
    assert codes("/v1/me", "put", "412") == {"precondition_failed"}
    assert "invalid_idempotency_key" in codes("/v1/secrets", "post", "400")
    assert "idempotency_in_progress" in codes("/v1/secrets", "post", "409")


def test_every_reference_leads_somewhere(description: dict[str, Any]) -> None:
    for reference in set(re.findall(r'"\$ref": ?"#/([^"]+)"', httpx2.Response(200, json=description).text)):
        target: Any = description
        for part in reference.split("/"):
            target = target[part]
    assert not any("ValidationError" in name for name in description["components"]["schemas"])


def test_every_schema_has_a_name_and_a_title_of_its_own() -> None:
    """Generators name classes by title. Where two have one title they drop the later, and every route that needs it."""
    schemas = whole()["components"]["schemas"]
    titles = Counter(re.sub(r"\W", "", schema.get("title", name)) for name, schema in schemas.items())
    assert [title for title, count in titles.items() if count > 1] == []
    # FastAPI puts the module before a name that two classes have, and -Input or -Output behind one of two readings.
    assert [name for name in schemas if "__" in name or name.endswith(("-Input", "-Output"))] == []


def test_cookies_go_with_a_csrf_token_where_something_changes(description: dict[str, Any]) -> None:
    me = description["paths"]["/v1/me"]
    assert me["get"]["security"] == [{"bearer": []}, {"session": []}]
    assert me["put"]["security"] == [{"bearer": []}, {"session": [], "csrf": []}]
    assert "security" not in description["paths"]["/v1/echo"]["post"]


@pytest.mark.parametrize("secure", [True, False])
async def test_the_cookie_has_its_real_name(no_db: Database, secure: bool) -> None:
    cookies = CookieConfig(secure=secure)
    schemes = stand.app(no_db, cookies=cookies).openapi()["components"]["securitySchemes"]
    assert schemes["session"]["name"] == cookies.session_name


def test_the_idempotency_key_is_a_parameter(description: dict[str, Any]) -> None:
    (parameter,) = (each for each in description["paths"]["/v1/things"]["post"]["parameters"] if each["in"] == "header")
    assert (parameter["name"], parameter["in"], parameter["required"]) == ("Idempotency-Key", "header", False)
    assert parameter["schema"]["type"] == "string"
    assert re.search(parameter["schema"]["pattern"], "order-4711")
    assert not re.search(parameter["schema"]["pattern"], "a b")


@pytest.mark.parametrize("path", ["/", "/docs"])
async def test_pages_load_nothing_and_run_nothing(client: httpx2.AsyncClient, path: str) -> None:
    answer = await client.get(path)
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert not re.search(r"<script|<link|<img|<iframe|@import|url\(|src=|style=|\bon\w+=|https?://", answer.text)
    (digest,) = re.findall(r"style-src 'sha256-([^']+)'", answer.headers["Content-Security-Policy"])
    import base64
    import hashlib

    (style,) = re.findall(r"<style>(.*?)</style>", answer.text, re.DOTALL)
    assert base64.b64encode(hashlib.sha256(style.encode()).digest()).decode() == digest


async def test_the_home_page_speaks_both_languages_and_leads_on(client: httpx2.AsyncClient) -> None:
    text = (await client.get("/")).text
    assert "is running" in text
    assert "正在运行" in text
    for path in re.findall(r'href="([^"]+)"', text):
        assert (await client.get(path)).status_code == 200


async def test_the_reference_page_shows_every_operation(
    client: httpx2.AsyncClient, description: dict[str, Any]
) -> None:
    text = (await client.get("/docs")).text
    for path, method, operation in operations(description):
        assert f'id="{operation["operationId"]}"' in text
        assert f"{method.upper()}</span> <code>{path}</code>" in text
    assert "<code>Idempotency-Key</code>" in text
    assert "**" not in text
