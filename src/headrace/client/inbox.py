"""Notifications, for programs with an event loop: ``client.notifications``."""

import asyncio
import json
import random
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import timedelta

from headrace.client.errors import Unreachable
from headrace.client.generated.answers import Notification
from headrace.client.streaming import read_events
from headrace.client.verbs import Verbs

_PATH = "/v1/notifications"
_HEARTBEAT_TIMEOUT = timedelta(seconds=40)  # the server sends a heartbeat every 10 s
_RECONNECT_PAUSE_S = (0.5, 1.5)


class Notifications(Verbs):
    """The inbox of the API key's user."""

    async def unread_count(self) -> int:
        """The number of unread notifications; 1000 means 1000 or more."""
        count: int = (await self._get(f"{_PATH}/unread-count"))["unread"]
        return count

    async def mark_read(self, notification_id: int) -> Notification:
        """Mark one as read."""
        return Notification.of(await self._change(f"{_PATH}/{notification_id:d}/read", None, safe=True))

    async def mark_all_read(self, *, up_to: int | None = None) -> int:
        """Mark all as read, or those up to an id; returns how many were unread."""
        body = {} if up_to is None else {"up_to": up_to}
        marked: int = (await self._change(f"{_PATH}/read-all", None, safe=True, body=body))["marked"]
        return marked

    async def language(self) -> str:
        """The language of future notifications."""
        language: str = (await self._get(f"{_PATH}/language"))["language"]
        return language

    async def set_language(self, language: str) -> None:
        """Set the language of future notifications: ``en`` or ``zh``."""
        await self._change(f"{_PATH}/language", None, safe=True, method="PUT", body={"language": language})

    async def follow(self, *, after: int | None = None) -> AsyncGenerator[Notification, None]:
        """Stream notifications from now on, or after an id, for ever. Reconnects after a broken connection."""
        last = after
        while True:
            headers = {} if last is None else {"Last-Event-ID": str(last)}
            try:
                async with self._connection.stream(
                    f"{_PATH}/events", headers=headers, read_timeout=_HEARTBEAT_TIMEOUT
                ) as answer:
                    if answer.status_code != 200:
                        await self.unread_count()  # raises the error
                        continue
                    async with aclosing(read_events(answer.aiter_bytes())) as events:
                        async for event in events:
                            if event.kind == "revoked":
                                return
                            if event.kind == "notification":
                                notification = Notification.of(json.loads(event.data))
                                last = notification.id
                                yield notification
            except Unreachable:
                pass
            await asyncio.sleep(random.uniform(*_RECONNECT_PAUSE_S))  # noqa: S311 - spreads load, guards nothing

    async def list(self, *, unread: bool | None = None) -> AsyncGenerator[Notification, None]:
        """Your notifications, newest first."""
        async for item in self._pages(_PATH, {"unread": unread}):
            yield Notification.of(item)
