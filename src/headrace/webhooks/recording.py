"""Results of attempts, gathered for a few milliseconds and written together.

The first transaction writes the attempts and ends their leases. A second one records the health of endpoints: it locks
rows of endpoints, which others lock before rows of the queue. If the process dies in between, a failure is not counted.
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
from headrace.webhooks.store.health import EndpointOutcome
from headrace.webhooks.store.queue import Outcome

log = logs.get(__name__)

_MAX_BATCH = 500  # outcomes in one transaction
_RETRY_PAUSE_S = 0.5  # after a failed write


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
        """Write incoming results for ever, and retry failed writes: until the lease expires no other sender takes
        the delivery."""
        while True:
            batch = [await self._outcomes.get()]
            self._writing = True
            await asyncio.sleep(self._config.gather.total_seconds())
            while not self._outcomes.empty() and len(batch) < _MAX_BATCH:
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
                    return  # another sender takes it over and records it as lost
                for outcome in batch:
                    await self._write_surely([outcome])
                return
            else:
                break
            await asyncio.sleep(_RETRY_PAUSE_S)
        try:
            await self._act(batch)
        except HeadraceError as exc:  # the endpoint's next failure records it
            log.warning("webhooks.unnoted", error=exc.code)
        except Exception:
            log.exception("webhooks.unnoted")

    async def write(self, batch: Sequence[Outcome]) -> None:
        """Write a batch, then pause or disable endpoints as its results require."""
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
        outcomes = _endpoint_outcomes(batch, self._config.breaker_threshold)
        if not outcomes:
            return
        async with self._db.transaction() as tx:
            await health.record(tx, outcomes, threshold=self._config.breaker_threshold)
        failing = [each.endpoint_id for each in outcomes if not each.succeeded]
        if failing:
            async with self._db.transaction() as tx:
                for endpoint in await health.find_failing_too_long(tx, failing, limit=self._config.pause_after):
                    await automatic.pause_failing(tx, endpoint)
        for endpoint_id in dict.fromkeys(each.claimed.endpoint.id for each in batch if each.response_status == GONE):
            async with self._db.transaction() as tx:
                await automatic.disable_gone(tx, endpoint_id)


def _endpoint_outcomes(batch: Sequence[Outcome], threshold: int) -> list[EndpointOutcome]:
    """One entry for each endpoint whose health changes: a healthy one that succeeds again has none."""
    by_endpoint: dict[str, list[Outcome]] = {}
    for outcome in batch:
        by_endpoint.setdefault(outcome.claimed.endpoint.id, []).append(outcome)
    changed = []
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
        changed.append(EndpointOutcome(endpoint_id, succeeded, failures, _error(last), pause, after_pause))
    return changed


def _error(outcome: Outcome | None) -> str | None:
    if outcome is None:
        return None
    status = f"HTTP {outcome.response_status}" if outcome.response_status is not None else None
    return "; ".join(filter(None, (status, outcome.error))) or None
