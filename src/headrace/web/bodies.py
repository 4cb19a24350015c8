"""JSON that parses and still cannot be worked with: refused here, once, for every route.

Python's parser takes more than JSON allows (NaN), more than Unicode allows (half of a surrogate pair) and more than
PostgreSQL can store (U+0000, numbers without end, a thousand levels). Where a schema says ``Any``, nobody else looks.
"""

import math
import re
from typing import Any

from fastapi import Request
from starlette.datastructures import Headers

from headrace.edge.errors import InvalidJson, UnstorableText, UnsupportedMediaType

MAX_DEPTH = 64

# What must be in the bytes if anything below is to be found; most bodies have none of it and are not walked through.
_SUSPICIOUS = re.compile(
    rb"\\u0000|\\u[dD]|\xed[\xa0-\xbf]"  # U+0000, halves of surrogate pairs, written out or as bytes
    rb"|NaN|Infinity|[0-9][eE]|[0-9]{19}"  # numbers that are none, or too large
    rb"|\0"  # UTF-16 or UTF-32, in which none of these would be found
)
_BAD_TEXT = re.compile("[\0\ud800-\udfff]")
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1


async def readable(request: Request) -> None:
    """A dependency of every route: the path, the query and the JSON body can be read and stored."""
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
    """Raise if any part of a parsed document cannot be stored; without recursion, since depth is one of the dangers."""
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
            raise InvalidJson("NaN, Infinity and numbers as large as that are not JSON.")
    elif isinstance(value, int) and not _SMALLEST <= value <= _LARGEST:
        raise InvalidJson("A whole number in the body does not fit into 64 bits.")
