"""Settings of files."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal

from headrace.assets.inspection.model import FileLimits


@dataclass(frozen=True, slots=True)
class FileConfig:
    """Limits, retention and links of files."""

    limits: FileLimits = field(default_factory=FileLimits)
    stored_bytes: int | None = 20 * 1024**3  # of one user; None: no limit
    keep_originals: timedelta | None = timedelta(days=7)
    keep_results: timedelta | None = timedelta(days=30)
    upload_lifetime: timedelta = timedelta(hours=24)  # until an incomplete upload is abandoned
    part_bytes: int = 8 * 1024 * 1024
    link_lifetime: timedelta = timedelta(hours=1)
    links: Literal["storage", "api"] = "storage"
    preview_side: int = 512
    other_types: frozenset[str] = frozenset()  # MIME types accepted besides media; see other_types.py
    stalled_for: timedelta = timedelta(seconds=30)  # how long an upload waits for its next byte

    def __post_init__(self) -> None:
        if self.part_bytes < SMALLEST_PART:
            raise ValueError("a part has at least 5 MiB: S3 takes no smaller ones but the last")


SMALLEST_PART = 5 * 1024 * 1024
MAX_PARTS = 10_000
MAX_LINK = timedelta(days=7)  # S3 allows no more
