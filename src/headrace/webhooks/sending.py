"""The sender: claims due deliveries, sends them, records the results. Any number of senders share the work.

No request happens inside a transaction: the claim is one, the result another, and a lease holds the row in between.
Each endpoint has its own lane with its own pace, so that hanging endpoints do not slow the others.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta

from headrace import logs
from headrace.database import Database
from headrace.loops import FailuresLogged, Waker, pause, repeat
from headrace.vault import Keyring, SecretUnreadable
from headrace.webhooks import secrets
from headrace.webhooks.config import SenderConfig
from headrace.webhooks.http.client import HttpClient, Reply
from headrace.webhooks.http.targets import Target, UrlRefused, parse_target
from headrace.webhooks.model import Endpoint, networks_of
from headrace.webhooks.outcomes import decide
from headrace.webhooks.pace import FIRST, Pace
from headrace.webhooks.recording import Recorder
from headrace.webhooks.signing import Signer
from headrace.webhooks.store import queue
from headrace.webhooks.store.fan_out import CHANNEL
from headrace.webhooks.store.queue import Claimed

log = logs.get(__name__)

_CLAIM_PAUSE_S = 0.02  # between two claims under load
_MAX_CACHED_SIGNERS = 2000  # that are kept
_MAX_LANES = 10_000


@dataclass(slots=True)
class _Lane:
    pace: Pace
    waiting: deque[tuple[Claimed, float]] = field(default_factory=deque)
    running: int = 0


class Sender:
    def __init__(self, db: Database, client: HttpClient, keyring: Keyring, config: SenderConfig | None = None) -> None:
        self._db = db
        self._client = client
        self._keyring = keyring
        self._config = config or SenderConfig()
        self._recorder = Recorder(db, self._config)
        self._lanes: dict[str, _Lane] = {}
        self._signers: dict[tuple[str, str, str | None], Signer] = {}
        self._running = 0
        self._refused: OrderedDict[str, None] = OrderedDict()  # lanes that wait for the sender's own limit
        self._tasks: set[asyncio.Task[None]] = set()
        self._waker = Waker()
        self.sent = 0

    def wake(self) -> None:
        """Claim now: there may be due deliveries."""
        self._waker.wake()

    async def run(self, stop: asyncio.Event) -> None:
        """Send until ``stop``; then finish the requests under way within a limit and release the rest."""
        every = self._config.take_over_every
        loops = [
            asyncio.create_task(self._recorder.run()),
            asyncio.create_task(repeat(self.take_over, every, failed="webhooks.take_over_failed")),
        ]
        if self._config.listen:
            loops.append(asyncio.create_task(self._waker.listen(self._db, CHANNEL)))
        try:
            await self._claim_until(stop)
            await self._drain()
        finally:
            for each in (*loops, *self._tasks):
                each.cancel()
            await asyncio.gather(*loops, *self._tasks, return_exceptions=True)

    async def take_over(self) -> int:
        """Release deliveries with expired leases; returns their number."""
        async with self._db.transaction() as tx:
            taken = await queue.take_over(tx, max_losses=self._config.max_losses)
        if taken:
            log.warning("webhooks.taken_over", deliveries=taken)
            self._waker.wake()
        return taken

    async def run_once(self) -> int:
        """Send and record all due deliveries; returns their number. For tests and commands."""
        claimed = await self._claim(self._config.batch)
        outcomes = await asyncio.gather(*(self._attempt(each) for each in claimed))
        if outcomes:
            await self._recorder.write(outcomes)
        return len(outcomes)

    # -- claiming

    async def _claim_until(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            if await self._claim_safely():
                await pause(_CLAIM_PAUSE_S, stop=stop)
            else:
                await self._waker.wait(self._config.poll_every.total_seconds(), stop=stop)

    async def _claim_safely(self) -> int:
        room = self._config.requests - self._running
        if room <= 0:
            return 1  # soon
        self._waker.clear()
        claimed: list[Claimed] = []
        with FailuresLogged("webhooks.unclaimed"):
            claimed = await self._claim(min(self._config.batch, room * self._config.prefetch))
        now = asyncio.get_running_loop().time()
        for each in claimed:
            lane = self._lane(each.endpoint.id)
            lane.waiting.append((each, now))
        for endpoint_id in {each.endpoint.id for each in claimed}:
            self._start(endpoint_id)
        return len(claimed)

    async def _claim(self, limit: int) -> list[Claimed]:
        config = self._config
        async with self._db.transaction() as tx:
            return await queue.claim(
                tx,
                rooms=self._rooms(),
                new_room=Pace(config.concurrency).limit * config.prefetch,
                limit=limit,
                threshold=config.breaker_threshold,
                lease=config.lease,
                secret_overlap=config.secret_overlap,
            )

    def _rooms(self) -> Mapping[str, int]:
        """The free capacity of each known lane."""
        ahead = self._config.prefetch
        return {
            endpoint_id: max(0, lane.pace.limit * ahead - lane.running - len(lane.waiting))
            for endpoint_id, lane in self._lanes.items()
        }

    def _lane(self, endpoint_id: str) -> _Lane:
        if (lane := self._lanes.get(endpoint_id)) is None:
            if len(self._lanes) >= _MAX_LANES:
                self._lanes = {each: lane for each, lane in self._lanes.items() if lane.running or lane.waiting}
            lane = self._lanes[endpoint_id] = _Lane(Pace(self._config.concurrency))
        return lane

    # -- sending

    def _start_next(self, endpoint_id: str) -> None:
        """Use a freed slot: first for lanes that were refused before, then for the lane that freed it."""
        while self._refused and self._running < self._config.requests:
            self._start(self._refused.popitem(last=False)[0])
        self._start(endpoint_id)

    def _start(self, endpoint_id: str) -> None:
        """Start a lane's deliveries, as many as its pace and the sender's limit allow."""
        lane = self._lanes.get(endpoint_id)
        while lane is not None and lane.waiting and lane.running < self._limit(lane):
            if self._running >= self._config.requests:
                self._refused[endpoint_id] = None
                return
            claimed, since = lane.waiting.popleft()
            lane.running += 1
            self._running += 1
            task = asyncio.create_task(self._send(lane, claimed, since))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _limit(self, lane: _Lane) -> int:
        """The lane's concurrency; small while the sender is busy, when more connections to it gain nothing."""
        return lane.pace.limit if self._running < self._config.busy else min(lane.pace.limit, FIRST)

    async def _send(self, lane: _Lane, claimed: Claimed, since: float) -> None:
        try:
            if self._may_begin(claimed, since):
                outcome = await self._attempt(claimed)
                if outcome.is_success:
                    lane.pace.succeeded()
                else:
                    lane.pace.failed()
                self._recorder.add(outcome)
                self.sent += 1
            else:
                await self._give_back([claimed])
        finally:
            lane.running -= 1
            self._running -= 1
            self._start_next(claimed.endpoint.id)
            if not lane.waiting:
                self._waker.wake()  # more of its deliveries may be due

    def _may_begin(self, claimed: Claimed, since: float) -> bool:
        """Whether the lease lasts until this is sent and recorded."""
        held = timedelta(seconds=asyncio.get_running_loop().time() - since)
        needed = timedelta(milliseconds=claimed.endpoint.timeout_ms) + self._config.margin
        return held + needed < self._config.lease

    async def _attempt(self, claimed: Claimed) -> queue.Outcome:
        endpoint = claimed.endpoint
        try:
            headers = self._signer(claimed).headers(claimed.event_id, claimed.body)
            target = parse_target(endpoint.url, self._client.policy)
        except SecretUnreadable:
            log.error("webhooks.secret_unreadable", endpoint_id=endpoint.id)
            why = "the endpoint's secret cannot be read: its key is missing in HEADRACE_WEBHOOK_OLD_KEYS"
            return decide(claimed, Reply(timedelta(0), error=why, kind="refused"), {}, self._config.retries)
        except UrlRefused as exc:  # the settings became stricter after the endpoint was created
            return decide(claimed, Reply(timedelta(0), error=exc.message, kind="refused"), {}, self._config.retries)
        return decide(claimed, await self._post(claimed, target, headers), headers, self._config.retries)

    async def _post(self, claimed: Claimed, target: Target, headers: Mapping[str, str]) -> Reply:
        endpoint = claimed.endpoint
        try:
            return await self._client.post(
                target,
                claimed.body.encode(),
                headers,
                endpoint_id=endpoint.id,
                timeout=timedelta(milliseconds=endpoint.timeout_ms),
                allow_ips=networks_of(endpoint.allow_ips),
            )
        except Exception as exc:
            # A fault of this program or of a library counts as a failed attempt: without a record the lease would have
            # to expire, and the endpoint would never be slowed down.
            log.exception("webhooks.attempt_failed", delivery_id=claimed.delivery_id, endpoint_id=endpoint.id)
            return Reply(timedelta(0), error=f"the request could not be made: {type(exc).__name__}", kind="connection")

    def _signer(self, claimed: Claimed) -> Signer:
        endpoint = claimed.endpoint
        previous = endpoint.secret_previous_ciphertext if claimed.overlaps else None
        key = (endpoint.id, endpoint.secret_ciphertext, previous)
        if (signer := self._signers.get(key)) is None:
            if len(self._signers) >= _MAX_CACHED_SIGNERS:
                self._signers.clear()
            signer = self._signers[key] = Signer(self._secrets(endpoint, previous))
        return signer

    def _secrets(self, endpoint: Endpoint, previous: str | None) -> list[secrets.Secret]:
        sealed = [endpoint.secret_ciphertext, *([previous] if previous else [])]
        return [secrets.unseal(self._keyring, endpoint.id, each) for each in sealed]

    # -- the end

    async def _drain(self) -> None:
        waiting = [claimed for lane in self._lanes.values() for claimed, _ in lane.waiting]
        for lane in self._lanes.values():
            lane.waiting.clear()
        if waiting:
            await self._give_back(waiting)
        with suppress(TimeoutError):
            async with asyncio.timeout(self._config.shutdown.total_seconds()):
                if self._tasks:
                    await asyncio.wait(self._tasks)
                while not self._recorder.is_idle:  # noqa: ASYNC110 - a few milliseconds at the end of a process
                    await asyncio.sleep(0.01)

    async def _give_back(self, claimed: list[Claimed]) -> None:
        with FailuresLogged("webhooks.not_given_back", deliveries=len(claimed)):  # otherwise the lease runs out
            async with self._db.transaction() as tx:
                await queue.give_back(tx, claimed)
