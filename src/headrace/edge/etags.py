"""Entity tags from ``version``, so that nobody overwrites what they have not seen.

>>> response.headers["ETag"] = etag(user.version)                       # "7"
>>> async def change(expected: ExpectedVersion, …): ...                 # If-Match: "7" → 7; none or * → None
>>> check_version(user.version, expected)                               # or PreconditionFailed

The check belongs into the guarded UPDATE where there is one (``… AND version = $2``); a row count of 0 is then the
same error.
"""

import re
from typing import Annotated

from fastapi import Depends, Header

from headrace.edge.errors import InvalidIfMatch

_ETAG = re.compile(r'"([1-9][0-9]{0,17}|0)"')


def etag(version: int) -> str:
    return f'"{version}"'


def parse_if_match(value: str | None) -> int | None:
    """The version that If-Match names; None when any will do."""
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
            description="Change it only if it is still the version with this `ETag`; otherwise the answer is 412.",
            openapi_examples={"version 7": {"value": '"7"'}},
            json_schema_extra={"pattern": rf"^(\*|{_ETAG.pattern})$"},
        ),
    ] = None,
) -> int | None:
    return parse_if_match(if_match)


ExpectedVersion = Annotated[int | None, Depends(_expected_version)]
"""The version the client wants to change, from ``If-Match``."""
