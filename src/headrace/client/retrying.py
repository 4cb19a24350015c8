"""Retry policy of requests."""

import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

import httpx2

# The request was not executed, and may succeed later.
_NOT_EXECUTED = frozenset({429, 503})
# A proxy lost the answer: the request may have been executed.
_UNCERTAIN = frozenset({502, 504})


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Pauses that double from ``first`` to ``cap``, with jitter. The server may ask for more, up to ``patience``."""

    retries: int = 5
    first: timedelta = timedelta(milliseconds=200)
    cap: timedelta = timedelta(seconds=10)
    patience: timedelta = timedelta(seconds=60)

    def pause(self, attempt: int, asked: timedelta | None) -> float | None:
        """Seconds to wait before attempt ``attempt + 1`` (they count from 0); None to give up."""
        if attempt >= self.retries or (asked is not None and asked > self.patience):
            return None
        grown: float = min(self.first.total_seconds() * 2 ** min(attempt, 32), self.cap.total_seconds())
        jittered = grown * random.uniform(0.5, 1.0)  # noqa: S311 - spreads load, guards nothing
        return max(jittered, asked.total_seconds()) if asked is not None else jittered


def may_repeat(error: httpx2.TransportError, *, safe: bool) -> bool:
    """Whether a broken request may be repeated: if it was not sent, or if a repetition is harmless."""
    never_sent = isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout)
    return never_sent or (safe and not isinstance(error, httpx2.UnsupportedProtocol))


def wants_repeat(response: httpx2.Response, code: str | None, *, safe: bool) -> bool:
    """Whether a later repetition may succeed."""
    if code == "idempotency_in_progress":  # the first request with our key still runs: we will get its answer
        return True
    return response.status_code in _NOT_EXECUTED or (safe and response.status_code in _UNCERTAIN)


def retry_after(response: httpx2.Response) -> timedelta | None:
    """Retry-After as seconds, from a number or a date."""
    text = response.headers.get("Retry-After")
    if text is None:
        return None
    try:
        return timedelta(seconds=int(text))
    except ValueError:
        pass
    try:
        until = parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(timedelta(0), until - datetime.now(UTC))
