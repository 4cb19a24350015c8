"""Whoever joins is given what other packages have for them, in the transaction in which they join. ``accounts`` knows
none of those packages: the wiring hands it what to call (``assembly.newcomers``)."""

from collections.abc import Awaitable, Callable, Sequence

from headrace.database import Tx

Welcome = Callable[[Tx, str], Awaitable[None]]
"""(tx, user_id): it cannot commit, and where it fails nobody has joined."""


async def welcome(tx: Tx, welcomes: Sequence[Welcome], user_id: str) -> None:
    for give in welcomes:
        await give(tx, user_id)
