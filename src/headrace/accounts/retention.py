"""Retention of accounts: old login failures, ended sessions, expired links."""

from collections.abc import Sequence
from functools import partial

from headrace.accounts.config import ThrottleConfig
from headrace.accounts.password_reset import forget_links
from headrace.accounts.sessions import forget_sessions
from headrace.accounts.throttle import forget_failures
from headrace.database import Tx
from headrace.purging import Purge


def purges(throttle: ThrottleConfig) -> Sequence[Purge]:
    return (
        Purge("login_failures", partial(_forget_failures, throttle)),
        Purge("sessions", _forget_sessions),
        Purge("account_links", _forget_links),
    )


async def _forget_failures(throttle: ThrottleConfig, tx: Tx, limit: int) -> int:
    return await forget_failures(tx, throttle, limit=limit)


async def _forget_sessions(tx: Tx, limit: int) -> int:
    return await forget_sessions(tx, limit=limit)


async def _forget_links(tx: Tx, limit: int) -> int:
    return await forget_links(tx, limit=limit)
