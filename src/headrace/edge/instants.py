"""Timestamps in requests: with a zone, and within the range that can be stored."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime


def _in_utc(at: datetime) -> datetime:
    try:
        return at.astimezone(UTC)
    except OverflowError:
        raise ValueError("this is before the first or after the last year that can be stored") from None


Instant = Annotated[AwareDatetime, AfterValidator(_in_utc)]
