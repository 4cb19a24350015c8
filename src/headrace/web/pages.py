"""Pages beside the console: an API reference that works offline, and a plain page where the console was not built."""

import base64
import hashlib
from html import escape
from importlib import resources
from typing import Any

import orjson
from fastapi import Request, Response

from headrace import __version__
from headrace.edge.authorization import Anyone
from headrace.edge.routing import Router
from headrace.web import apipage
from headrace.web.encodings import pack

router = Router(include_in_schema=False)
home_router = Router(include_in_schema=False)

_STYLE = resources.files(__package__).joinpath("style.css").read_text()
# The style sheet is inline; the policy allows only its hash.
_POLICY = (
    f"default-src 'none'; style-src 'sha256-{base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()}'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


@home_router.get("/")
async def home(_: Anyone) -> Response:
    """A start page where the console was not built."""
    return page("Headrace", _HOME)


@router.get("/docs")
async def api_reference(request: Request, _: Anyone) -> Response:
    """The API reference as a page."""
    return _packed(request, page("Headrace API", apipage.render(_description(request))))


@router.get("/openapi.json")
async def api_description(request: Request, _: Anyone) -> Response:
    """The API description as JSON."""
    return _packed(request, Response(orjson.dumps(_description(request)), media_type="application/json"))


def _packed(request: Request, response: Response) -> Response:
    response.headers["Vary"] = "Accept-Encoding"
    return pack(response, request.headers)


def _description(request: Request) -> dict[str, Any]:
    description: dict[str, Any] = request.app.openapi()
    return description


def page(title: str, body: str) -> Response:
    html = (
        "<!doctype html>\n"
        f'<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_STYLE}</style></head>\n<body>{body}</body></html>\n"
    )
    return Response(html, media_type="text/html", headers={"Content-Security-Policy": _POLICY})


_HOME = f"""
<main class="home">
<h1>Headrace</h1>
<p class="lead">Headrace {escape(__version__)} is running.
<span lang="zh">Headrace {escape(__version__)} 正在运行。</span></p>
<ul class="links">
<li><a href="/docs">API reference <span lang="zh">接口文档</span></a><code>/docs</code></li>
<li><a href="/openapi.json">OpenAPI description <span lang="zh">OpenAPI 描述</span></a><code>/openapi.json</code></li>
<li><a href="/healthz">Is the process alive? <span lang="zh">进程是否存活</span></a><code>/healthz</code></li>
<li><a href="/readyz">Is it ready for requests? <span lang="zh">是否可以接受请求</span></a><code>/readyz</code></li>
<li><a href="/metrics">Metrics for Prometheus <span lang="zh">Prometheus 指标</span></a><code>/metrics</code></li>
</ul>
<p>The console was not built into this installation. <span lang="zh">此安装未包含控制台。</span></p>
</main>
"""
