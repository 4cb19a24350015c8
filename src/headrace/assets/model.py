"""Files, uploads, parts and results as they are stored."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, NewType

AssetId = NewType("AssetId", str)
UploadId = NewType("UploadId", str)

LONGEST_NAME = 255


class Kind(StrEnum):
    """What bytes are for: the first part of their name in storage, and the documents' buckets."""

    MEDIA = "media"  # what users bring
    RESULT = "result"  # what tasks make
    PREVIEW = "preview"
    STEP = "step"  # what a task's steps hand to each other


class AssetStatus(StrEnum):
    UPLOADED = "UPLOADED"
    DELETED = "DELETED"


class UploadMethod(StrEnum):
    STREAM = "STREAM"  # in one request
    PARTS = "PARTS"  # in parts to the API
    DIRECT = "DIRECT"  # in parts to the storage


class UploadStatus(StrEnum):
    """OPEN → COMPLETING → COMPLETED; back to OPEN when completing failed for now, ABORTED for good."""

    OPEN = "OPEN"
    COMPLETING = "COMPLETING"
    COMPLETED = "COMPLETED"
    ABORTED = "ABORTED"


@dataclass(frozen=True, slots=True)
class Asset:
    id: AssetId
    user_id: str
    media_type: str
    origin_name: str
    mime_type: str
    size_bytes: int
    sha256: str
    storage_bucket: str
    storage_key: str
    status: AssetStatus
    meta_json: Mapping[str, Any] | None
    expire_at: datetime | None
    preview_key: str | None
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None

    @property
    def object_name(self) -> str:
        return object_name(self.storage_bucket, self.storage_key)

    @property
    def slides_key(self) -> str:
        return slides_key_of(media_key(self.user_id, self.id))


@dataclass(frozen=True, slots=True)
class Upload:
    id: UploadId
    user_id: str
    asset_id: AssetId
    method: UploadMethod
    origin_name: str
    size_bytes: int
    sha256: str | None
    part_bytes: int | None
    storage_bucket: str
    storage_key: str
    storage_upload_id: str | None
    strip_location: bool
    status: UploadStatus
    error_code: str | None
    expire_at: datetime
    created_at: datetime
    updated_at: datetime

    @property
    def object_name(self) -> str:
        return object_name(self.storage_bucket, self.storage_key)

    @property
    def multipart_name(self) -> str:
        """Where the storage puts the parts together. Of a direct upload it is not the file's own name: some storages
        (Swift) let a link for a part write after the parts were put together."""
        return f"{self.object_name}.parts" if self.method is UploadMethod.DIRECT else self.object_name

    @property
    def parts(self) -> int:
        """How many there will be."""
        return -(-self.size_bytes // self.part_bytes) if self.part_bytes else 0

    def size_of_part(self, number: int) -> int:
        assert self.part_bytes is not None
        return min(self.part_bytes, self.size_bytes - (number - 1) * self.part_bytes)


@dataclass(frozen=True, slots=True)
class Part:
    number: int
    size_bytes: int
    sha256: str
    etag: str | None


@dataclass(frozen=True, slots=True)
class Received:
    """Bytes that have arrived, in a file of ours."""

    path: Path
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Result:
    """The files that a task has made."""

    task_id: str
    user_id: str
    result_bucket: str
    result_key: str
    file_name: str | None
    mime_type: str | None
    size_bytes: int | None
    sha256: str | None
    preview_bucket: str | None
    preview_key: str | None
    preview_mime_type: str | None
    preview_size_bytes: int | None
    metrics_json: Mapping[str, Any] | None
    comparison_key: str | None
    comparison_size_bytes: int | None
    expire_at: datetime | None
    created_at: datetime

    @property
    def slides_key(self) -> str:
        return slides_key_of(self.result_key)


SHARED = "#"


def object_name(bucket: str, key: str) -> str:
    """The name in storage. Rows that share bytes have what makes their keys differ behind a ``#``."""
    return f"{bucket}/{key.partition(SHARED)[0]}"


def shared_key(key: str, asset_id: str) -> str:
    """The key of one more row for the bytes of another: 002 says that keys are unique."""
    return f"{key.partition(SHARED)[0]}{SHARED}{asset_id}"


def media_key(user_id: str, asset_id: str) -> str:
    return f"{user_id}/{asset_id}"


def slides_key_of(key: str) -> str:
    """The name of the slides' PDF among the previews, once it was drawn."""
    return f"{key}.slides.pdf"


def clean_name(name: str) -> str:
    """A file's name as it is kept: its last part, without what no file name and no header can hold."""
    last = name.replace("\\", "/").rpartition("/")[2]
    kept = "".join(each for each in last if each.isprintable()).strip().strip(".")
    return kept[:LONGEST_NAME] or "file"
