"""Webhooks and notifications for programs without an event loop; their verbs are described in the twins."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from headrace.client.inbox import Notification, Notifications
from headrace.client.synchronous_schedules import Loop
from headrace.client.webhooks import Delivery, Endpoint, EndpointStatistics, NewEndpoint, Webhooks


class SyncWebhooks:
    def __init__(self, loop: Loop, webhooks: Webhooks) -> None:
        self._loop = loop
        self._webhooks = webhooks

    def create(self, endpoint: NewEndpoint, *, key: str | None = None) -> Endpoint:
        return self._loop.run(self._webhooks.create(endpoint, key=key))

    def get(self, endpoint_id: str) -> Endpoint:
        return self._loop.run(self._webhooks.get(endpoint_id))

    def update(self, endpoint_id: str, *, version: int | None = None, **changes: Any) -> Endpoint:
        return self._loop.run(self._webhooks.update(endpoint_id, version=version, **changes))

    def delete(self, endpoint_id: str) -> None:
        self._loop.run(self._webhooks.delete(endpoint_id))

    def pause(self, endpoint_id: str) -> Endpoint:
        return self._loop.run(self._webhooks.pause(endpoint_id))

    def resume(self, endpoint_id: str) -> Endpoint:
        return self._loop.run(self._webhooks.resume(endpoint_id))

    def rotate_secret(self, endpoint_id: str, *, secret: str | None = None, key: str | None = None) -> Endpoint:
        return self._loop.run(self._webhooks.rotate_secret(endpoint_id, secret=secret, key=key))

    def statistics(self, endpoint_id: str, *, hours: int = 24) -> EndpointStatistics:
        return self._loop.run(self._webhooks.statistics(endpoint_id, hours=hours))

    def test(self, endpoint_id: str, *, key: str | None = None) -> Delivery:
        return self._loop.run(self._webhooks.test(endpoint_id, key=key))

    def delivery(self, delivery_id: str) -> Delivery:
        return self._loop.run(self._webhooks.delivery(delivery_id))

    def resend(self, delivery_id: str, *, key: str | None = None) -> Delivery:
        return self._loop.run(self._webhooks.resend(delivery_id, key=key))

    def resend_failed(self, endpoint_id: str, *, since: datetime, until: datetime | None = None) -> int:
        return self._loop.run(self._webhooks.resend_failed(endpoint_id, since=since, until=until))

    def deliveries(
        self,
        *,
        endpoint_id: str | None = None,
        event_id: str | None = None,
        event_type: str | None = None,
        status: str | None = None,
        created_after: datetime | None = None,
        created_before: datetime | None = None,
        user_id: str | None = None,
    ) -> Iterator[Delivery]:
        return self._loop.iterate(
            self._webhooks.deliveries(
                endpoint_id=endpoint_id,
                event_id=event_id,
                event_type=event_type,
                status=status,
                created_after=created_after,
                created_before=created_before,
                user_id=user_id,
            )
        )

    def list(self, *, status: str | None = None, user_id: str | None = None) -> Iterator[Endpoint]:
        return self._loop.iterate(self._webhooks.list(status=status, user_id=user_id))


class SyncNotifications:
    def __init__(self, loop: Loop, notifications: Notifications) -> None:
        self._loop = loop
        self._notifications = notifications

    def unread_count(self) -> int:
        return self._loop.run(self._notifications.unread_count())

    def mark_read(self, notification_id: int) -> Notification:
        return self._loop.run(self._notifications.mark_read(notification_id))

    def mark_all_read(self, *, up_to: int | None = None) -> int:
        return self._loop.run(self._notifications.mark_all_read(up_to=up_to))

    def set_language(self, language: str) -> None:
        self._loop.run(self._notifications.set_language(language))

    def follow(self, *, after: int | None = None) -> Iterator[Notification]:
        return self._loop.iterate(self._notifications.follow(after=after))

    def list(self, *, unread: bool | None = None) -> Iterator[Notification]:
        return self._loop.iterate(self._notifications.list(unread=unread))
