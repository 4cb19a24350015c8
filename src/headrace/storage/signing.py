"""AWS Signature Version 4, for what obstore lacks: links with response headers, and multipart uploads.

obstore signs plain requests to one object; the part of a multipart upload and the name of a download are in the query.
"""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from urllib.parse import quote, urlsplit

from headrace import clock

_ALGORITHM = "AWS4-HMAC-SHA256"
UNSIGNED = "UNSIGNED-PAYLOAD"
MAX_EXPIRY = timedelta(days=7)  # S3's own limit


@dataclass(frozen=True, slots=True)
class Credentials:
    access_key: str
    secret_key: str = field(repr=False)
    token: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Signer:
    """Signs requests to one bucket, in path style (``endpoint/bucket/key``), which every S3 service supports."""

    endpoint: str
    bucket: str
    region: str
    credentials: Credentials

    def url(self, key: str) -> str:
        return f"{self.endpoint}/{quote(self.bucket, safe='')}/{quote(key, safe='/-_.~')}"

    def link(
        self,
        method: str,
        key: str,
        *,
        expires_in: timedelta,
        query: Mapping[str, str] | None = None,
        size: int | None = None,
        now: datetime | None = None,
    ) -> str:
        """A presigned URL for one request until it expires; with ``size``, for exactly that many bytes."""
        at = now or clock.now()
        url = self.url(key)
        signed = {"host": urlsplit(url).netloc} | ({} if size is None else {"content-length": str(size)})
        asked = {
            **(query or {}),
            "X-Amz-Algorithm": _ALGORITHM,
            "X-Amz-Credential": f"{self.credentials.access_key}/{self._scope(at)}",
            "X-Amz-Date": _stamp(at),
            "X-Amz-Expires": str(int(min(expires_in, MAX_EXPIRY).total_seconds())),
            "X-Amz-SignedHeaders": ";".join(sorted(signed)),
        }
        if self.credentials.token is not None:
            asked["X-Amz-Security-Token"] = self.credentials.token
        signature = self._sign(method, url, asked, signed, UNSIGNED, at)
        return f"{url}?{_query(asked)}&X-Amz-Signature={signature}"

    def headers(
        self, method: str, key: str, query: Mapping[str, str], payload: bytes | None, *, now: datetime | None = None
    ) -> dict[str, str]:
        """The signed headers of a request. ``payload`` None: the body is not part of the signature."""
        at = now or clock.now()
        digest = UNSIGNED if payload is None else hashlib.sha256(payload).hexdigest()
        signed = {"host": urlsplit(self.endpoint).netloc, "x-amz-content-sha256": digest, "x-amz-date": _stamp(at)}
        if self.credentials.token is not None:
            signed["x-amz-security-token"] = self.credentials.token
        signature = self._sign(method, self.url(key), query, signed, digest, at)
        authorization = (
            f"{_ALGORITHM} Credential={self.credentials.access_key}/{self._scope(at)}, "
            f"SignedHeaders={';'.join(sorted(signed))}, Signature={signature}"
        )
        return {**signed, "authorization": authorization}

    def _scope(self, at: datetime) -> str:
        return f"{at:%Y%m%d}/{self.region}/s3/aws4_request"

    def _sign(
        self, method: str, url: str, query: Mapping[str, str], headers: Mapping[str, str], digest: str, at: datetime
    ) -> str:
        names = sorted(headers)
        request = "\n".join(
            [
                method,
                urlsplit(url).path,
                _query(query),
                *(f"{name}:{headers[name]}" for name in names),
                "",
                ";".join(names),
                digest,
            ]
        )
        text = "\n".join([_ALGORITHM, _stamp(at), self._scope(at), hashlib.sha256(request.encode()).hexdigest()])
        key = f"AWS4{self.credentials.secret_key}".encode()
        for part in (f"{at:%Y%m%d}", self.region, "s3", "aws4_request"):
            key = hmac.digest(key, part.encode(), "sha256")
        return hmac.new(key, text.encode(), "sha256").hexdigest()


def query_string(query: Mapping[str, str]) -> str:
    """The canonical query string: sorted, and encoded as S3 does."""
    return "&".join(f"{quote(name, safe='-_.~')}={quote(query[name], safe='-_.~')}" for name in sorted(query))


_query = query_string


def _stamp(at: datetime) -> str:
    return f"{at:%Y%m%dT%H%M%SZ}"
