"""Verbs of endpoints. Users reach only their own, administrators all; every change is audited.

A new interest in events is declared last: it waits for transactions that write events, and blocks new ones.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from headrace import audit
from headrace.access import AdminOnly, Caller, check_version
from headrace.audit import Action, Resource, ResourceType, Who
from headrace.database import Tx
from headrace.outbox import interests
from headrace.sql import Mark
from headrace.vault import Keyring
from headrace.webhooks import secrets
from headrace.webhooks.automatic import end_waiting
from headrace.webhooks.consumer import interests_of
from headrace.webhooks.errors import EndpointInvalid, EndpointNotActive, EndpointNotFound, TooManyEndpoints
from headrace.webhooks.http.addresses import AddressPolicy
from headrace.webhooks.http.targets import parse_target
from headrace.webhooks.model import (
    CONSUMER,
    MAX_NAME_LENGTH,
    MAX_TASK_TYPES,
    Endpoint,
    EndpointConfig,
    EndpointId,
    EndpointSpec,
    EndpointStatus,
    Statistics,
    StatusReason,
    check_networks,
    check_patterns,
    new_endpoint_id,
)
from headrace.webhooks.resources import resource_of
from headrace.webhooks.secrets import Secret
from headrace.webhooks.store import deliveries, fan_out, health
from headrace.webhooks.store import endpoints as store
from headrace.webhooks.store.endpoints import EndpointFilter

EVERY_USER = "*"


@dataclass(frozen=True, slots=True)
class Webhooks:
    """Dependencies of the verbs."""

    keyring: Keyring = field(repr=False)
    policy: AddressPolicy = field(default_factory=AddressPolicy)
    config: EndpointConfig = field(default_factory=EndpointConfig)


# -- making and changing


async def create_endpoint(
    tx: Tx, hooks: Webhooks, caller: Caller, spec: EndpointSpec, *, secret: str | None = None
) -> tuple[Endpoint, Secret]:
    """Create an endpoint of the caller; its secret is returned only once."""
    checked = _check(hooks, caller, spec)
    chosen = secrets.make_secret() if secret is None else secrets.read_secret(secret)
    if await store.count_for_insert(tx, caller.user_id) >= hooks.config.most:
        raise TooManyEndpoints(f"One user may have {hooks.config.most} endpoints: delete one first.")
    endpoint_id = new_endpoint_id()
    endpoint = await store.insert(
        tx,
        endpoint_id,
        caller.user_id,
        checked,
        ciphertext=secrets.seal(hooks.keyring, endpoint_id, chosen),
        hint=chosen.hint,
    )
    await audit.record(tx, caller.who, Action.CREATED, resource_of(endpoint), new=endpoint)
    await interests.declare(tx, CONSUMER, endpoint.id, interests_of(endpoint))
    return endpoint, chosen


async def update_endpoint(
    tx: Tx,
    hooks: Webhooks,
    caller: Caller,
    endpoint_id: str,
    changes: Mapping[str, Any],
    *,
    expected: int | None = None,
) -> Endpoint:
    """Change some properties; waiting deliveries use them. Idempotent."""
    old = await _hold(tx, caller, endpoint_id, expected)
    spec = _check(hooks, caller, replace(old.spec, **changes))
    if spec == old.spec:
        return old
    new = await store.update(tx, endpoint_id, spec)
    if new.url != old.url:
        await health.forget(tx, endpoint_id)
    await audit.record(tx, caller.who, Action.UPDATED, resource_of(new), old=old, new=new)
    if new.status is not EndpointStatus.DISABLED:
        await interests.declare(tx, CONSUMER, new.id, interests_of(new))
    return new


def _check(hooks: Webhooks, caller: Caller, spec: EndpointSpec) -> EndpointSpec:
    """Validate and normalize a spec; raises ``EndpointInvalid``."""
    if not 1 <= len(spec.name) <= MAX_NAME_LENGTH:
        raise EndpointInvalid(f"A name has 1 to {MAX_NAME_LENGTH} characters.", field="name")
    if spec.every_user and not caller.is_admin:
        raise AdminOnly("Only an administrator's endpoint may receive all users' events.")
    if spec.task_types is not None and not 1 <= len(spec.task_types) <= MAX_TASK_TYPES:
        raise EndpointInvalid(f"Name 1 to {MAX_TASK_TYPES} task types, or none at all.", field="task_types")
    return replace(
        spec,
        url=parse_target(spec.url, hooks.policy).url,
        subscribed_events=check_patterns(spec.subscribed_events),
        allow_ips=check_networks(spec.allow_ips),
        task_types=None if spec.task_types is None else tuple(dict.fromkeys(spec.task_types)),
    )


async def rotate_secret(
    tx: Tx,
    hooks: Webhooks,
    caller: Caller,
    endpoint_id: str,
    *,
    secret: str | None = None,
    expected: int | None = None,
) -> tuple[Endpoint, Secret]:
    """Set a new secret, generated or supplied; the old one signs beside it for a while. Returned only once."""
    old = await _hold(tx, caller, endpoint_id, expected)
    chosen = secrets.make_secret() if secret is None else secrets.read_secret(secret)
    ciphertext = secrets.seal(hooks.keyring, endpoint_id, chosen)
    new = await store.rotate(tx, endpoint_id, ciphertext=ciphertext, hint=chosen.hint)
    facts = {"verb": "rotate"}
    await audit.record(tx, caller.who, Action.UPDATED, resource_of(new), old=old, new=new, data=facts)
    return new, chosen


async def pause_endpoint(tx: Tx, caller: Caller, endpoint_id: str, *, expected: int | None = None) -> Endpoint:
    """Stop sending; events wait within the delivery lifetime. Idempotent."""
    old = await _hold(tx, caller, endpoint_id, expected)
    if old.status is EndpointStatus.PAUSED:
        return old
    new = await store.set_status(
        tx, endpoint_id, EndpointStatus.PAUSED, reason=StatusReason.BY_HAND, of=(EndpointStatus.ACTIVE,)
    )
    if new is None:
        raise EndpointNotActive("This endpoint is disabled: resume it first.")
    await audit.record(tx, caller.who, Action.DISABLED, resource_of(new), old=old, new=new)
    return new


async def resume_endpoint(tx: Tx, caller: Caller, endpoint_id: str, *, expected: int | None = None) -> Endpoint:
    """Send again, oldest deliveries first; events that a disabled endpoint missed are not sent. Idempotent."""
    old = await _hold(tx, caller, endpoint_id, expected)
    await health.forget(tx, endpoint_id)
    if old.status is EndpointStatus.ACTIVE:
        return old
    new = await store.set_status(tx, endpoint_id, EndpointStatus.ACTIVE, reason=None, of=(old.status,))
    assert new is not None  # locked
    await audit.record(tx, caller.who, Action.ENABLED, resource_of(new), old=old, new=new)
    await fan_out.wake_senders(tx)
    await interests.declare(tx, CONSUMER, new.id, interests_of(new))
    return new


async def delete_endpoint(tx: Tx, caller: Caller, endpoint_id: str, *, expected: int | None = None) -> None:
    """Remove an endpoint; waiting deliveries are not sent. Past ones stay on record as long as others."""
    old = await _hold(tx, caller, endpoint_id, expected)
    await end_waiting(tx, endpoint_id, "the endpoint was deleted")
    await health.forget(tx, endpoint_id)
    new = await store.delete(tx, endpoint_id)
    await audit.record(tx, caller.who, Action.DELETED, resource_of(new), old=old, new=new)
    await interests.withdraw(tx, CONSUMER, endpoint_id)


# -- reading


async def get_endpoint(tx: Tx, caller: Caller, endpoint_id: str) -> Endpoint:
    """One endpoint. Another user's is found only by administrators, whose read is audited."""
    found = await store.find(tx, endpoint_id)
    return await _reached(tx, caller, found)


