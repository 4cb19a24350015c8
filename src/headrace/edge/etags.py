"""Entity tags from ``version``, which prevent lost updates.

>>> response.headers["ETag"] = etag(user.version)                       # "7"
>>> async def change(expected: ExpectedVersion, …): ...                 # If-Match: "7" → 7; none or * → None
>>> check_version(user.version, expected)                               # or PreconditionFailed

The check belongs into the guarded UPDATE where one exists (``… AND version = $2``); a row count of 0 is the same error.
"""

import re
from typing import Annotated

from fastapi import Depends, Header

from headrace.edge.errors import InvalidIfMatch

_ETAG = re.compile(r'"([1-9][0-9]{0,17}|0)"')


def etag(version: int) -> str:
    return f'"{version}"'


def parse_if_match(value: str | None) -> int | None:
    """The version in If-Match; None for any version."""
    if value is None or value.strip() == "*":
        return None
    if (match := _ETAG.fullmatch(value.strip())) is None:
        raise InvalidIfMatch
    return int(match[1])


async def _expected_version(
    if_match: Annotated[
        str | None,
        Header(
            alias="If-Match",
            description="Change it only if its version still has this `ETag`; otherwise the answer is 412.",
            openapi_examples={"version 7": {"value": '"7"'}},
            json_schema_extra={"pattern": rf"^(\*|{_ETAG.pattern})$"},
        ),
    ] = None,
) -> int | None:
    return parse_if_match(if_match)


ExpectedVersion = Annotated[int | None, Depends(_expected_version)]
"""The version that the client expects, from ``If-Match``."""
