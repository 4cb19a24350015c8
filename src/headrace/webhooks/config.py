"""What senders are told by the settings."""

from dataclasses import dataclass, field
from datetime import timedelta

RETRY_DELAYS = tuple(
    timedelta(seconds=seconds) for seconds in (5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400)
)


@dataclass(frozen=True, slots=True)
class RetrySchedule:
    """When a delivery that failed is sent again. As Standard Webhooks has it: about 75 hours for ten attempts."""

    delays: tuple[timedelta, ...] = RETRY_DELAYS
    longest_wish: timedelta = timedelta(hours=24)  # of a receiver's Retry-After


@dataclass(frozen=True, slots=True)
class SenderConfig:
    concurrency: int = 16  # requests to one endpoint at once
    requests: int = 500  # to all of them
    busy: int = 48  # from here on an endpoint has two at the most
    prefetch: int = 8  # times as many as are under way are leased ahead
    batch: int = 500  # in one claim
    lease: timedelta = timedelta(seconds=90)
    margin: timedelta = timedelta(seconds=5)  # of the lease, for recording
    poll_every: timedelta = timedelta(seconds=1)
    take_over_every: timedelta = timedelta(seconds=5)
    gather: timedelta = timedelta(milliseconds=5)  # results, before they are written
    shutdown: timedelta = timedelta(seconds=10)
    breaker_threshold: int = 10  # failures in a row
    most_losses: int = 20
    pause_after: timedelta = timedelta(days=5)
    secret_overlap: timedelta = timedelta(hours=24)
    listen: bool = True
    retries: RetrySchedule = field(default_factory=RetrySchedule)
