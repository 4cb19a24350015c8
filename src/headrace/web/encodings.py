"""Negotiates content encodings and compresses answers."""

import gzip

from starlette.datastructures import Headers
from starlette.responses import Response

_LEVEL = 6


def accepted_encodings(headers: Headers) -> frozenset[str]:
    """The encodings of ``Accept-Encoding``, without those of weight 0."""
    offers = [part.strip().lower().partition(";") for part in headers.get("accept-encoding", "").split(",")]
    refused = {"q=0", "q=0.0", "q=0.00", "q=0.000"}
    return frozenset(name.strip() for name, _, weight in offers if weight.strip() not in refused)


def pack(response: Response, headers: Headers) -> Response:
    """Compress the body of an answer, if the client accepts that."""
    if "gzip" in accepted_encodings(headers):
        response.body = gzip.compress(response.body, _LEVEL, mtime=0)
        response.headers["Content-Encoding"] = "gzip"
        response.headers["Content-Length"] = str(len(response.body))
    return response
