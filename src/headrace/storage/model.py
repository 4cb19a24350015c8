"""Types of file storage."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path


@dataclass(frozen=True, slots=True)
class StorageConfig:
    """``url`` is ``file:///folder`` or ``s3://bucket/prefix``; ``options`` are endpoint and keys of the S3 client."""

    url: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout: timedelta = timedelta(seconds=30)
    retry_for: timedelta = timedelta(seconds=15)  # obstore's default is three minutes, too long for a waiting user


def storage_config(url: str, options: Mapping[str, str] | None = None) -> StorageConfig:
    """The configuration for a folder, absolute or relative, or for ``s3://bucket/prefix``."""
    if "://" not in url:
        url = f"file://{Path(url).resolve()}"
    return StorageConfig(url, options or {})


@dataclass(frozen=True, slots=True)
class StoredObject:
    """One file in storage."""

    name: str
    size: int
    modified_at: datetime


@dataclass(frozen=True, slots=True)
class StoredPart:
    """One part of a file that is being uploaded in parts."""

    number: int
    size: int
    etag: str
