"""What accounts can be told; the wiring builds it from the settings."""

from dataclasses import dataclass, field
from datetime import timedelta

from headrace.cpus import available_cpus
from headrace.edge.limits import LimitConfig


@dataclass(frozen=True, slots=True)
class PasswordConfig:
    """Rules for new passwords, and what hashing one costs. The defaults are RFC 9106's second choice."""

    min_length: int = 10
    time_cost: int = 3
    memory_kib: int = 64 * 1024
    parallelism: int = 4
    # Each takes memory_kib: this many at once, and no more than so many waiting, bound what a flood of logins can use.
    at_once: int = field(default_factory=lambda: min(4, available_cpus()))
    waiting: int = 100


@dataclass(frozen=True, slots=True)
class SessionConfig:
    lifetime: timedelta = timedelta(days=30)
    idle_lifetime: timedelta = timedelta(days=7)
    # How exact last_seen_at and last_used_at are: a write for every request would cost more than the request.
    seen_every: timedelta = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class ThrottleConfig:
    """How failed logins slow further ones down."""

    free_failures: int = 5
    # An address may be a whole office behind one router: it gets this many times the free failures of an account.
    address_factor: int = 10
    block_first: timedelta = timedelta(seconds=1)
    block_max: timedelta = timedelta(minutes=5)
    forget_after: timedelta = timedelta(hours=1)
    # Where someone logged in within this time, a pause that others caused elsewhere does not hold them up.
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
class DeletionConfig:
    """How accounts are deleted."""

    # From the request until it begins: so long it can be undone.
    grace: timedelta = timedelta(days=7)
    # How long a process may be silent before another goes on; renewed with every batch.
    lease: timedelta = timedelta(minutes=1)
    # When something has to end by itself first, and when something failed.
    look_again: timedelta = timedelta(seconds=2)
    retry_after: timedelta = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class AccountsConfig:
    registration_open: bool = False
    # For one address. Each costs an Argon2 hash: at the rate of other requests one stranger could keep all cores busy.
    registration_limit: LimitConfig = field(default_factory=lambda: LimitConfig(per_minute=10, burst=30))
    passwords: PasswordConfig = field(default_factory=PasswordConfig)
    sessions: SessionConfig = SessionConfig()
    throttle: ThrottleConfig = ThrottleConfig()
    deletion: DeletionConfig = DeletionConfig()
    wechat: WeChatConfig | None = None
