"""Verbs of configs for administrators. Each change is audited with both values, which is their history."""

from typing import Any

from headrace import audit
from headrace.access import PreconditionFailed, check_version
from headrace.audit import Action, Resource, ResourceType, Who
from headrace.configs import store
from headrace.configs.errors import ConfigNotFound
from headrace.configs.model import Config, ConfigScope, ConfigTarget
from headrace.configs.registry import Registry
from headrace.database import Tx
from headrace.sql import Mark

_NONE_YET = 0  # the version of a missing value: `If-Match: "0"` sets a value only if there is none


async def set_config(
    tx: Tx,
    registry: Registry,
    who: Who,
    key: str,
    target: ConfigTarget,
    value: object,
    *,
    is_active: bool = True,
    expected: int | None = None,
) -> Config:
    """Set a key's value for a scope. Idempotent.

    ``UnknownConfigKey`` and ``InvalidConfigValue`` are checked first; ``PreconditionFailed`` if the version is not
    ``expected``.
    """
    checked = registry.get(key).check(value)
    old = await store.lock_config(tx, key, target)
    if old is None:
        check_version(_NONE_YET, expected)
        made = await store.insert_config(tx, key, target, checked, is_active=is_active)
        if made is None:
            raise PreconditionFailed
        await audit.record(tx, who, Action.CREATED, _resource(made), new=made)
        return made
    check_version(old.version, expected)
    if (old.config_value, old.is_active) == (checked, is_active):
        return old
    return await _update(tx, who, old, checked, is_active=is_active)


async def set_active(
    tx: Tx, who: Who, key: str, target: ConfigTarget, *, is_active: bool, expected: int | None = None
) -> Config:
    """Activate or deactivate a value: while inactive, the wider scope's applies."""
    old = await _lock(tx, key, target, expected)
    if old.is_active is is_active:
        return old
    return await _update(tx, who, old, old.config_value, is_active=is_active)


async def unset_config(tx: Tx, who: Who, key: str, target: ConfigTarget, *, expected: int | None = None) -> None:
    """Remove a value: the wider scope's applies, or the default. Works for unknown keys as well."""
    old = await _lock(tx, key, target, expected)
    if not await store.delete_config(tx, old):
        raise PreconditionFailed
    await audit.record(tx, who, Action.DELETED, _resource(old), old=old)


async def get_config(tx: Tx, key: str, target: ConfigTarget) -> Config:
    found = await store.find_config(tx, key, target)
    if found is None:
        raise ConfigNotFound
    return found


async def list_configs(
    tx: Tx,
    *,
    key: str | None = None,
    scope: ConfigScope | None = None,
    scope_id: str | None = None,
    is_active: bool | None = None,
    older_than: Mark | None = None,
    limit: int,
) -> list[Config]:
    """Values that are set, newest first."""
    return await store.list_configs(
        tx, key=key, scope=scope, scope_id=scope_id, is_active=is_active, older_than=older_than, limit=limit
    )


async def _lock(tx: Tx, key: str, target: ConfigTarget, expected: int | None) -> Config:
    old = await store.lock_config(tx, key, target)
    if old is None:
        raise ConfigNotFound
    check_version(old.version, expected)
    return old


async def _update(tx: Tx, who: Who, old: Config, value: Any, *, is_active: bool) -> Config:
    new = await store.update_config(tx, old, value, is_active=is_active)
    if new is None:
        raise PreconditionFailed
    switched = Action.ENABLED if is_active else Action.DISABLED
    action = switched if old.config_value == value else Action.UPDATED
    await audit.record(tx, who, action, _resource(new), old=old, new=new)
    return new


def identifier(key: str, target: ConfigTarget) -> str:
    """The audit identifier of a value: ``features``, ``features@USER:u_…``."""
    return key if target.scope is ConfigScope.GLOBAL else f"{key}@{target}"


def _resource(config: Config) -> Resource:
    return Resource(ResourceType.SYSTEM_CONFIG, identifier(config.config_key, config.target))
