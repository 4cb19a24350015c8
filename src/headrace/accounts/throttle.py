"""Throttles password guessing without locking the owner out.

Two subjects are counted: the account (by the typed name, whether it exists or not) and the address. After
some free failures each further one begins a pause, twice as long as the one before, up to a cap. An attempt is counted
*before* its password is checked and uncounted if it was right, so a thousand guesses sent at once are not a thousand
checks. Counts live in the database: they hold for all processes and survive restarts.

An attacker can keep an account paused from elsewhere. So in networks of recent logins the account is counted separately
(``known:192.0.2.7:ada``): pauses caused elsewhere do not apply there, and guessing there has its own limit. The typed
name always comes last in a subject, after a prefix of its kind: so no name can produce another subject.
"""

from dataclasses import dataclass
from datetime import datetime
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from headrace.accounts.config import ThrottleConfig
from headrace.accounts.errors import LoginPaused
from headrace.accounts.store import throttles as store
from headrace.database import Tx

Network = IPv4Network | IPv6Network

_MAX_NAME_LENGTH = 64


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt that may proceed to the password check."""

    account: store.Counted
    address: store.Counted

    @property
    def pause_seconds(self) -> int | None:
        """The pause that begins if it fails."""
        pauses = [counted.pause for counted in (self.account, self.address) if counted.pause is not None]
        return round(max(pauses).total_seconds()) if pauses else None


def network_of(client_ip: str | None) -> Network | None:
    """The network of an address: for IPv6 the /64, which is the usual size of one customer."""
    try:
        address = ip_address((client_ip or "").partition("%")[0])
    except ValueError:
        return None
    mapped = getattr(address, "ipv4_mapped", None) or address
    return ip_network((mapped, 64 if mapped.version == 6 else 32), strict=False)


def login_subject(name: str, network: Network | None, *, known_here: bool) -> str:
    """The subject of a login to this account from this network."""
    return (
        f"known:{_network_key(network)}:{name[:_MAX_NAME_LENGTH]}"
        if known_here
        else f"account:{name[:_MAX_NAME_LENGTH]}"
    )


def change_subject(user_id: str) -> str:
    """The subject of password changes: separate from logins, where strangers could exhaust the tries."""
    return f"change:{user_id}"


def _network_key(network: Network | None) -> str:
    return "unknown" if network is None else str(network).removesuffix("/32")


async def reserve(
    tx: Tx, config: ThrottleConfig, account: str, network: Network | None, *, now: datetime | None = None
) -> Attempt:
    """Count an attempt for the account's subject and for the address, or raise ``LoginPaused``.

    Commit it before checking the password. When it raises, roll back: the count of one subject must not stay if the
    other is paused.
    """
    subjects = {
        account: config.free_failures,
        f"address:{_network_key(network)}": config.free_failures * config.address_factor,
    }
    # Reading first keeps a flood off the row locks. The fixed order prevents deadlocks.
    await _refuse_paused(tx, config, subjects, now)
    counted = []
    for subject, free in subjects.items():
        one = await store.count_attempt(tx, subject, config, free=free, now=now)
        if one is None:  # paused by a concurrent attempt
            await _refuse_paused(tx, config, subjects, now)
            raise LoginPaused(retry_after=config.block_first)
        counted.append(one)
    return Attempt(*counted)


async def _refuse_paused(tx: Tx, config: ThrottleConfig, subjects: dict[str, int], now: datetime | None) -> None:
    pause = await store.find_pause(tx, list(subjects), now=now)
    if pause is not None:
        raise LoginPaused(retry_after=min(pause, config.block_max))


async def succeed(tx: Tx, attempt: Attempt) -> None:
    """Clear the account's failures after a correct password. For the address only this attempt is uncounted: otherwise
    an attacker with an own account could log in between guesses."""
    await store.clear(tx, attempt.account.subject)
    await store.take_back(tx, attempt.address)


async def take_back(tx: Tx, attempt: Attempt) -> None:
    """Uncount an attempt whose password was not checked."""
    await store.take_back(tx, attempt.account)
    await store.take_back(tx, attempt.address)


async def forgive(tx: Tx, name: str) -> None:
    """Lift an account's pause: its owner was authenticated in another way."""
    await store.clear(tx, login_subject(name, None, known_here=False))


async def forget_failures(tx: Tx, config: ThrottleConfig, *, limit: int, now: datetime | None = None) -> int:
    """Delete at most ``limit`` expired counts; returns their number. For maintenance."""
    return await store.forget(tx, older_than=config.forget_after, limit=limit, now=now)
