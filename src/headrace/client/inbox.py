"""Notifications, for programs with an event loop: ``client.notifications``."""

import asyncio
import json
import random
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from headrace.client.errors import Unreachable
from headrace.client.model import Answer
from headrace.client.streaming import read_events
from headrace.client.verbs import Verbs

_PATH = "/v1/notifications"
_HEARTBEATS = timedelta(seconds=40)  # the server says something every 10 s
_COME_BACK_S = (0.5, 1.5)


@dataclass(frozen=True, slots=True)
class Notification(Answer):
    """What a user was told."""

    id: int
    type: str
    title: str
    body: str
    is_read: bool
    created_at: datetime
    payload: Mapping[str, Any] | None = None
    event_id: str | None = None
    read_at: datetime | None = None


class Notifications(Verbs):
    """The inbox of whoever the API key belongs to."""

    async def unread_count(self) -> int:
        """How many are unread; 1000 stands for that many or more."""
        count: int = (await self._get(f"{_PATH}/unread-count"))["unread"]
        return count

    async def mark_read(self, notification_id: int) -> Notification:
        """Mark one as read."""
        return Notification.of(await self._change(f"{_PATH}/{notification_id:d}/read", None, safe=True))

    async def mark_all_read(self, *, up_to: int | None = None) -> int:
        """Mark all as read, or those up to the newest that was shown; gives how many were unread."""
        body = {} if up_to is None else {"up_to": up_to}
        marked: int = (await self._change(f"{_PATH}/read-all", None, safe=True, body=body))["marked"]
        return marked

    async def set_language(self, language: str) -> None:
        """``en`` or ``zh``, for what comes from now on."""
        await self._change(f"{_PATH}/language", None, safe=True, method="PUT", body={"language": language})

    async def follow(self, *, after: int | None = None) -> AsyncGenerator[Notification, None]:
        """What comes from now on, or after the one that was seen last; for ever. Connections that break come back."""
        last = after
        while True:
            headers = {} if last is None else {"Last-Event-ID": str(last)}
            try:
                async with self._connection.stream(
                    f"{_PATH}/events", headers=headers, read_timeout=_HEARTBEATS
                ) as answer:
                    if answer.status_code != 200:
                        await self.unread_count()  # raises what is wrong
                        continue
                    async with aclosing(read_events(answer.aiter_bytes())) as events:
                        async for event in events:
                            if event.kind == "revoked":
                                return
                            if event.kind == "notification":
                                told = Notification.of(json.loads(event.data))
                                last = told.id
                                yield told
            except Unreachable:
                pass
            await asyncio.sleep(random.uniform(*_COME_BACK_S))  # noqa: S311 - spreads load, guards nothing

    async def list(self, *, unread: bool | None = None) -> AsyncGenerator[Notification, None]:
        """What you were told, newest first."""
        async for item in self._pages(_PATH, {"unread": unread}):
            yield Notification.of(item)