async def list_endpoints(
    tx: Tx, caller: Caller, wanted: EndpointFilter, *, older_than: Mark | None = None, limit: int
) -> list[Endpoint]:
    """Endpoints, newest first. Only administrators list other users' endpoints."""
    await check_owner(tx, caller, wanted.user_id, ResourceType.WEBHOOK_ENDPOINT)
    return await store.list_endpoints(tx, wanted, older_than=older_than, limit=limit)


async def get_statistics(tx: Tx, caller: Caller, endpoint_id: str, *, since: datetime) -> Statistics:
    await get_endpoint(tx, caller, endpoint_id)
    return await deliveries.read_statistics(tx, endpoint_id, since=since)


async def check_owner(tx: Tx, caller: Caller, user_id: str | None, type_: ResourceType) -> None:
    """Let only administrators list other users' rows, and audit it."""
    if user_id == caller.user_id:
        return
    if not caller.is_admin:
        raise AdminOnly("Only an administrator may list other people's webhooks.")
    owner = {"user_id": user_id or EVERY_USER}
    await audit.record(tx, caller.who, Action.READ, Resource(type_, EVERY_USER), data=owner)


async def _hold(tx: Tx, caller: Caller, endpoint_id: str, expected: int | None) -> Endpoint:
    """The endpoint, locked, if the caller may change it and it is the expected version."""
    found = await store.find(tx, endpoint_id, lock=True)
    if found is None or (found.user_id != caller.user_id and not caller.is_admin):
        raise EndpointNotFound
    check_version(found.version, expected)
    return found


async def _reached(tx: Tx, caller: Caller, found: Endpoint | None) -> Endpoint:
    if found is None or (found.user_id != caller.user_id and not caller.is_admin):
        raise EndpointNotFound
    if found.user_id != caller.user_id:
        await audit.record(tx, caller.who, Action.READ, resource_of(found))
    return found


# -- keys


async def reseal_after(
    tx: Tx, keyring: Keyring, who: Who, endpoint_id: str, *, limit: int = 100
) -> tuple[EndpointId | None, int]:
    """Encrypt the next endpoints' secrets with the current key; returns the last id and the number changed."""
    rows = await store.sealed_after(tx, endpoint_id, limit=limit)
    changed = 0
    for each, ciphertext, previous in rows:
        sealed = [text for text in (ciphertext, previous) if text is not None]
        if all(keyring.is_current(text) for text in sealed):
            continue
        resealed = [secrets.seal(keyring, each, secrets.unseal(keyring, each, text)) for text in sealed]
        await store.reseal(tx, each, resealed[0], resealed[1] if previous is not None else None)
        changed += 1
    if changed:
        facts = {"verb": "rotate-keys", "endpoints": str(changed)}
        await audit.record(tx, who, Action.UPDATED, Resource(ResourceType.WEBHOOK_ENDPOINT, EVERY_USER), data=facts)
    return (EndpointId(rows[-1][0]) if rows else None), changed
