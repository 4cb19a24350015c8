"""The verbs of files for programs without an event loop; they are described at their twins."""

from __future__ import annotations  # a verb is called list

from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path

from headrace.client.files import File, Files, Link, OnBytes, ResultFile, StorageUse, Upload
from headrace.client.synchronous_schedules import Loop


class SyncFiles:
    def __init__(self, loop: Loop, files: Files) -> None:
        self._loop = loop
        self._files = files

    def upload(
        self,
        path: Path | str,
        *,
        name: str | None = None,
        strip_location: bool = False,
        at_once: int = 4,
        on_progress: OnBytes | None = None,
    ) -> File:
        return self._loop.run(
            self._files.upload(path, name=name, strip_location=strip_location, at_once=at_once, on_progress=on_progress)
        )

    def send(self, content: bytes, *, name: str, strip_location: bool = False) -> File:
        return self._loop.run(self._files.send(content, name=name, strip_location=strip_location))

    def begin(
        self,
        name: str,
        size: int,
        *,
        sha256: str | None = None,
        direct: bool = False,
        strip_location: bool = False,
        key: str | None = None,
    ) -> Upload:
        return self._loop.run(
            self._files.begin(name, size, sha256=sha256, direct=direct, strip_location=strip_location, key=key)
        )

    def get_upload(self, upload_id: str) -> Upload:
        return self._loop.run(self._files.get_upload(upload_id))

    def put_part(self, upload_id: str, number: int, content: bytes) -> None:
        self._loop.run(self._files.put_part(upload_id, number, content))

    def part_links(self, upload_id: str, numbers: Sequence[int]) -> dict[int, str]:
        return self._loop.run(self._files.part_links(upload_id, numbers))

    def complete(self, upload_id: str) -> File:
        return self._loop.run(self._files.complete(upload_id))

    def abort(self, upload_id: str) -> None:
        self._loop.run(self._files.abort(upload_id))

    def get(self, file_id: str) -> File:
        return self._loop.run(self._files.get(file_id))

    def list(
        self,
        *,
        media_type: str | None = None,
        name: str | None = None,
        sha256: str | None = None,
        user_id: str | None = None,
    ) -> Iterator[File]:
        return self._loop.iterate(self._files.list(media_type=media_type, name=name, sha256=sha256, user_id=user_id))

    def usage(self) -> StorageUse:
        return self._loop.run(self._files.usage())

    def download(self, file_id: str, path: Path | str, *, on_progress: OnBytes | None = None) -> File:
        return self._loop.run(self._files.download(file_id, path, on_progress=on_progress))

    def result(self, task_id: str) -> ResultFile:
        return self._loop.run(self._files.result(task_id))

    def download_result(self, task_id: str, path: Path | str, *, on_progress: OnBytes | None = None) -> ResultFile:
        return self._loop.run(self._files.download_result(task_id, path, on_progress=on_progress))

    def link(
        self, file_id: str, *, expires_in: timedelta | None = None, inline: bool = False, preview: bool = False
    ) -> Link:
        return self._loop.run(self._files.link(file_id, expires_in=expires_in, inline=inline, preview=preview))

    def delete(self, file_id: str) -> None:
        self._loop.run(self._files.delete(file_id))
