"""What storage is told, and what it tells."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path


@dataclass(frozen=True, slots=True)
class StorageConfig:
    """``url`` is ``file:///folder`` or ``s3://bucket/prefix``; ``options`` tell the S3 client its endpoint and keys."""

    url: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout: timedelta = timedelta(seconds=30)
    retry_for: timedelta = timedelta(seconds=15)  # obstore's own limit is three minutes, and a user waits meanwhile


def storage_config(url: str, options: Mapping[str, str] | None = None) -> StorageConfig:
    """Of a folder, absolute or from the current one, or of ``s3://bucket/prefix``."""
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
