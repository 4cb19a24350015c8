"""The built console is answered safely, quickly, and nowhere where the API is."""

import gzip
import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from headrace.database import Database
from headrace.web.config import WebConfig
from headrace.web.console import NONCE, RESERVED
from tests.edge import stand

PAGE = f'<!doctype html><meta name="csp-nonce" content="{NONCE}"><script type="module" src="/assets/a-1f.js"></script>'
SCRIPT = b"export const much = 1;\n" * 200
HTML = {"Accept": "text/html,application/xhtml+xml"}


@pytest.fixture
async def built(no_db: Database, tmp_path: Path) -> AsyncIterator[httpx2.AsyncClient]:
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text(PAGE)
    (tmp_path / "assets" / "a-1f.js").write_bytes(SCRIPT)
    (tmp_path / "assets" / "b-2e.js").write_bytes(SCRIPT)
    (tmp_path / "assets" / "b-2e.js.br").write_bytes(b"packed by the build")
    (tmp_path / "favicon.svg").write_bytes(b"<svg/>")
    config = WebConfig(console=tmp_path, file_origins=("https://files.example",))
    app = stand.app(no_db, config=config)
    async with stand.client(app) as opened:
        yield opened


async def test_the_page_may_run_only_what_comes_from_here(built: httpx2.AsyncClient) -> None:
    first, second = await built.get("/"), await built.get("/")
    policy = dict(part.strip().split(" ", 1) for part in first.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert "unsafe" not in first.headers["content-security-policy"]
    assert "https://files.example" in policy["img-src"]
    nonces = [
        re.findall(r"'nonce-([\w-]{20,})'", each.headers["content-security-policy"])[0] for each in (first, second)
    ]
    assert nonces[0] in first.text
    assert nonces[0] != nonces[1]
    assert NONCE not in first.text
    assert first.headers["x-content-type-options"] == "nosniff"
    assert first.headers["x-frame-options"] == "DENY"
    assert first.headers["cache-control"] == "no-cache"


async def test_a_link_into_the_console_is_answered_with_the_page(built: httpx2.AsyncClient) -> None:
    for path in ("/tasks", "/operators/queues/a.b", "/audit?q=%3Cscript%3E"):
        reply = await built.get(path, headers=HTML)
        assert (reply.status_code, reply.headers["content-type"]) == (200, "text/html; charset=utf-8")
    head = await built.head("/tasks", headers=HTML)
    assert (head.status_code, head.content) == (200, b"")


async def test_nothing_of_the_api_is_swallowed(built: httpx2.AsyncClient) -> None:
    """Also what is not there: a program must learn that it is wrong, and not be given a page."""
    for path in (*(f"/{word}/nothing" for word in RESERVED), "/v1", "/v1/", "/assets/gone-0.js"):
        reply = await built.get(path, headers=HTML)
        assert (reply.status_code, reply.headers["content-type"]) == (404, "application/problem+json"), path
    assert (await built.get("/tasks")).status_code == 404  # no browser: somebody forgot /v1
    assert (await built.post("/tasks", headers=HTML)).status_code == 404
    assert (await built.get("/healthz", headers=HTML)).json()["status"] == "ok"
    assert "openapi" in (await built.get("/openapi.json", headers=HTML)).json()
    assert "Headrace API" in (await built.get("/docs", headers=HTML)).text
    assert "headrace_http" in (await built.get("/metrics", headers=HTML)).text


async def test_files_are_packed_and_kept_by_browsers_for_as_long_as_they_are_true(built: httpx2.AsyncClient) -> None:
    reply = await built.get("/assets/a-1f.js", headers={"Accept-Encoding": "gzip"})
    assert reply.headers["content-encoding"] == "gzip"
    assert int(reply.headers["content-length"]) < len(SCRIPT) / 5
    assert reply.content == SCRIPT
    assert reply.headers["content-type"] == "text/javascript; charset=utf-8"
    assert "immutable" in reply.headers["cache-control"]
    plain = await built.get("/assets/a-1f.js", headers={"Accept-Encoding": "gzip;q=0"})
    assert "content-encoding" not in plain.headers
    assert plain.content == SCRIPT
    again = await built.get("/assets/a-1f.js", headers={"If-None-Match": reply.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    async with built.stream("GET", "/assets/b-2e.js", headers={"Accept-Encoding": "gzip, br"}) as packed:
        assert packed.headers["content-encoding"] == "br"
        assert b"".join([part async for part in packed.aiter_raw()]) == b"packed by the build"
    assert (await built.get("/assets/b-2e.js.br")).status_code == 404
    assert (await built.get("/favicon.svg")).headers["cache-control"] == "no-cache"
    async with built.stream("GET", "/", headers={"Accept-Encoding": "gzip"}) as page:
        body = gzip.decompress(b"".join([part async for part in page.aiter_raw()]))
    assert body.startswith(b"<!doctype html>")


async def test_no_path_leads_out_of_the_folder(built: httpx2.AsyncClient) -> None:
    for path in ("/assets/../../app.py", "/%2e%2e/app.py", "/assets/..%2f..%2fapp.py", "//etc/passwd", "/index.html"):
        reply = await built.get(path)
        assert "import" not in reply.text
        assert reply.status_code == 404


async def test_without_a_build_a_plain_page_says_so(client: httpx2.AsyncClient) -> None:
    reply = await client.get("/", headers=HTML)
    assert "was not built" in reply.text
    assert (await client.get("/tasks", headers=HTML)).status_code == 404
