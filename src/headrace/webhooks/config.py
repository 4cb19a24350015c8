"""Configuration of senders, made from the settings."""

from dataclasses import dataclass, field
from datetime import timedelta

RETRY_DELAYS = tuple(
    timedelta(seconds=seconds) for seconds in (5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400)
)


@dataclass(frozen=True, slots=True)
class RetrySchedule:
    """Delays between attempts. The default is that of Standard Webhooks: ten attempts in about 75 hours."""

    delays: tuple[timedelta, ...] = RETRY_DELAYS
    max_retry_after: timedelta = timedelta(hours=24)  # limit of a receiver's Retry-After


@dataclass(frozen=True, slots=True)
class SenderConfig:
    concurrency: int = 16  # concurrent requests to one endpoint
    requests: int = 500  # concurrent requests to all endpoints
    busy: int = 48  # with this many requests under way, each endpoint has at most two
    prefetch: int = 8  # leased deliveries per request under way
    batch: int = 500  # deliveries in one claim
    lease: timedelta = timedelta(seconds=90)
    margin: timedelta = timedelta(seconds=5)  # part of the lease that is reserved for recording
    poll_every: timedelta = timedelta(seconds=1)
    take_over_every: timedelta = timedelta(seconds=5)
    gather: timedelta = timedelta(milliseconds=5)  # how long results are gathered into one write
    shutdown: timedelta = timedelta(seconds=10)
    breaker_threshold: int = 10  # consecutive failures that open the breaker
    max_losses: int = 20
    pause_after: timedelta = timedelta(days=5)
    secret_overlap: timedelta = timedelta(hours=24)
    listen: bool = True
    retries: RetrySchedule = field(default_factory=RetrySchedule)
