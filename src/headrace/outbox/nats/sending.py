"""The sender of the broker: publishes messages in order, and removes those that the broker has confirmed.

A message's id is its event's (``Nats-Msg-Id``): the broker drops duplicates within its window, which a lost
confirmation causes. While the broker is away, the sender waits and no message is lost.
"""

import asyncio
from contextlib import suppress

import nats
import nats.errors
import nats.js.errors
import orjson
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.api import StreamConfig

from headrace import logs
from headrace.database import Database
from headrace.loops import FailuresLogged, Waker, pause
from headrace.outbox.envelope import envelope
from headrace.outbox.nats import store
from headrace.outbox.nats.config import NatsConfig
from headrace.outbox.nats.store import CHANNEL, Batch, Message

log = logs.get(__name__)

_RETRY_PAUSE_S = 1.0
_CONNECTION_ERRORS = (nats.errors.Error, OSError, TimeoutError, nats.js.errors.NoStreamResponseError)


class NatsSender:
    def __init__(self, db: Database, config: NatsConfig) -> None:
        self._db = db
        self._config = config
        self._waker = Waker()
        self.published = 0

    async def run(self, stop: asyncio.Event) -> None:
        """Publish until ``stop``, and survive failures of the broker and the database."""
        listening = asyncio.create_task(self._waker.listen(self._db, CHANNEL)) if self._config.listen else None
        try:
            while not stop.is_set():
                with FailuresLogged("nats.failed"):
                    try:
                        await self._publish_until(stop)
                    except _CONNECTION_ERRORS as exc:
                        log.warning("nats.away", error=type(exc).__name__)
                await pause(_RETRY_PAUSE_S, stop=stop)
        finally:
            if listening is not None:
                listening.cancel()

    async def _publish_until(self, stop: asyncio.Event) -> None:
        """Publish on one connection until it fails. This loop reconnects, not the library: a message that awaits its
        confirmation on a lost connection would wait for ever."""
        client = await nats.connect(
            self._config.url, name="headrace", allow_reconnect=False, connect_timeout=5, error_cb=_quiet
        )
        try:
            broker = client.jetstream(timeout=self._config.ack_within.total_seconds())
            await self._ensure_stream(broker)
            while not stop.is_set():
                self._waker.clear()
                if await self.run_once(client, broker) == 0:
                    await self._waker.wait(self._config.poll_every.total_seconds(), stop=stop)
        finally:
            with suppress(*_CONNECTION_ERRORS):
                await client.close()

    async def run_once(self, client: Client, broker: JetStreamContext) -> int:
        """Publish one batch; returns the number of confirmed messages."""
        batch = await store.claim(self._db, limit=self._config.batch, lease=self._config.lease)
        if not (batch.messages or batch.orphans):
            return 0
        if batch.orphans:
            log.error("nats.events_gone", count=len(batch.orphans))
        confirmed: list[int] = []
        refused: list[int] = []
        try:
            await self._publish(client, broker, batch, confirmed, refused)
        finally:
            await store.settle(self._db, batch, confirmed=confirmed, refused=refused, max_tries=self._config.max_tries)
        self.published += len(confirmed)
        return len(confirmed) + len(batch.orphans)

    async def _publish(
        self, client: Client, broker: JetStreamContext, batch: Batch, confirmed: list[int], refused: list[int]
    ) -> None:
        """Send messages in order, and wait for all confirmations together."""
        sent = []
        for message in batch.messages:
            if (body := self._body(client, message)) is None:
                refused.append(message.id)
                continue
            subject = f"{self._config.subject}.{message.event.event.type}"
            headers = {"Nats-Msg-Id": str(message.event.event.id)}
            sent.append((message, await broker.publish_async(subject, body, headers=headers)))
        async with asyncio.timeout(self._config.ack_within.total_seconds()):
            for message, answer in sent:
                try:
                    await answer
                except nats.js.errors.APIError as exc:  # this message failed, not the connection
                    log.error("nats.refused", event_id=message.event.event.id, error=str(exc), tries=message.tries)
                    refused.append(message.id)
                else:
                    confirmed.append(message.id)

    def _body(self, client: Client, message: Message) -> bytes | None:
        body = orjson.dumps(envelope(message.event))
        if len(body) <= client.max_payload:
            return body
        log.error("nats.too_large", event_id=message.event.event.id, bytes=len(body), most=client.max_payload)
        return None

    async def _ensure_stream(self, broker: JetStreamContext) -> None:
        try:
            await broker.stream_info(self._config.stream)
        except nats.js.errors.NotFoundError:
            subjects = [f"{self._config.subject}.>"]
            await broker.add_stream(StreamConfig(name=self._config.stream, subjects=subjects))
            log.info("nats.stream_made", stream=self._config.stream)


async def _quiet(exc: Exception) -> None:
    log.warning("nats.connection", error=type(exc).__name__)
