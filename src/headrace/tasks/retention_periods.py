"""How long tasks are kept after their end, by type and by how they ended."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Literal

ENDS = ("SUCCEEDED", "FAILED", "CANCELED")
End = Literal["succeeded", "failed", "canceled"]
Kept = timedelta | Literal["forever"]
Retention = Kept | Mapping[End, Kept] | None


def seconds_by_status(retention: Any) -> dict[str, float | None] | None:
    """The stored form: seconds by status, null for no limit. ``ValueError`` describes a bad value."""
    if retention is None:
        return None
    if not isinstance(retention, Mapping):
        retention = {status.lower(): retention for status in ENDS}
    if not retention or not {str(status).upper() for status in retention} <= set(ENDS):
        raise ValueError('the keys are "succeeded", "failed" and "canceled"')
    return {str(status).upper(): _seconds(kept) for status, kept in retention.items()}


def _seconds(kept: Any) -> float | None:
    if kept == "forever":
        return None
    if not isinstance(kept, timedelta) or kept <= timedelta(0):
        raise ValueError('a positive timedelta, or "forever"')
    return kept.total_seconds()
