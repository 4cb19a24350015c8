"""Verbs of notifications. Users reach only their own. Marks as read are private and not audited; a change of the
language is audited."""

from typing import get_args

from headrace.access import Caller
from headrace.configs import service as configs
from headrace.configs.model import ConfigScope, ConfigTarget
from headrace.configs.registry import Registry
from headrace.database import Tx
from headrace.notifications import store
from headrace.notifications.errors import NotificationNotFound
from headrace.notifications.model import LANGUAGE, Language, Notification

MAX_COUNTED = 1000
_BATCH = 1000
_KEYS = Registry([LANGUAGE])
LANGUAGES: tuple[Language, ...] = get_args(Language)


async def list_notifications(
    tx: Tx, caller: Caller, *, unread: bool | None = None, before: int | None = None, limit: int
) -> list[Notification]:
    return await store.list_notifications(tx, caller.user_id, unread=unread, before=before, limit=limit)


async def count_unread(tx: Tx, caller: Caller) -> int:
    """Count unread notifications; ``MAX_COUNTED`` means that many or more."""
    return await store.count_unread(tx, caller.user_id, limit=MAX_COUNTED)


async def mark_read(tx: Tx, caller: Caller, notification_id: int) -> Notification:
    """Mark one as read. Idempotent."""
    marked = await store.mark_read(tx, caller.user_id, notification_id)
    found = marked or await store.find(tx, caller.user_id, notification_id)
    if found is None:
        raise NotificationNotFound
    return found


async def mark_all_read(tx: Tx, caller: Caller, *, up_to: int | None = None) -> int:
    """Mark all as read, or those up to an id; returns the number changed."""
    marked = 0
    while batch := await store.mark_all(tx, caller.user_id, up_to=up_to, limit=_BATCH):
        marked += batch
    return marked


async def get_language(tx: Tx, caller: Caller) -> Language:
    languages = await store.read_languages(tx, [caller.user_id])
    return languages.get(caller.user_id, LANGUAGE.default)


async def set_language(tx: Tx, caller: Caller, language: Language) -> Language:
    """Set the language of the caller's future notifications."""
    target = ConfigTarget(ConfigScope.USER, caller.user_id)
    await configs.set_config(tx, _KEYS, caller.who, LANGUAGE.name, target, language)
    return language
