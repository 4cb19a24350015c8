"""Slows down whoever guesses passwords, without locking the owner out.

Two subjects are counted: the account (by the name that was typed, whether anyone has it or not) and the address. After
some free failures each further one begins a pause, twice as long as the one before, up to a cap. An attempt is counted
*before* its password is checked and uncounted if it was right, so a thousand guesses sent at once are not a thousand
checks. Counts live in the database: they hold for all processes and survive restarts.

An attacker can keep an account paused from elsewhere. So where its owner logged in lately, the account is counted apart
(``known:192.0.2.7:ada``): pauses that others cause do not reach there, and guessing there has a limit of its own. What
was typed always comes last in a subject, after a prefix of its kind: no name can be typed that is another's subject.
"""

from dataclasses import dataclass
from datetime import datetime
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from headrace.accounts.config import ThrottleConfig
from headrace.accounts.errors import LoginPaused
from headrace.accounts.store import throttles as store
from headrace.database import Tx

Network = IPv4Network | IPv6Network

_LONGEST_NAME = 64


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt that may go on to the password check."""

    account: store.Counted
    address: store.Counted

    @property
    def pause_seconds(self) -> int | None:
        """The pause that begins if it fails."""
        pauses = [counted.pause for counted in (self.account, self.address) if counted.pause is not None]
        return round(max(pauses).total_seconds()) if pauses else None


def network_of(client_ip: str | None) -> Network | None:
    """Whom an address stands for: of IPv6 the /64, since that is what one customer gets."""
    try:
        address = ip_address((client_ip or "").partition("%")[0])
    except ValueError:
        return None
    mapped = getattr(address, "ipv4_mapped", None) or address
    return ip_network((mapped, 64 if mapped.version == 6 else 32), strict=False)


def login_subject(name: str, network: Network | None, *, known_here: bool) -> str:
    """Under what a login to this account from this network is counted."""
    return f"known:{_place(network)}:{name[:_LONGEST_NAME]}" if known_here else f"account:{name[:_LONGEST_NAME]}"


def change_subject(user_id: str) -> str:
    """Under what changes of a password are counted: apart from logins, where strangers could use up the tries."""
    return f"change:{user_id}"


def _place(network: Network | None) -> str:
    return "unknown" if network is None else str(network).removesuffix("/32")


async def reserve(
    tx: Tx, config: ThrottleConfig, account: str, network: Network | None, *, now: datetime | None = None
) -> Attempt:
    """Count an attempt for the account's subject and for the address, or raise ``LoginPaused``.

    Commit it before checking the password. When it raises, the transaction must not be committed: what was counted for
    one subject is not to stay if the other is paused.
    """
    subjects = {
        account: config.free_failures,
        f"address:{_place(network)}": config.free_failures * config.address_factor,
    }
    # Reading first keeps a flood off the rows' locks. In this order, always: so no two attempts wait for each other.
    await _refuse_paused(tx, config, subjects, now)
    counted = []
    for subject, free in subjects.items():
        one = await store.count_attempt(tx, subject, config, free=free, now=now)
        if one is None:  # others were faster
            await _refuse_paused(tx, config, subjects, now)
            raise LoginPaused(retry_after=config.block_first)
        counted.append(one)
    return Attempt(*counted)


async def _refuse_paused(tx: Tx, config: ThrottleConfig, subjects: dict[str, int], now: datetime | None) -> None:
    pause = await store.find_pause(tx, list(subjects), now=now)
    if pause is not None:
        raise LoginPaused(retry_after=min(pause, config.block_max))


async def succeed(tx: Tx, attempt: Attempt) -> None:
    """The password was right: the account starts afresh. The address does not, or an attacker who has an account of
    their own could log in between guesses; only this attempt is uncounted there."""
    await store.clear(tx, attempt.account.subject)
    await store.take_back(tx, attempt.address)


async def take_back(tx: Tx, attempt: Attempt) -> None:
    """The password was not checked after all."""
    await store.take_back(tx, attempt.account)
    await store.take_back(tx, attempt.address)


async def forgive(tx: Tx, name: str) -> None:
    """Lift the pause that strangers caused for this account: its owner has proved otherwise who they are."""
    await store.clear(tx, login_subject(name, None, known_here=False))


async def forget_failures(tx: Tx, config: ThrottleConfig, *, limit: int, now: datetime | None = None) -> int:
    """Remove counts that are too old to matter, up to ``limit``; says how many. For the reaper of old rows."""
    return await store.forget(tx, older_than=config.forget_after, limit=limit, now=now)
