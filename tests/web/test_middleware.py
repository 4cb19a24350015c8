"""What happens to every request: its id, its trace, its headers, its log line, its metrics."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
import structlog
from fastapi import FastAPI

from headrace.database import Database
from headrace.web.config import WebConfig
from tests.edge import stand


@pytest.mark.parametrize("given", ["a", "x" * 128, "2026-01-01_a.b"])
async def test_a_usable_request_id_is_kept(client: httpx2.AsyncClient, given: str) -> None:
    assert (await client.get("/healthz", headers={"X-Request-Id": given})).headers["X-Request-Id"] == given


@pytest.mark.parametrize("given", ["", "x" * 129, "a b", "a\tb", "<script>", "a,b", "é"])
async def test_any_other_is_replaced(client: httpx2.AsyncClient, given: str) -> None:
    answer = await client.get("/healthz", headers={b"X-Request-Id": given.encode()})
    assert answer.headers["X-Request-Id"].startswith("req_")


@pytest.mark.parametrize(
    ("traceparent", "trace_id"),
    [
        ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "4bf92f3577b34da6a3ce929d0e0e4736"),
        ("01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-what", "4bf92f3577b34da6a3ce929d0e0e4736"),
        ("ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", None),
        ("00-00000000000000000000000000000000-00f067aa0ba902b7-01", None),
        ("00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01", None),
        ("00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01", None),
        ("garbage", None),
    ],
)
async def test_the_trace_id_comes_from_traceparent(
    client: httpx2.AsyncClient, traceparent: str, trace_id: str | None
) -> None:
    answer = await client.get("/v1/me", headers={"traceparent": traceparent, **stand.AUTHORIZED})
    assert answer.json()["trace_id"] == trace_id


async def test_a_user_agent_is_cut_to_size(client: httpx2.AsyncClient) -> None:
    answer = await client.get("/v1/me", headers={"User-Agent": "x" * 5000, **stand.AUTHORIZED})
    assert answer.json()["user_agent"] == "x" * 512


@pytest.mark.parametrize(
    "path", ["/healthz", "/v1/failing/unforeseen", "/v1/failing/conflict", "/nowhere", "/", "/v1/me"]
)
async def test_every_answer_carries_the_safety_headers(client: httpx2.AsyncClient, path: str) -> None:
    headers = (await client.get(path)).headers
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["X-Frame-Options"] == "DENY"
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert "Strict-Transport-Security" not in headers
    assert headers["X-Request-Id"]
    assert "Server-Timing" not in headers  # how long it took to the tenth of a millisecond is nobody's business
    assert (headers.get("Cache-Control") == "no-store") == path.startswith("/v1")


async def test_https_is_remembered_where_there_is_https(no_db: Database) -> None:
    async with stand.client(stand.app(no_db, config=WebConfig(https=True))) as client:
        assert (await client.get("/healthz")).headers["Strict-Transport-Security"] == "max-age=31536000"


PREFLIGHT = {
    "Origin": "https://app.example",
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "authorization,idempotency-key",
}


async def test_other_origins_are_not_let_in_by_default(client: httpx2.AsyncClient) -> None:
    assert (await client.options("/v1/things", headers=PREFLIGHT)).status_code == 405
    answer = await client.get("/healthz", headers={"Origin": "https://app.example"})
    assert "Access-Control-Allow-Origin" not in answer.headers


async def test_configured_origins_are_let_in_without_cookies(no_db: Database) -> None:
    app = stand.app(no_db, config=WebConfig(cors_origins=("https://app.example",)))
    async with stand.client(app) as client:
        preflight = await client.options("/v1/things", headers=PREFLIGHT)
        assert preflight.status_code == 200
        assert preflight.headers["Access-Control-Allow-Origin"] == "https://app.example"
        assert "Access-Control-Allow-Credentials" not in preflight.headers
        # Errors too: a script that cannot read the problem cannot tell its user what is wrong.
        for path in ("/v1/failing/unforeseen", "/v1/failing/conflict", "/v1/me"):
            answer = await client.get(path, headers={"Origin": "https://app.example"})
            assert answer.headers["Access-Control-Allow-Origin"] == "https://app.example"
        other = await client.options("/v1/things", headers={**PREFLIGHT, "Origin": "https://evil.example"})
        assert "Access-Control-Allow-Origin" not in other.headers


@pytest.mark.parametrize("path", ["/healthz", "/", "/docs", "/v1/me", "/v1/failing/conflict", "/nowhere"])
@pytest.mark.parametrize("headers", [stand.AUTHORIZED, {}])
async def test_head_is_get_without_the_body(client: httpx2.AsyncClient, path: str, headers: dict[str, str]) -> None:
    got, head = await client.get(path, headers=headers), await client.head(path, headers=headers)
    assert head.status_code == got.status_code
    assert (head.content, bool(got.content)) == (b"", True)
    differ = {"x-request-id", "content-length"}
    assert {k: v for k, v in head.headers.items() if k not in differ} == {
        k: v for k, v in got.headers.items() if k not in differ
    }


async def test_head_is_named_as_it_came_and_only_for_what_can_be_read(client: httpx2.AsyncClient) -> None:
    with structlog.testing.capture_logs() as lines:
        assert (await client.head("/v1/me", headers=stand.AUTHORIZED)).headers["ETag"] == '"7"'
        assert (await client.head("/v1/echo")).status_code == 405
    assert [(line["method"], line["route"]) for line in lines if line["event"] == "request.served"] == [
        ("HEAD", "/v1/me"),
        ("HEAD", "/v1/echo"),
    ]


async def test_one_line_tells_of_each_request(client: httpx2.AsyncClient) -> None:
    with structlog.testing.capture_logs(processors=[structlog.contextvars.merge_contextvars]) as lines:
        await client.get("/v1/me", headers={"X-Request-Id": "r1", **stand.AUTHORIZED})
        await client.get("/v1/failing/conflict", headers={"X-Request-Id": "r2"})
        await client.get("/healthz?token=swordfish")
    served = [line for line in lines if line["event"] == "request.served"]
    assert [(line["method"], line["route"], line["status"]) for line in served] == [
        ("GET", "/v1/me", 200),
        ("GET", "/v1/failing/{how}", 409),
        ("GET", "/healthz", 200),
    ]
    assert [line.get("user_id") for line in served] == [stand.USER, None, None]
    assert [line["request_id"] for line in served[:2]] == ["r1", "r2"]
    assert [line["log_level"] for line in served] == ["info", "info", "debug"]
    assert "swordfish" not in str(lines)


async def test_what_nobody_foresaw_is_logged_with_its_stack_and_not_told(client: httpx2.AsyncClient) -> None:
    with structlog.testing.capture_logs(processors=[structlog.contextvars.merge_contextvars]) as lines:
        answer = await client.get("/v1/failing/unforeseen", headers={"X-Request-Id": "r1"})
    assert (answer.status_code, answer.json()["code"]) == (500, "internal")
    assert "swordfish" not in answer.text
    (line,) = (line for line in lines if line["event"] == "request.failed")
    assert line["exc_info"] is True
    assert line["request_id"] == "r1"


async def test_metrics_count_by_route_and_not_by_what_clients_make_up(client: httpx2.AsyncClient) -> None:
    for path in ("/v1/echo/a", "/v1/echo/b", "/nowhere/1", "/nowhere/2"):
        await client.get(path)
    await client.request("BREW", "/v1/me")
    text = (await client.get("/metrics")).text
    counted = 'headrace_http_request_duration_seconds_count{method="GET",route="%s",status="%s"} 2.0'
    assert counted % ("/v1/echo/{word}", 503) in text
    assert counted % ("unmatched", 404) in text
    assert 'method="OTHER",route="/v1/me",status="405"' in text
    assert "headrace_http_requests_in_flight 1.0" in text  # this very request
    assert "process_resident_memory_bytes" in text


LIMIT = 1000


@pytest.fixture
def small(no_db: Database) -> FastAPI:
    return stand.app(no_db, config=WebConfig(body_limit=LIMIT, streamed_paths=("POST /v1/store.*",)))


JSON = {"Content-Type": "application/json"}


def body_of(size: int) -> bytes:
    return b'{"name":"' + b"x" * (size - 11) + b'"}'


async def pieces(body: bytes, *, of: int = 100) -> AsyncIterator[bytes]:
    for start in range(0, len(body), of):
        yield body[start : start + of]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(("size", "status"), [(LIMIT, 200), (LIMIT + 1, 413)])
async def test_a_body_may_be_as_large_as_the_limit(small: FastAPI, size: int, status: int, streamed: bool) -> None:
    content: Any = pieces(body_of(size)) if streamed else body_of(size)
    async with stand.client(small) as client:
        answer = await client.post("/v1/echo", content=content, headers=JSON)
    assert answer.status_code == status
    if status == 413:
        assert answer.json()["code"] == "body_too_large"
        assert answer.json()["details"] == {"limit": LIMIT}
        assert answer.headers["Connection"] == "close"


@pytest.mark.parametrize("announced", ["9" * 30, "-1", "ten", "²"])
async def test_an_announced_length_is_not_believed_blindly(small: FastAPI, announced: str) -> None:
    async with stand.client(small) as client:
        headers = {**JSON, "Content-Length": announced.encode("latin-1")}
        answer = await client.post("/v1/echo", content=b"{}", headers=headers)  # type: ignore[arg-type]
    assert answer.status_code in {400, 413}


async def test_an_endless_body_is_cut_off(small: FastAPI) -> None:
    read = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal read
        while True:
            read += 100
            yield b"x" * 100

    sent: list[Any] = []
    stream = endless()

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": await anext(stream), "more_body": True}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/echo",
        "raw_path": b"/v1/echo",
        "query_string": b"",
        "headers": [(b"content-type", b"application/json")],
        "client": ("192.0.2.7", 1),
        "server": ("t", 80),
        "scheme": "http",
    }
    await small(scope, receive, send)
    assert sent[0]["status"] == 413
    assert read <= LIMIT + 100


async def test_paths_that_read_piece_by_piece_have_their_own_limit(small: FastAPI) -> None:
    async with stand.client(small) as client:
        answer = await client.post("/v1/store", content=body_of(LIMIT * 3), headers=JSON)
    assert answer.status_code == 503  # it went as far as the database


async def test_a_client_who_leaves_in_the_middle_gets_no_answer(small: FastAPI) -> None:
    sent: list[Any] = []
    messages = iter([{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}])

    async def receive() -> Any:
        return next(messages)

    async def send(message: Any) -> None:
        sent.append(message)

    scope: Any = {"type": "http", "method": "POST", "path": "/v1/echo", "headers": [], "client": None}
    with structlog.testing.capture_logs() as lines:
        await small(scope, receive, send)
    assert sent == []
    assert lines[-1]["status"] == 499
