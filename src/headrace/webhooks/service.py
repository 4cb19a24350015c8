"""What people do with endpoints. Each reaches only their own, administrators all; every change is audited.

A new interest in events is declared last: it waits for transactions that write events, and holds up others.
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
    LONGEST_NAME,
    MOST_TASK_TYPES,
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

EVERYBODY = "*"


@dataclass(frozen=True, slots=True)
class Webhooks:
    """What the verbs work with."""

    keyring: Keyring = field(repr=False)
    policy: AddressPolicy = field(default_factory=AddressPolicy)
    config: EndpointConfig = field(default_factory=EndpointConfig)


# -- making and changing


async def create_endpoint(
    tx: Tx, hooks: Webhooks, caller: Caller, spec: EndpointSpec, *, secret: str | None = None
) -> tuple[Endpoint, Secret]:
    """Make an endpoint as the caller's own; its secret is given only now."""
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
    """Change some of it; what waits is sent as it says now. The same values again change nothing."""
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
    """The spec as it is stored, or what is wrong with it."""
    if not 1 <= len(spec.name) <= LONGEST_NAME:
        raise EndpointInvalid(f"A name has 1 to {LONGEST_NAME} characters.", field="name")
    if spec.every_user and not caller.is_admin:
        raise AdminOnly("Only an administrator's endpoint may get everybody's events.")
    if spec.task_types is not None and not 1 <= len(spec.task_types) <= MOST_TASK_TYPES:
        raise EndpointInvalid(f"Name 1 to {MOST_TASK_TYPES} task types, or none at all.", field="task_types")
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
    """A new secret, made or given; the old one goes on signing beside it for a while. Given only now."""
    old = await _hold(tx, caller, endpoint_id, expected)
    chosen = secrets.make_secret() if secret is None else secrets.read_secret(secret)
    ciphertext = secrets.seal(hooks.keyring, endpoint_id, chosen)
    new = await store.rotate(tx, endpoint_id, ciphertext=ciphertext, hint=chosen.hint)
    facts = {"verb": "rotate"}
    await audit.record(tx, caller.who, Action.UPDATED, resource_of(new), old=old, new=new, data=facts)
    return new, chosen


async def pause_endpoint(tx: Tx, caller: Caller, endpoint_id: str, *, expected: int | None = None) -> Endpoint:
    """Send nothing for now; events wait, for as long as the settings let them. Pausing twice changes nothing."""
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
    """Send again, what has waited first; what a disabled endpoint missed is not sent. Twice changes nothing."""
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
    """Remove it; what waits is not sent. Its deliveries stay on record for as long as others."""
    old = await _hold(tx, caller, endpoint_id, expected)
    await end_waiting(tx, endpoint_id, "the endpoint was deleted")
    await health.forget(tx, endpoint_id)
    new = await store.delete(tx, endpoint_id)
    await audit.record(tx, caller.who, Action.DELETED, resource_of(new), old=old, new=new)
    await interests.withdraw(tx, CONSUMER, endpoint_id)


# -- reading


async def get_endpoint(tx: Tx, caller: Caller, endpoint_id: str) -> Endpoint:
    """One endpoint; somebody else's is as good as none, except for administrators, whose look is audited."""
    found = await store.find(tx, endpoint_id)
    return await _reached(tx, caller, found)


async def list_endpoints(
    tx: Tx, caller: Caller, wanted: EndpointFilter, *, older_than: Mark | None = None, limit: int
) -> list[Endpoint]:
    """Endpoints, newest first. Only administrators list somebody else's, or everybody's."""
    await check_owner(tx, caller, wanted.user_id, ResourceType.WEBHOOK_ENDPOINT)
    return await store.list_endpoints(tx, wanted, older_than=older_than, limit=limit)


async def get_statistics(tx: Tx, caller: Caller, endpoint_id: str, *, since: datetime) -> Statistics:
    await get_endpoint(tx, caller, endpoint_id)
    return await deliveries.read_statistics(tx, endpoint_id, since=since)


async def check_owner(tx: Tx, caller: Caller, user_id: str | None, type_: ResourceType) -> None:
    """Only administrators look at what is not their own, and that is audited."""
    if user_id == caller.user_id:
        return
    if not caller.is_admin:
        raise AdminOnly("Only an administrator may list other people's webhooks.")
    owner = {"user_id": user_id or EVERYBODY}
    await audit.record(tx, caller.who, Action.READ, Resource(type_, EVERYBODY), data=owner)


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
    """Encrypt the secrets of the next endpoints under the present key; gives the last one, and how many changed."""
    rows = await store.sealed_after(tx, endpoint_id, limit=limit)
    changed = 0
    for each, ciphertext, previous in rows:
        sealed = [text for text in (ciphertext, previous) if text is not None]
        if all(keyring.is_current(text) for text in sealed):
            continue
        anew = [secrets.seal(keyring, each, secrets.unseal(keyring, each, text)) for text in sealed]
        await store.reseal(tx, each, anew[0], anew[1] if previous is not None else None)
        changed += 1
    if changed:
        facts = {"verb": "rotate-keys", "endpoints": str(changed)}
        await audit.record(tx, who, Action.UPDATED, Resource(ResourceType.WEBHOOK_ENDPOINT, EVERYBODY), data=facts)
    return (EndpointId(rows[-1][0]) if rows else None), changed
