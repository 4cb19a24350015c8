"""SQL of notifications."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from headrace.database import Row, Tx
from headrace.notifications.model import LANGUAGE, Language, NewNotification, Notification, NotificationType
from headrace.sql import Where

CHANNEL = "headrace_notifications"
COLUMNS = "id, user_id, type, title, body, payload_json, event_id, is_read, read_at, created_at"


def notification_of(row: Row) -> Notification:
    fields: dict[str, Any] = dict(row)
    payload = fields.pop("payload_json")
    return Notification(**{**fields, "type": NotificationType(fields["type"]), "payload": payload})


# The user's own value, else the GLOBAL one. Deleted users are left out and get no notification.
LANGUAGES = """
SELECT person.id, coalesce(own.config_value, everybody.config_value) #>> '{}' AS language
FROM headrace.users AS person
LEFT JOIN headrace.system_configs AS own
  ON own.config_key = $2 AND own.config_scope = 'USER' AND own.scope_id = person.id AND own.is_active
LEFT JOIN headrace.system_configs AS everybody
  ON everybody.config_key = $2 AND everybody.config_scope = 'GLOBAL' AND everybody.is_active
WHERE person.id = ANY($1) AND person.status <> 'DELETED'
"""


async def read_languages(tx: Tx, user_ids: Sequence[str]) -> Mapping[str, Language]:
    """The language of each of these users, without deleted ones."""
    rows = await tx.fetch(LANGUAGES, list(user_ids), LANGUAGE.name)
    return {row["id"]: LANGUAGE.read(row["language"] or LANGUAGE.default) for row in rows}


TASKS = """
SELECT task.id, task.title, removal.batch_id
FROM headrace.tasks AS task LEFT JOIN headrace.removals AS removal ON removal.task_id = task.id
WHERE task.id = ANY($1)
"""


class TaskSubject(NamedTuple):
    """What a notification says of a task: its title is usually a file name."""

    title: str | None
    batch_id: str | None


async def read_tasks(tx: Tx, task_ids: Sequence[str]) -> Mapping[str, TaskSubject]:
    """These tasks; deleted ones are left out."""
    if not task_ids:
        return {}
    rows = await tx.fetch(TASKS, list(task_ids))
    return {row["id"]: TaskSubject(row["title"], row["batch_id"]) for row in rows}


# The outbox delivers at least once; the unique key makes it one notification.
INSERT = """
INSERT INTO headrace.notifications (user_id, type, title, body, payload_json, event_id)
SELECT * FROM unnest($1::varchar[], $2::varchar[], $3::varchar[], $4::text[], $5::jsonb[], $6::varchar[])
ON CONFLICT (event_id, user_id, type) WHERE event_id IS NOT NULL DO NOTHING
RETURNING user_id
"""
NOTIFY = "SELECT pg_notify($1, id) FROM unnest($2::text[]) AS id"


async def insert(tx: Tx, news: Sequence[tuple[NewNotification, str, str]]) -> int:
    """Insert notifications with title and body, and wake live streams; returns the number of new ones."""
    rows = await tx.fetch(
        INSERT,
        [each.user_id for each, _, _ in news],
        [each.type for each, _, _ in news],
        [title for _, title, _ in news],
        [body for _, _, body in news],
        [dict(each.payload) for each, _, _ in news],
        [each.event_id for each, _, _ in news],
    )
    if rows:
        await tx.execute(NOTIFY, CHANNEL, sorted({row["user_id"] for row in rows}))
    return len(rows)


async def list_notifications(
    tx: Tx, user_id: str, *, unread: bool | None, before: int | None, limit: int
) -> list[Notification]:
    """A user's notifications, newest first."""
    where = Where().eq("user_id", user_id).eq("is_read", None if unread is None else not unread).below("id", before)
    rows = await tx.fetch(
        f"SELECT {COLUMNS} FROM headrace.notifications {where.sql} ORDER BY id DESC LIMIT ${where.next}",
        *where.args,
        limit,
    )
    return [notification_of(row) for row in rows]


COUNT_UNREAD = """
SELECT count(*) FROM (
  SELECT FROM headrace.notifications WHERE user_id = $1 AND NOT is_read LIMIT $2
) AS unread
"""


async def count_unread(tx: Tx, user_id: str, *, limit: int) -> int:
    """Count unread notifications, up to ``limit``."""
    count: int = await tx.fetchval(COUNT_UNREAD, user_id, limit)
    return count


FIND = f"SELECT {COLUMNS} FROM headrace.notifications WHERE id = $1 AND user_id = $2"


async def find(tx: Tx, user_id: str, notification_id: int) -> Notification | None:
    row = await tx.fetchrow(FIND, notification_id, user_id)
    return None if row is None else notification_of(row)


MARK_READ = f"""
UPDATE headrace.notifications SET is_read = true, read_at = now()
WHERE id = $1 AND user_id = $2 AND NOT is_read
RETURNING {COLUMNS}
"""


async def mark_read(tx: Tx, user_id: str, notification_id: int) -> Notification | None:
    """Mark it read; None if it was read before or does not exist."""
    row = await tx.fetchrow(MARK_READ, notification_id, user_id)
    return None if row is None else notification_of(row)


MARK_ALL = """
UPDATE headrace.notifications SET is_read = true, read_at = now()
WHERE id IN (
  SELECT id FROM headrace.notifications
  WHERE user_id = $1 AND NOT is_read AND id <= coalesce($2, id) ORDER BY id LIMIT $3 FOR UPDATE
)
"""


async def mark_all(tx: Tx, user_id: str, *, up_to: int | None, limit: int) -> int:
    return await tx.count(MARK_ALL, user_id, up_to, limit)


NEWEST = "SELECT coalesce(max(id), 0) FROM headrace.notifications WHERE user_id = $1"
AFTER = f"""
SELECT {COLUMNS} FROM headrace.notifications WHERE user_id = $1 AND id > $2 ORDER BY id LIMIT $3
"""


async def newest(tx: Tx, user_id: str) -> int:
    found: int = await tx.fetchval(NEWEST, user_id)
    return found


async def list_after(tx: Tx, user_id: str, notification_id: int, *, limit: int) -> list[Notification]:
    """Notifications after an id, oldest first."""
    return [notification_of(row) for row in await tx.fetch(AFTER, user_id, notification_id, limit)]


DELETE_OF_USER = """
DELETE FROM headrace.notifications WHERE id IN (
  SELECT id FROM headrace.notifications
  WHERE user_id = $1 AND type <> 'ACCOUNT_DELETE_COMPLETED' ORDER BY id LIMIT $2
)
"""


async def delete_of_user(tx: Tx, user_id: str, *, limit: int) -> int:
    """Remove at most ``limit`` of a user's notifications; returns the number. The one about the deletion stays."""
    return await tx.count(DELETE_OF_USER, user_id, limit)
