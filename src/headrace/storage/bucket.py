"""Storage in an S3-compatible bucket: through obstore, and directly for what obstore lacks."""

import asyncio
import os
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

import httpx2
import obstore
from obstore import exceptions
from obstore.store import from_url

from headrace.extras import remedy
from headrace.storage.credentials import CredentialSource, region_of
from headrace.storage.errors import ObjectNotFound, PartsLost, StorageRefused, StorageUnreachable
from headrace.storage.model import StorageConfig, StoredObject, StoredPart
from headrace.storage.signing import Signer, query_string

PIECE = 1024 * 1024
_MAX_KEYS_PER_REQUEST = 1000  # objects that one request may delete or list
_STATUS = re.compile(r"status code: (\d{3}[ A-Za-z]*)")
_CODE = re.compile(r"<Code>(\w+)</Code>")
_NO_BUCKET = "NoSuchBucket"
_CREDENTIALS = re.compile(r"//[^/@\s]*@")  # a user name and a password in a URL


class Bucket:
    def __init__(self, config: StorageConfig) -> None:
        self.url = config.url
        endpoint = _CREDENTIALS.sub("//", config.options.get("endpoint", ""))
        self.place = f"{config.url} at {endpoint}" if endpoint else config.url
        self._timeout = config.timeout
        parts = urlsplit(config.url)
        self._prefix = parts.path.strip("/")
        self._name = parts.netloc
        self._source = CredentialSource(config.options)
        provided = {"credential_provider": self._source.for_obstore} if self._source.knows_roles else {}
        try:
            self._region = region_of(config.options)
            self._store: Any = from_url(  # type: ignore[call-overload]
                config.url,
                config={"region": self._region, **config.options},  # obstore reads no profile
                **provided,
                client_options={"timeout": config.timeout, "allow_http": True},
                retry_config={"retry_timeout": config.retry_for},
            )
        except Exception as exc:  # noqa: BLE001 - several kinds for a wrong address, option or profile
            raise StorageRefused(f"{self.place} cannot be used: {_first_line(exc)}") from None
        self._endpoint = (
            config.options.get("endpoint")
            or os.environ.get("AWS_ENDPOINT_URL")
            or f"https://s3.{self._region}.amazonaws.com"
        ).rstrip("/")
        self._http: httpx2.AsyncClient | None = None

    async def signer(self) -> Signer | None:
        """Signs requests with the keys of this moment; None if there are none to sign with."""
        current = await self._source.current()
        return None if current is None else Signer(self._endpoint, self._name, self._region, current.credentials)

    async def max_link_lifetime(self) -> timedelta | None:
        """The longest life of a link made now: that of a role's keys. None for keys that do not expire."""
        current = await self._source.current()
        return None if current is None else current.valid_for

    # -- whole objects

    async def put(self, name: str, content: Path | bytes) -> None:
        await self._calling(obstore.put_async(self._store, name, content), name, writes=True)

    async def read(self, name: str, start: int, end: int | None) -> AsyncGenerator[bytes, None]:
        asked = {} if start == 0 and end is None else {"range": (start, end) if end else {"offset": start}}
        reply = await self._calling(obstore.get_async(self._store, name, options=asked), name)  # type: ignore[arg-type]
        try:
            async for piece in reply.stream(min_chunk_size=PIECE):
                yield bytes(piece)
        except (exceptions.BaseError, OSError) as exc:
            raise self._explain(exc) from None

    async def size(self, name: str) -> int:
        found = await self._calling(obstore.head_async(self._store, name), name)
        return int(found["size"])

    async def delete(self, name: str) -> None:
        with suppress(ObjectNotFound):  # already deleted
            await self._calling(obstore.delete_async(self._store, name), name)

    async def list(self, prefix: str) -> AsyncIterator[Sequence[StoredObject]]:
        try:
            async for batch in obstore.list(self._store, prefix=prefix or None, chunk_size=_MAX_KEYS_PER_REQUEST):
                yield [StoredObject(each["path"], each["size"], each["last_modified"]) for each in batch]
        except (exceptions.BaseError, OSError) as exc:
            raise self._explain(exc) from None

    async def _calling(self, call: Any, name: str, *, writes: bool = False) -> Any:
        try:
            return await call
        except (FileNotFoundError, exceptions.NotFoundError) as exc:
            if writes or _NO_BUCKET in str(exc):
                raise self._refused("404", _NO_BUCKET) from None
            raise ObjectNotFound(f"There is no file {name} under {self.place}.") from None
        except (exceptions.BaseError, OSError) as exc:
            raise self._explain(exc) from None

    def _explain(self, exc: Exception) -> StorageUnreachable:
        """Translate an error of obstore. Callers raise it ``from None``: obstore's text repeats the request with its
        signed headers, including a session token."""
        text = str(exc)
        status, code = _STATUS.search(text), _CODE.search(text)
        if status is None:
            reason = _first_line(exc).rpartition(" - ")[2]  # without the repeated address and retries
            return StorageUnreachable(f"{self.place} does not answer: {reason}.")
        return self._refused(status[1].strip(), code[1] if code else "")

    def _refused(self, status: str, code: str) -> StorageUnreachable:
        answer = f"{status} {code}".strip()
        if code == _NO_BUCKET:
            return StorageRefused(f"{self.place}: there is no such bucket ({answer}). Create it, or correct its name.")
        if status[:3] in ("401", "403"):
            return StorageRefused(
                f"{self.place} refuses the access key ({answer}). Check the key and its rights to read, write, list "
                "and delete."
            )
        return StorageUnreachable(f"{self.place} cannot be read or written: it answers {answer}.")

    # -- in parts

    async def begin(self, name: str) -> str:
        """Begin a multipart upload; returns its S3 upload id."""
        answer = await self._request("POST", name, {"uploads": ""}, b"")
        return _text(answer, "UploadId")

    async def put_part(self, name: str, upload: str, number: int, file: Path) -> str:
        """Store one part; returns its ETag. A repeated part replaces the earlier one."""
        asked = {"partNumber": str(number), "uploadId": upload}
        reply = await self._send("PUT", name, asked, file)
        return reply.headers["ETag"]

    async def part_links(
        self, name: str, upload: str, sizes: Mapping[int, int], *, expires_in: timedelta
    ) -> dict[int, str]:
        """Links to upload parts, each of exactly its size, so that they cannot be used to fill the bucket."""
        signer = await self.signer()
        if signer is None:
            return {}
        return {
            number: signer.link(
                "PUT",
                self._key(name),
                expires_in=expires_in,
                query={"partNumber": str(number), "uploadId": upload},
                size=size,
            )
            for number, size in sizes.items()
        }

    async def list_parts(self, name: str, upload: str) -> Sequence[StoredPart]:
        found: list[StoredPart] = []
        while True:
            asked = {"uploadId": upload, "max-parts": str(_MAX_KEYS_PER_REQUEST)}
            if found:
                asked["part-number-marker"] = str(found[-1].number)
            answer = await self._request("GET", name, asked, b"")
            parts = [each for each in answer if _tag(each) == "Part"]
            found += [
                StoredPart(int(_text(each, "PartNumber")), int(_text(each, "Size")), _text(each, "ETag"))
                for each in parts
            ]
            if not parts or _text(answer, "IsTruncated") != "true":
                return found

    async def complete(self, name: str, upload: str, parts: Sequence[StoredPart]) -> None:
        """Complete the upload. After a lost answer a repetition succeeds if the object exists."""
        listed = "".join(
            f"<Part><PartNumber>{part.number}</PartNumber><ETag>{escape(part.etag)}</ETag></Part>"
            for part in sorted(parts, key=lambda part: part.number)
        )
        body = f"<CompleteMultipartUpload>{listed}</CompleteMultipartUpload>".encode()
        try:
            answer = await self._request("POST", name, {"uploadId": upload}, body)
        except PartsLost:
            try:
                await self.size(name)  # an earlier call has completed it
            except ObjectNotFound:
                raise PartsLost from None
            return
        if _tag(answer) == "Error":  # S3 may answer 200 with an error in the body
            raise StorageUnreachable(f"{self.place} could not put the parts together: {_text(answer, 'Code')}")

    async def abort(self, name: str, upload: str) -> None:
        """Abort the upload and delete its parts. Idempotent."""
        with suppress(PartsLost):
            await self._request("DELETE", name, {"uploadId": upload}, b"")

    async def _request(self, method: str, name: str, query: Mapping[str, str], body: bytes) -> ET.Element:
        reply = await self._send(method, name, query, body)
        if not reply.content:
            return ET.Element("Empty")
        try:
            return ET.fromstring(reply.content)  # noqa: S314 - see above
        except ET.ParseError as exc:
            raise StorageUnreachable(f"{self.place} answered something that is not S3's.") from exc

    async def _send(self, method: str, name: str, query: Mapping[str, str], body: bytes | Path) -> httpx2.Response:
        signer = await self.signer()
        if signer is None:
            raise StorageRefused(
                f"Uploads in parts to {self.place} need credentials: set HEADRACE_FILES_S3_ACCESS_KEY and "
                "HEADRACE_FILES_S3_SECRET_KEY, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; for AWS profiles and "
                f"roles, install the extra `aws`: {remedy('aws')}."
            )
        if self._http is None:
            self._http = httpx2.AsyncClient(timeout=self._timeout.total_seconds())
        key = self._key(name)
        headers = signer.headers(method, key, query, body if isinstance(body, bytes) else None)
        content: Any = body
        if isinstance(body, Path):
            headers["content-length"] = str((await asyncio.to_thread(body.stat)).st_size)
            content = _pieces(body)
        try:
            reply = await self._http.request(
                method, f"{signer.url(key)}?{query_string(query)}", content=content, headers=headers
            )
        except httpx2.TransportError as exc:
            reason = _first_line(exc) or type(exc).__name__
            raise StorageUnreachable(f"{self.place} does not answer: {reason}.") from exc
        if reply.is_error:
            code = _code(reply)
            if reply.status_code == httpx2.codes.NOT_FOUND and "uploadId" in query and code != _NO_BUCKET:
                raise PartsLost
            raise self._refused(f"{reply.status_code}", code)
        return reply

    async def link(self, name: str, *, expires_in: timedelta, query: Mapping[str, str]) -> str | None:
        """A link for reading; None if the bucket's keys are unknown."""
        signer = await self.signer()
        return None if signer is None else signer.link("GET", self._key(name), expires_in=expires_in, query=query)

    def _key(self, name: str) -> str:
        return f"{self._prefix}/{name}" if self._prefix else name

    async def close(self) -> None:
        if self._http is not None:
            await self._http.aclose()
            self._http = None


async def _pieces(file: Path) -> AsyncGenerator[bytes, None]:
    with file.open("rb") as source:
        while piece := await asyncio.to_thread(source.read, PIECE):
            yield piece


def _tag(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2]


def _text(element: ET.Element, name: str) -> str:
    return next((each.text or "" for each in element if _tag(each) == name), "")


def _code(reply: httpx2.Response) -> str:
    try:
        return _text(ET.fromstring(reply.content), "Code")  # noqa: S314 - see above
    except ET.ParseError:
        return ""


def _first_line(exc: Exception) -> str:
    return _CREDENTIALS.sub("//", str(exc).strip().partition("\n")[0])[:300]
