"""Refuses JSON that parses but cannot be stored, for every route.

Python's parser accepts more than JSON (NaN), than Unicode (lone surrogates) and than PostgreSQL can store (U+0000, huge
numbers, a thousand levels). Fields of type ``Any`` have no other check.
"""

import math
import re
from typing import Any

from fastapi import Request
from starlette.datastructures import Headers

from headrace.edge.errors import InvalidJson, UnstorableText, UnsupportedMediaType

MAX_DEPTH = 64

# Bytes that occur in every invalid body; most bodies have none of them and need no traversal.
_SUSPICIOUS = re.compile(
    rb"\\u0000|\\u[dD]|\xed[\xa0-\xbf]"  # U+0000 and lone surrogates, escaped or as bytes
    rb"|NaN|Infinity|[0-9][eE]|[0-9]{19}"  # invalid or too large numbers
    rb"|\0"  # UTF-16 or UTF-32, in which the others would not match
)
_BAD_TEXT = re.compile("[\0\ud800-\udfff]")
_MIN_INTEGER, _MAX_INTEGER = -(2**63), 2**63 - 1


async def readable(request: Request) -> None:
    """A dependency of every route: path, query and JSON body must be readable and storable."""
    if b"%00" in request.scope["query_string"] or "\0" in request.scope["path"]:
        raise UnstorableText
    field = getattr(request.scope.get("route"), "body_field", None)
    if field is None or request.headers.get("content-type", "").startswith("multipart/form-data"):
        return
    body = await request.body()
    if not body:
        return
    if not _is_json(request.headers):
        raise UnsupportedMediaType
    if _SUSPICIOUS.search(body) or body.count(b"[") + body.count(b"{") > MAX_DEPTH:
        check(await request.json())


def _is_json(headers: Headers) -> bool:
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    return media_type == "application/json" or (media_type.startswith("application/") and media_type.endswith("+json"))


def check(document: Any) -> None:
    """Raise if any part of a parsed document cannot be stored; iterative, because the depth is not yet limited."""
    level: list[Any] = [document]
    for _ in range(MAX_DEPTH + 1):
        below: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                for key in value:
                    _check_leaf(key)
                below.extend(value.values())
            elif isinstance(value, list):
                below.extend(value)
            else:
                _check_leaf(value)
        if not below:
            return
        level = below
    raise InvalidJson(f"The body is nested deeper than {MAX_DEPTH} levels.")


def _check_leaf(value: Any) -> None:
    if isinstance(value, str):
        if _BAD_TEXT.search(value):
            raise UnstorableText
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidJson("NaN, Infinity and numbers of that size are not JSON.")
    elif isinstance(value, int) and not _MIN_INTEGER <= value <= _MAX_INTEGER:
        raise InvalidJson("An integer in the body does not fit into 64 bits.")
