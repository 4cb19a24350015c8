"""Hooks of other packages for new users, called in the transaction that creates the account. ``accounts`` does not know
these packages: the wiring passes the hooks (``assembly.newcomers``)."""

from collections.abc import Awaitable, Callable, Sequence

from headrace.database import Tx

Welcome = Callable[[Tx, str], Awaitable[None]]
"""(tx, user_id): it cannot commit, and a failure rolls the registration back."""


async def welcome(tx: Tx, welcomes: Sequence[Welcome], user_id: str) -> None:
    for give in welcomes:
        await give(tx, user_id)
