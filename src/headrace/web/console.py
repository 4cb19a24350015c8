"""Serves the built console: one page, and the files that it loads.

They are read once and served from memory, without credentials, database or rate limit. The page answers every path
without a route for which a browser accepts HTML, so that links into the console work. Other requests for such paths (a
program that forgot ``/v1``, a file of another build) get 404.
"""

import gzip
import hashlib
import mimetypes
import secrets
from dataclasses import dataclass, field
from pathlib import Path

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from headrace.web.config import WebConfig
from headrace.web.encodings import accepted_encodings, pack

BUILT = Path(__file__).parent / "console"  # written by the build

# First path segments that never belong to the console.
RESERVED = frozenset({"v1", "docs", "openapi.json", "healthz", "readyz", "metrics"})
NONCE = "__CSP_NONCE__"  # placeholder in the page for the nonce of its styles

_HASHED = "assets/"  # a file's name changes with its content
_MIN_COMPRESSED_BYTES = 1024
_CACHE_IMMUTABLE = "public, max-age=31536000, immutable"
_CACHE_REVALIDATE = "no-cache"
_TEXT = ("text/", "application/json", "application/manifest+json", "image/svg+xml")
# Not taken from the system's table: browsers do not run a script of another type (nosniff).
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".wasm": "application/wasm",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}


@dataclass(frozen=True, slots=True)
class File:
    """One file of the build, plain and compressed."""

    body: bytes = field(repr=False)
    packed: dict[str, bytes] = field(repr=False)  # by content encoding
    media_type: str
    etag: str
    cache: str


class Console:
    """The build in memory; empty if there is none."""

    def __init__(self, folder: Path | None, config: WebConfig) -> None:
        self._config = config
        self._page: str | None = None
        self._files: dict[str, File] = {}
        if folder is not None and (folder / "index.html").is_file():
            self._page = (folder / "index.html").read_text()
            self._files = _read(folder)

    @property
    def is_built(self) -> bool:
        return self._page is not None

    def behind(self, nothing: ASGIApp) -> ASGIApp:
        """The app for paths without a route: the console's answer, or ``nothing``."""

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            response = self._answer(scope) if scope["type"] == "http" and scope["method"] == "GET" else None
            await (nothing if response is None else response)(scope, receive, send)

        return answer

    def _answer(self, scope: Scope) -> Response | None:
        path = scope["path"].lstrip("/")
        if self._page is None or path.split("/", 1)[0] in RESERVED:
            return None
        headers = Headers(scope=scope)
        if (file := self._files.get(path)) is not None:
            return _answer_with(file, headers)
        wants_page = path == "" or "text/html" in headers.get("accept", "")
        return self._answer_with_page(headers) if wants_page and not path.startswith(_HASHED) else None

    def _answer_with_page(self, headers: Headers) -> Response:
        assert self._page is not None
        # A new nonce for each answer, so that it cannot be guessed for an injected style.
        nonce = secrets.token_urlsafe(16)
        body = self._page.replace(NONCE, nonce).encode()
        response = Response(body, media_type="text/html; charset=utf-8")
        response.headers["Content-Security-Policy"] = policy(self._config, nonce)
        response.headers["Cache-Control"] = _CACHE_REVALIDATE
        response.headers["Vary"] = "Accept, Accept-Encoding"
        return pack(response, headers)


def policy(config: WebConfig, nonce: str) -> str:
    """The page's Content-Security-Policy: only this origin. Images and videos also from the file storage, and from
    memory, for the editor."""
    files = " ".join(("'self'", *config.file_origins))
    return "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            f"style-src 'self' 'nonce-{nonce}'",
            f"img-src {files} blob: data:",
            f"media-src {files} blob:",
            f"connect-src {files}",
            "font-src 'self'",
            "worker-src 'self'",
            "manifest-src 'self'",
            "base-uri 'none'",
            "form-action 'self'",
            "frame-ancestors 'none'",
        )
    )


def _read(folder: Path) -> dict[str, File]:
    found = {file.relative_to(folder).as_posix(): file for file in folder.rglob("*") if file.is_file()}
    ready = {".br": "br", ".gz": "gzip"}  # compressed by the build
    files: dict[str, File] = {}
    for name, file in found.items():
        if name == "index.html" or file.suffix in ready or file.name.startswith("."):
            continue
        body = file.read_bytes()
        media_type = _TYPES.get(file.suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"
        packed = {
            encoding: found[name + suffix].read_bytes() for suffix, encoding in ready.items() if name + suffix in found
        }
        if not packed and len(body) >= _MIN_COMPRESSED_BYTES and media_type.startswith(_TEXT):
            packed = {"gzip": gzip.compress(body, 6, mtime=0)}
        digest = hashlib.sha256(body).hexdigest()[:32]
        cache = _CACHE_IMMUTABLE if name.startswith(_HASHED) else _CACHE_REVALIDATE
        files[name] = File(body, packed, media_type, f'"{digest}"', cache)
    return files


def _answer_with(file: File, headers: Headers) -> Response:
    shared = {"ETag": file.etag, "Cache-Control": file.cache, "Vary": "Accept-Encoding"}
    if file.etag in headers.get("if-none-match", "").replace("W/", "").split(", "):
        return Response(status_code=304, headers=shared)
    accepted = accepted_encodings(headers)
    for encoding in ("br", "gzip"):
        if encoding in accepted and encoding in file.packed:
            packed = {**shared, "Content-Encoding": encoding}
            return Response(file.packed[encoding], media_type=file.media_type, headers=packed)
    return Response(file.body, media_type=file.media_type, headers=shared)
