"""Configuration of the connection to the broker."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class NatsConfig:
    url: str = field(repr=False)  # may hold a password
    events: Sequence[str] = ("*",)
    subject: str = "headrace"
    stream: str = "HEADRACE"
    batch: int = 500  # messages in one claim
    lease: timedelta = timedelta(seconds=30)
    ack_within: timedelta = timedelta(seconds=10)
    poll_every: timedelta = timedelta(seconds=1)
    max_tries: int = 20  # of a message that the broker refuses
    listen: bool = True
