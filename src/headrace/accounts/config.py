"""Configuration of accounts, built from the settings."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal

from headrace.cpus import available_cpus
from headrace.edge.limits import LimitConfig


@dataclass(frozen=True, slots=True)
class PasswordConfig:
    """Rules for new passwords, and parameters of hashing. The defaults are RFC 9106's second choice."""

    min_length: int = 10
    time_cost: int = 3
    memory_kib: int = 64 * 1024
    parallelism: int = 4
    # Each hash takes memory_kib: limits on running and waiting hashes bound the memory of a flood of logins.
    at_once: int = field(default_factory=lambda: min(4, available_cpus()))
    waiting: int = 100


@dataclass(frozen=True, slots=True)
class SessionConfig:
    lifetime: timedelta = timedelta(days=30)
    idle_lifetime: timedelta = timedelta(days=7)
    # Precision of last_seen_at and last_used_at: a write for every request would cost more than the request.
    seen_every: timedelta = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class ThrottleConfig:
    """Throttling of logins after failures."""

    free_failures: int = 5
    # An address may be shared by an office: it has this many times the free failures of an account.
    address_factor: int = 10
    block_first: timedelta = timedelta(seconds=1)
    block_max: timedelta = timedelta(minutes=5)
    forget_after: timedelta = timedelta(hours=1)
    # After a login from an address within this time, pauses caused from elsewhere do not apply there.
    known_for: timedelta = timedelta(days=30)

    def __post_init__(self) -> None:
        if self.free_failures < 1 or self.block_first > self.block_max:
            raise ValueError("at least one failure is free, and the first pause is not longer than the longest")


@dataclass(frozen=True, slots=True)
class WeChatConfig:
    app_id: str
    app_secret: str = field(repr=False)
    base_url: str = "https://api.weixin.qq.com"
    timeout: timedelta = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class MailConfig:
    """The SMTP server, and the address of the console that links lead to."""

    host: str
    sender: str
    console_url: str
    port: int = 587
    security: Literal["starttls", "tls", "none"] = "starttls"
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    timeout: timedelta = timedelta(seconds=15)
    retry_delays: tuple[timedelta, ...] = (timedelta(seconds=5), timedelta(seconds=30))
    max_waiting: int = 100


@dataclass(frozen=True, slots=True)
class LinkConfig:
    """Links that are sent by e-mail."""

    lifetime: timedelta = timedelta(minutes=30)
    # For one user; more requests send nothing.
    max_per_hour: int = 3
    # Per address of the client, before anything is looked up.
    limit: LimitConfig = field(default_factory=lambda: LimitConfig(per_minute=2, burst=10))


@dataclass(frozen=True, slots=True)
class DeletionConfig:
    """How accounts are deleted."""

    # From the request to its start, while it can be undone.
    grace: timedelta = timedelta(days=7)
    # Lease of the process that carries it out; renewed with every batch.
    lease: timedelta = timedelta(minutes=1)
    # Pause while something must end first, and after a failure.
    look_again: timedelta = timedelta(seconds=2)
    retry_after: timedelta = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class AccountsConfig:
    registration_open: bool = False
    # Per address. Each costs an Argon2 hash: at the rate of other requests one client could occupy all cores.
    registration_limit: LimitConfig = field(default_factory=lambda: LimitConfig(per_minute=10, burst=30))
    passwords: PasswordConfig = field(default_factory=PasswordConfig)
    sessions: SessionConfig = SessionConfig()
    throttle: ThrottleConfig = ThrottleConfig()
    deletion: DeletionConfig = DeletionConfig()
    links: LinkConfig = field(default_factory=LinkConfig)
    mail: MailConfig | None = None
    wechat: WeChatConfig | None = None
