"""The outbox consumer that turns events into notifications."""

from collections.abc import Sequence

from headrace.database import Tx
from headrace.notifications import batches, store, texts
from headrace.notifications.model import CONSUMER, NewNotification, NotificationType
from headrace.outbox.consumers import StoredEvent
from headrace.tasks.model import MEDIA_TYPES

_BY_EVENT = {
    "task.succeeded": NotificationType.TASK_SUCCEEDED,
    "task.failed": NotificationType.TASK_FAILED,
    "quota.reached": NotificationType.QUOTA_REACHED,
    "subscription.activated": NotificationType.SUBSCRIPTION_ACTIVATED,
    "subscription.expiring": NotificationType.SUBSCRIPTION_EXPIRING,
}
_NO_TASK = store.TaskSubject(title=None, batch_id=None)


class NotificationConsumer:
    """Notifies of media tasks, subscriptions and quotas, whose events are always written. It has no interests of its
    own, so no event is written only for it; tasks of programs appear in no inbox. The files of a batch share one,
    written when the last of them has ended."""

    name = CONSUMER
    interests: Sequence[str] = ()

    async def receive(self, tx: Tx, events: Sequence[StoredEvent]) -> None:
        tasks = await store.read_tasks(tx, sorted({task_id for each in events if (task_id := ended_removal(each))}))
        news = []
        for stored in events:
            new = meaning_of(stored)
            subject = tasks.get(new.task_id, _NO_TASK) if new else _NO_TASK
            if new is not None and subject.batch_id is None:
                news.append(new.with_title(subject.title))
        if batch_ids := sorted({each.batch_id for each in tasks.values() if each.batch_id is not None}):
            ended = await batches.list_ended(tx, batch_ids)
            news += [new for batch in ended if (new := batch.notification()) is not None]
        if not news:
            return
        languages = await store.read_languages(tx, sorted({each.user_id for each in news}))
        written = [
            (each, *texts.write(each.type, languages[each.user_id], each.payload))
            for each in news
            if each.user_id in languages
        ]
        if written:
            await store.insert(tx, written)


def ended_removal(stored: StoredEvent) -> str | None:
    """The id of the removal that this event says has ended: its batch may have ended with it."""
    event = stored.event
    is_end = event.type in ("task.succeeded", "task.failed", "task.canceled")
    return event.payload.get("task_id") if is_end and event.payload.get("type") in MEDIA_TYPES else None


def meaning_of(stored: StoredEvent) -> NewNotification | None:
    """The notification for an event; None for events without one."""
    event = stored.event
    type_ = _BY_EVENT.get(event.type)
    user_id = event.user_id or event.payload.get("user_id")
    if type_ is None or not isinstance(user_id, str):
        return None
    if event.aggregate_type == "task" and event.payload.get("type") not in MEDIA_TYPES:
        return None
    kept = (
        *("task_id", "type", "error_code", "error_message", "subscription_id", "plan_id", "period_end", "expire_at"),
        *("percent", "total", "left", "renews_at"),
    )
    payload = {name: event.payload[name] for name in kept if event.payload.get(name) is not None}
    return NewNotification(user_id, type_, event.id, payload)
