"""What people do with their notifications: each with their own alone. Reading is nobody else's business, so marks are
not audited; a changed language is."""

from typing import get_args

from headrace.access import Caller
from headrace.configs import service as configs
from headrace.configs.model import ConfigScope, ConfigTarget
from headrace.configs.registry import Registry
from headrace.database import Tx
from headrace.notifications import store
from headrace.notifications.errors import NotificationNotFound
from headrace.notifications.model import LANGUAGE, Language, Notification

MOST_COUNTED = 1000
_BATCH = 1000
_KEYS = Registry([LANGUAGE])
LANGUAGES: tuple[Language, ...] = get_args(Language)


async def list_notifications(
    tx: Tx, caller: Caller, *, unread: bool | None = None, before: int | None = None, limit: int
) -> list[Notification]:
    return await store.list_notifications(tx, caller.user_id, unread=unread, before=before, limit=limit)


async def count_unread(tx: Tx, caller: Caller) -> int:
    """How many were not read; ``MOST_COUNTED`` stands for that many or more."""
    return await store.count_unread(tx, caller.user_id, limit=MOST_COUNTED)


async def mark_read(tx: Tx, caller: Caller, notification_id: int) -> Notification:
    """Mark one as read; twice changes nothing."""
    marked = await store.mark_read(tx, caller.user_id, notification_id)
    found = marked or await store.find(tx, caller.user_id, notification_id)
    if found is None:
        raise NotificationNotFound
    return found


async def mark_all_read(tx: Tx, caller: Caller, *, up_to: int | None = None) -> int:
    """Mark all as read, or those up to one that was seen; says how many changed."""
    marked = 0
    while batch := await store.mark_all(tx, caller.user_id, up_to=up_to, limit=_BATCH):
        marked += batch
    return marked


async def get_language(tx: Tx, caller: Caller) -> Language:
    languages = await store.read_languages(tx, [caller.user_id])
    return languages.get(caller.user_id, LANGUAGE.default)


async def set_language(tx: Tx, caller: Caller, language: Language) -> Language:
    """The language in which the caller is told things from now on."""
    target = ConfigTarget(ConfigScope.USER, caller.user_id)
    await configs.set_config(tx, _KEYS, caller.who, LANGUAGE.name, target, language)
    return language
