"""Hostile requests for any route, from its OpenAPI: bodies, queries, headers and names in paths.

Everything is drawn from a seed: the same seed sends the same. schemathesis (tests/web/test_schema.py) sends what the
schema allows or nearly allows; these are what no schema speaks of, and what decoders, databases and logs stumble over.
"""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote_from_bytes

from tests.attack.routes import Route

TEXTS = [
    "\0", "a\0b", "\ud800", "\udfff\ud800", "\ufeff", "\u202e", "ａｄｍｉｎ", "аdmin", "ada\u200b", "İ", "ß" * 300,
    "\r\nX-Evil: 1",
    "' OR 1=1 --", "'; DROP TABLE headrace.users; --", "$1", "%s%n", "{{7*7}}", "${jndi:ldap://x}",
    "<script>alert(1)</script>",
    "__proto__", "../../etc/passwd", "%00", "%2e%2e%2f", "\\x00", "NaN", "Infinity", "null", "-0", "1e400",
    "0x7f", "٣",
    "2026-02-30T00:00:00Z", "9999-12-31T23:59:60Z", "0000-00-00", "u_00000000000000000000000000",
    "tsk_" + "z" * 26, "a" * 70_000,
    "😀" * 300, "",
]  # fmt: skip
VALUES: list[Any] = [
    None, True, 0, -1, 2**31, 2**63, -(2**63) - 1, 10**400, 0.1, 1e308, [], {}, [[]], {"": ""}, {"a\0": 1},
    [None] * 2000, *TEXTS,
]  # fmt: skip
# Bodies that are no JSON, or not the JSON that they look like.
RAW = [
    b"", b"{", b"[" * 20_000, b'{"a":' * 20_000, b"[" * 5000 + b"]" * 5000,
    b'{"a":' * 5000 + b"1" + b"}" * 5000, b"nul", b"NaN", b'{"a":NaN}',
    b'{"a":Infinity}', b'{"a":1e400}', b'{"a":-1e400}', b'{"a":1,"a":2}', b'"\xff\xfe"', b"\xff\xfe{\x00}\x00",
    b"\xef\xbb\xbf{}",
    b'{"\\ud800":1}', b'"\\u0000"', b"1" * 5000, b"-", b"{}{}", b"// c\n{}", b"'a'", b"<a/>", b"\x00" * 100,
]  # fmt: skip
HEADERS = [
    {"Content-Type": "application/json; charset=utf-16"}, {"Content-Type": "text/plain"},
    {"Content-Type": "\xff"},
    {"Content-Type": "multipart/form-data"}, {"Idempotency-Key": "a" * 129}, {"Idempotency-Key": "\x7f"},
    {"Idempotency-Key": ""},
    {"If-Match": '"-1"'}, {"If-Match": '"99999999999999999999"'}, {"If-Match": "*, *"}, {"If-Match": 'W/"x'},
    {"Last-Event-ID": "-1"},
    {"Last-Event-ID": "9" * 40}, {"X-Request-Id": "a" * 5000}, {"X-Request-Id": "\xe9\t"},
    {"traceparent": "00-0-0-0"}, {"Accept": "\xff"},
    {"Accept-Encoding": "gzip;q=x"}, {"Authorization": "Bearer"}, {"Authorization": "Bearer \xff"},
    {"X-Forwarded-For": "'; --, ::1"},
    {"Cookie": "=;;;\xff=\x01"}, {"Range": "bytes=0-,0-,0-"}, {"User-Agent": "\xff" * 3000},
    {"Expect": "100-continue"},
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Hostile:
    """A request that should be refused, or do no harm. ``what`` says what is wrong with it, for whoever replays it."""

    what: str
    path: dict[str, str]  # percent-encoded
    query: str = ""
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)


def encoded(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return quote_from_bytes(text[:3000].encode(errors="surrogatepass"), safe="") or "%20"


def as_json(value: Any) -> bytes:
    return json.dumps(value).encode()


def hostile(route: Route, path: dict[str, str], body: Any, *, seed: int, most: int) -> Iterator[Hostile]:
    """So many hostile requests for this route, from one of the victim's that would succeed."""
    choice = random.Random(f"{seed} {route.name}")
    kinds = [
        kind for kind in (_paths, _queries, _fields, _raw, _headers) if kind(route, path, body, choice) is not None
    ]
    for number in range(most):
        made = kinds[number % len(kinds)](route, path, body, choice)
        assert made is not None
        yield made


def _paths(route: Route, path: dict[str, str], body: Any, choice: random.Random) -> Hostile | None:
    names = route.parameters("path")
    if not names:
        return None
    name, value = choice.choice(names), choice.choice(TEXTS)
    return Hostile(f"path {name}={value[:40]!r}", {**path, name: encoded(value)}, body=_usual(body))


def _queries(route: Route, path: dict[str, str], body: Any, choice: random.Random) -> Hostile | None:
    names = route.parameters("query")
    if not names:
        return None
    name, value = choice.choice(names), choice.choice(VALUES)
    again = f"&{name}={encoded(choice.choice(VALUES))}" if choice.random() < 0.2 else ""
    return Hostile(
        f"query {name}={str(value)[:40]!r}{again[:40]}", path, f"{name}={encoded(value)}{again}", _usual(body)
    )


def _fields(route: Route, path: dict[str, str], body: Any, choice: random.Random) -> Hostile | None:
    """The victim's body with one value somewhere in it replaced, a field too many, or another type altogether."""
    if not route.described.get("requestBody"):
        return None
    value = choice.choice(VALUES)
    if not isinstance(body, dict) or choice.random() < 0.1:
        return Hostile(f"body {str(value)[:40]!r}", path, body=as_json(value))
    schema = route.described["requestBody"].get("content", {}).get("application/json", {}).get("schema", {})
    name = choice.choice([*schema.get("properties", {}), *body, "extra", "\0"])
    return Hostile(f"body.{name}={str(value)[:40]!r}", path, body=as_json({**body, name: value}))


def _raw(route: Route, path: dict[str, str], body: Any, choice: random.Random) -> Hostile | None:
    if not route.described.get("requestBody"):
        return None
    raw = choice.choice(RAW)
    return Hostile(f"raw {raw[:40]!r} of {len(raw)}", path, body=raw)


def _headers(route: Route, path: dict[str, str], body: Any, choice: random.Random) -> Hostile | None:
    headers = choice.choice(HEADERS)
    # With a body that is refused for itself, so that a header which is ignored does not make it a success.
    return Hostile(
        f"header {str(headers)[:60]}", path, "limit=x", as_json({"\0": 1}) if body is not None else None, headers
    )


def _usual(body: Any) -> bytes | None:
    return body if body is None or isinstance(body, bytes) else as_json(body)
