"""A lease held while a block runs: renewed in the background, and its loss raised in the block.

When it is lost, or might be lost, the block is canceled: a tenth of the TTL before others can take it, by this
machine's monotonic clock, counted from before the request.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Protocol

from headrace.errors import HeadraceError

RENEW_AFTER_RATIO = 1 / 3  # of its time
_RETRY_AFTER_RATIO = 1 / 20  # after a failed renewal
_SAFE_RATIO = 0.9


class Lease(Protocol):
    """A renewable lease. Both verbs raise ``lost`` when it is lost."""

    ttl: timedelta
    lost: type[HeadraceError]

    async def renew(self) -> None:
        """Extend it to its full TTL from now; any error other than ``lost`` means that there was no answer."""

    async def release(self) -> None:
        """Release it; without a connection it expires by itself, without an error."""

    def loss(self) -> HeadraceError:
        """The error to raise in the block when the TTL has expired."""


@asynccontextmanager
async def holding(lease: Lease, *, asked_at: float) -> AsyncIterator[None]:
    """Hold a lease requested at ``asked_at``, by the loop's clock, while the block runs, and release it at its end.

    The block's own errors propagate. A lost lease cancels the block and raises at its end. The block must not block the
    event loop for long, or the lease is not renewed.
    """
    scope = asyncio.timeout_at(asked_at + lease.ttl.total_seconds() * _SAFE_RATIO)
    keeping: asyncio.Task[None] | None = None
    try:
        async with scope:
            keeping = asyncio.create_task(_keep(lease, scope))
            yield
    except BaseException as exc:
        await _stop(keeping)
        if scope.expired() and isinstance(exc, TimeoutError):
            raise lease.loss() from None
        if not scope.expired():
            with suppress(lease.lost):  # the block's own error is raised
                await lease.release()
        raise
    await _stop(keeping)
    if scope.expired():  # just as the block ended
        raise lease.loss()
    await lease.release()


async def _keep(lease: Lease, scope: asyncio.Timeout) -> None:
    """Renew it, and move the end of the scope with it; end the scope at once when it is lost."""
    loop = asyncio.get_running_loop()
    whole = lease.ttl.total_seconds()
    pause = whole * RENEW_AFTER_RATIO
    while True:
        await asyncio.sleep(pause)
        asked_at = loop.time()
        try:
            await lease.renew()
        except lease.lost:
            _end_at(scope, asked_at)
            return
        except (HeadraceError, TimeoutError):
            pause = whole * _RETRY_AFTER_RATIO
        else:
            _end_at(scope, asked_at + whole * _SAFE_RATIO)
            pause = whole * RENEW_AFTER_RATIO


def _end_at(scope: asyncio.Timeout, when: float) -> None:
    if not scope.expired():  # otherwise the block is already being canceled
        scope.reschedule(when)


async def _stop(keeping: asyncio.Task[None] | None) -> None:
    if keeping is not None and not keeping.done():
        keeping.cancel()
        await asyncio.wait({keeping}, timeout=1)
