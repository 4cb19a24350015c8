"""Files, for programs with an event loop: ``client.files``."""

import asyncio
import base64
import hashlib
from collections.abc import AsyncGenerator, Callable, Sequence
from datetime import timedelta
from pathlib import Path

import httpx2

from headrace import ids
from headrace.client.errors import ApiError, Unreachable
from headrace.client.generated.answers import File, Link, ResultFile, StorageUse, Upload
from headrace.client.verbs import Verbs, given, part
from headrace.errors import Invalid

OnBytes = Callable[[int, int], None]
"""Called with the transferred and the total number of bytes."""

_MAX_SINGLE_REQUEST_BYTES = 4 * 1024 * 1024  # below this size one request is faster than three
MAX_CONCURRENT_PARTS = 4
_COMPLETE_TIMEOUT = timedelta(minutes=10)
_PIECE = 1024 * 1024


class BrokenDownload(Invalid):
    """The download is corrupt: its SHA-256 differs. It was discarded; try again."""

    code = "broken_download"


class Files(Verbs):
    """Uploads resume: sending a partly uploaded file again continues its upload. The server finds
    the partial upload by the file's SHA-256, so another program or machine can continue it too."""

    async def upload(
        self,
        path: Path | str,
        *,
        name: str | None = None,
        strip_location: bool = False,
        at_once: int = MAX_CONCURRENT_PARTS,
        on_progress: OnBytes | None = None,
    ) -> File:
        """Upload a file; large ones in parallel parts. After an interruption the same call resumes."""
        source = Path(path)
        size, sha256 = await asyncio.to_thread(_measure, source)
        chosen = name or source.name
        tell = on_progress or _ignore_progress
        if size <= _MAX_SINGLE_REQUEST_BYTES:
            content = await asyncio.to_thread(source.read_bytes)
            made = await self.send(content, name=chosen, strip_location=strip_location)
            tell(size, size)
            return made
        upload = None if strip_location else await self._find(size, sha256)
        if upload is None:
            upload = await self.begin(chosen, size, sha256=sha256, strip_location=strip_location, key=ids.new("key"))
        await self._send_parts(upload, source, at_once=at_once, tell=tell)
        return await self.complete(upload.id)

    async def send(self, content: bytes, *, name: str, strip_location: bool = False) -> File:
        """Upload bytes in one request."""
        asked = given({"name": name, "strip_location": strip_location or None})
        headers = {
            "Idempotency-Key": ids.new("key"),
            "Content-Type": "application/octet-stream",
            "Content-Digest": _digest_header(hashlib.sha256(content).digest()),
        }
        return File.of(
            await self._connection.request(
                "POST", "/v1/assets", params=asked, headers=headers, content=content, safe=True
            )
        )

    async def _find(self, size: int, sha256: str) -> Upload | None:
        """The unfinished upload of the same file, if any."""
        async for item in self._pages("/v1/uploads"):
            if item["sha256"] == sha256 and item["size_bytes"] == size and not item["direct"]:
                return await self.get_upload(item["id"])
        return None

    async def _send_parts(self, upload: Upload, source: Path, *, at_once: int, tell: OnBytes) -> None:
        there = {each["number"]: each["size_bytes"] for each in upload.stored}
        sent = sum(there.values())
        tell(sent, upload.size_bytes)
        missing = iter([number for number in range(1, upload.parts + 1) if number not in there])

        async def send() -> None:
            nonlocal sent
            for number in missing:
                start = (number - 1) * upload.part_bytes
                content = await asyncio.to_thread(_read, source, start, upload.part_bytes)
                await self.put_part(upload.id, number, content)
                sent += len(content)
                tell(sent, upload.size_bytes)

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(at_once):
                    group.create_task(send())
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None

    # -- in parts, by hand

    async def begin(
        self,
        name: str,
        size: int,
        *,
        sha256: str | None = None,
        direct: bool = False,
        strip_location: bool = False,
        key: str | None = None,
    ) -> Upload:
        """Begin a multipart upload; parts of a ``direct`` one are sent to the storage, with ``part_links``."""
        body = {"name": name, "size_bytes": size, "direct": direct, "strip_location": strip_location}
        return Upload.of(await self._create("/v1/uploads", {**body, **given({"sha256": sha256})}, key))

    async def get_upload(self, upload_id: str) -> Upload:
        """An open upload with its stored parts."""
        return Upload.of(await self._get(f"/v1/uploads/{part(upload_id)}"))

    async def put_part(self, upload_id: str, number: int, content: bytes) -> None:
        """Upload one part. Idempotent."""
        headers = {
            "Content-Type": "application/octet-stream",
            "Content-Digest": _digest_header(hashlib.sha256(content).digest()),
        }
        path = f"/v1/uploads/{part(upload_id)}/parts/{number}"
        await self._connection.request("PUT", path, headers=headers, content=content, safe=True)

    async def part_links(self, upload_id: str, numbers: Sequence[int]) -> dict[int, str]:
        """Links to PUT parts of a direct upload."""
        path = f"/v1/uploads/{part(upload_id)}/links"
        answer = await self._change(path, None, safe=True, body={"numbers": [*numbers]})
        return {each["number"]: each["url"] for each in answer["links"]}

    async def complete(self, upload_id: str) -> File:
        """Complete the upload and return the file. Idempotent. Waits while the file is inspected."""
        path = f"/v1/uploads/{part(upload_id)}/complete"
        async with asyncio.timeout(_COMPLETE_TIMEOUT.total_seconds()):
            while True:
                try:
                    return File.of(await self._connection.request("POST", path, safe=True, timeout=_COMPLETE_TIMEOUT))
                except ApiError as exc:
                    if exc.code != "upload_being_completed":
                        raise
                    await asyncio.sleep(1)

    async def abort(self, upload_id: str) -> None:
        """Abort an upload."""
        await self._connection.request("DELETE", f"/v1/uploads/{part(upload_id)}", safe=False)

    # -- reading

    async def get(self, file_id: str) -> File:
        """One file's metadata."""
        return File.of(await self._get(f"/v1/assets/{part(file_id)}"))

    async def list(
        self,
        *,
        media_type: str | None = None,
        name: str | None = None,
        sha256: str | None = None,
        user_id: str | None = None,
    ) -> AsyncGenerator[File, None]:
        """Your files, newest first."""
        asked = {"media_type": media_type, "name": name, "sha256": sha256, "user_id": user_id}
        async for item in self._pages("/v1/assets", asked):
            yield File.of(item)

    async def usage(self) -> StorageUse:
        """The storage use and limit."""
        return StorageUse.of(await self._get("/v1/assets/usage"))

    async def download(self, file_id: str, path: Path | str, *, on_progress: OnBytes | None = None) -> File:
        """Download a file to ``path``. Resumable; the file appears only when complete and verified."""
        found = await self.get(file_id)
        content = f"/v1/assets/{part(file_id)}/content"
        await self._fetch(content, Path(path), found.size_bytes, found.sha256, on_progress or _ignore_progress)
        return found

    async def result(self, task_id: str) -> ResultFile:
        """The result file of a task."""
        return ResultFile.of(await self._get(f"/v1/tasks/{part(task_id)}/result"))

    async def download_result(
        self, task_id: str, path: Path | str, *, on_progress: OnBytes | None = None
    ) -> ResultFile:
        """Download the result file of a task to ``path``."""
        found = await self.result(task_id)
        content = f"/v1/tasks/{part(task_id)}/result/content"
        await self._fetch(content, Path(path), found.size_bytes or 0, found.sha256, on_progress or _ignore_progress)
        return found

    async def _fetch(self, path: str, target: Path, size: int, sha256: str | None, tell: OnBytes) -> None:
        draft = target.with_name(f"{target.name}.part")
        tries = 0
        while (start := await asyncio.to_thread(_length, draft)) < size:
            headers = {"Range": f"bytes={start}-", **({"If-Range": f'"{sha256}"'} if sha256 else {})}
            try:
                async with self._connection.stream_bytes(path, headers=headers) as response:
                    await self._write(response, draft, size, tell)
            except Unreachable:
                tries += 1
                if tries > 5:
                    raise
                await asyncio.sleep(min(2**tries, 10))
        if sha256 is not None and (await asyncio.to_thread(_measure, draft))[1] != sha256:
            draft.unlink()
            raise BrokenDownload
        draft.replace(target)

    async def _write(self, response: httpx2.Response, draft: Path, size: int, tell: OnBytes) -> None:
        whole = response.status_code == httpx2.codes.OK
        with draft.open("wb" if whole else "ab") as file:
            async for piece in response.aiter_bytes(_PIECE):
                await asyncio.to_thread(file.write, piece)
                tell(file.tell(), size)

    async def link(
        self, file_id: str, *, expires_in: timedelta | None = None, inline: bool = False, preview: bool = False
    ) -> Link:
        """Create a link with which anyone can read the file until it expires."""
        return await self._link(f"/v1/assets/{part(file_id)}/links", expires_in, inline=inline, preview=preview)

    async def link_result(
        self, task_id: str, *, expires_in: timedelta | None = None, inline: bool = False, preview: bool = False
    ) -> Link:
        """Create a link with which anyone can read the result file of a task until it expires."""
        return await self._link(f"/v1/tasks/{part(task_id)}/result/links", expires_in, inline=inline, preview=preview)

    async def _link(self, path: str, expires_in: timedelta | None, *, inline: bool, preview: bool) -> Link:
        seconds = None if expires_in is None else int(expires_in.total_seconds())
        body = {"inline": inline, "preview": preview, **given({"expires_in": seconds})}
        return Link.of(await self._change(path, None, safe=True, body=body))

    async def delete(self, file_id: str) -> None:
        """Delete a file; its bytes are removed after a while."""
        await self._connection.request("DELETE", f"/v1/assets/{part(file_id)}", safe=False)


def _ignore_progress(_done: int, _total: int) -> None:
    """The default progress callback."""


def _measure(path: Path) -> tuple[int, str]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return file.tell(), digest


def _read(path: Path, start: int, size: int) -> bytes:
    with path.open("rb") as file:
        file.seek(start)
        return file.read(size)


def _length(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _digest_header(digest: bytes) -> str:
    return f"sha-256=:{base64.b64encode(digest).decode()}:"
