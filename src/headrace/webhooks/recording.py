"""Results of attempts, gathered for a few milliseconds and written together.

The first transaction writes the attempts and ends their leases. How endpoints fared is a second one: it locks rows of
endpoints, which others lock before rows of the queue. If the process dies in between, a failure is not counted.
"""

import asyncio
from collections.abc import Sequence

from headrace import logs
from headrace.database import Database
from headrace.errors import HeadraceError
from headrace.webhooks import automatic
from headrace.webhooks.config import SenderConfig
from headrace.webhooks.outcomes import GONE
from headrace.webhooks.store import health, queue
from headrace.webhooks.store.health import Fared
from headrace.webhooks.store.queue import Outcome

log = logs.get(__name__)

_MOST = 500  # in one transaction
_PAUSE_S = 0.5  # when the database does not take them


class Recorder:
    def __init__(self, db: Database, config: SenderConfig) -> None:
        self._db = db
        self._config = config
        self._outcomes: asyncio.Queue[Outcome] = asyncio.Queue()
        self._writing = False

    def add(self, outcome: Outcome) -> None:
        self._outcomes.put_nowait(outcome)

    @property
    def is_idle(self) -> bool:
        return self._outcomes.empty() and not self._writing

    async def run(self) -> None:
        """Write what comes in, for ever. What the database does not take now is offered again: until the lease is
        over nobody else sends it."""
        while True:
            batch = [await self._outcomes.get()]
            self._writing = True
            await asyncio.sleep(self._config.gather.total_seconds())
            while not self._outcomes.empty() and len(batch) < _MOST:
                batch.append(self._outcomes.get_nowait())
            await self._write_surely(batch)
            self._writing = False

    async def _write_surely(self, batch: Sequence[Outcome]) -> None:
        while True:
            try:
                await self._record(batch)
            except HeadraceError as exc:
                log.warning("webhooks.unrecorded", error=exc.code, outcomes=len(batch))
            except Exception:
                if len(batch) == 1:
                    log.exception("webhooks.unrecorded", delivery_id=batch[0].claimed.delivery_id)
                    return  # it will be taken over, and is on record as lost
                for outcome in batch:
                    await self._write_surely([outcome])
                return
            else:
                break
            await asyncio.sleep(_PAUSE_S)
        try:
            await self._act(batch)
        except HeadraceError as exc:  # the next failure of the endpoint will say the same
            log.warning("webhooks.unnoted", error=exc.code)
        except Exception:
            log.exception("webhooks.unnoted")

    async def write(self, batch: Sequence[Outcome]) -> None:
        """Write these, and act on what they say of their endpoints."""
        await self._record(batch)
        await self._act(batch)

    async def _record(self, batch: Sequence[Outcome]) -> None:
        async with self._db.transaction() as tx:
            held = await queue.record(tx, batch)
            if late := [outcome for outcome in batch if outcome.claimed.id not in held]:
                await queue.record_late(tx, late)
        for outcome in late:
            log.warning("webhooks.late", delivery_id=outcome.claimed.delivery_id)

    async def _act(self, batch: Sequence[Outcome]) -> None:
        fared = _fared(batch, self._config.breaker_threshold)
        if not fared:
            return
        async with self._db.transaction() as tx:
            await health.note(tx, fared, threshold=self._config.breaker_threshold)
        failing = [each.endpoint_id for each in fared if not each.succeeded]
        if failing:
            async with self._db.transaction() as tx:
                for endpoint in await health.find_failing_too_long(tx, failing, limit=self._config.pause_after):
                    await automatic.pause_failing(tx, endpoint)
        for endpoint_id in dict.fromkeys(each.claimed.endpoint.id for each in batch if each.response_status == GONE):
            async with self._db.transaction() as tx:
                await automatic.disable_gone(tx, endpoint_id)


def _fared(batch: Sequence[Outcome], threshold: int) -> list[Fared]:
    """What is worth writing of each endpoint: nothing of one that did well before, too."""
    by_endpoint: dict[str, list[Outcome]] = {}
    for outcome in batch:
        by_endpoint.setdefault(outcome.claimed.endpoint.id, []).append(outcome)
    fared = []
    for endpoint_id, outcomes in sorted(by_endpoint.items()):
        succeeded = any(each.is_success for each in outcomes)
        failures, after_pause = 0, False
        for each in outcomes:
            failures = 0 if each.is_success else failures + 1
            after_pause = not each.is_success and (after_pause or each.claimed.endpoint_failures >= threshold)
        was_well = all(
            each.claimed.endpoint_failures == 0 and not each.claimed.endpoint.failing_since for each in outcomes
        )
        if succeeded and not failures and was_well:
            continue
        last = next((each for each in reversed(outcomes) if not each.is_success), None)
        pause = max((each.pause for each in outcomes if each.pause is not None), default=None)
        fared.append(Fared(endpoint_id, succeeded, failures, _error(last), pause, after_pause))
    return fared


def _error(outcome: Outcome | None) -> str | None:
    if outcome is None:
        return None
    status = f"HTTP {outcome.response_status}" if outcome.response_status is not None else None
    return "; ".join(filter(None, (status, outcome.error))) or None
