"""Automatic changes of endpoints: pause one that has failed for days, disable one that answers 410 Gone.

An event notifies the owner, also through their other endpoints; the endpoint itself shows the reason.
"""

from headrace import audit, logs, outbox
from headrace.audit import Action, Who
from headrace.database import Tx
from headrace.outbox import Event, interests
from headrace.webhooks.model import CONSUMER, DeliveryStatus, Endpoint, EndpointStatus, StatusReason
from headrace.webhooks.resources import resource_of
from headrace.webhooks.store import endpoints as store
from headrace.webhooks.store import queue

log = logs.get(__name__)

PAUSED_EVENT = "webhook.endpoint.paused"
DISABLED_EVENT = "webhook.endpoint.disabled"


async def pause_failing(tx: Tx, endpoint: Endpoint) -> Endpoint | None:
    """Pause an endpoint until a user resumes it; its events stay queued. None if it is not active."""
    paused = await store.set_status(
        tx, endpoint.id, EndpointStatus.PAUSED, reason=StatusReason.FAILING, of=(EndpointStatus.ACTIVE,)
    )
    if paused is not None:
        await _append_event(tx, PAUSED_EVENT, endpoint, paused)
    return paused


async def disable_gone(tx: Tx, endpoint_id: str) -> Endpoint | None:
    """Disable an endpoint that answered 410: end its waiting deliveries, queue no more. None if already disabled."""
    endpoint = await store.find(tx, endpoint_id, lock=True)
    if endpoint is None:
        return None
    disabled = await store.set_status(
        tx,
        endpoint_id,
        EndpointStatus.DISABLED,
        reason=StatusReason.GONE,
        of=(EndpointStatus.ACTIVE, EndpointStatus.PAUSED),
    )
    if disabled is None:
        return None
    await end_waiting(tx, endpoint_id, "the endpoint said that it is gone (410)")
    await _append_event(tx, DISABLED_EVENT, endpoint, disabled)
    await interests.withdraw(tx, CONSUMER, endpoint_id)
    return disabled


async def end_waiting(tx: Tx, endpoint_id: str, why: str) -> int:
    """End all waiting deliveries of an endpoint; returns their number."""
    ended = 0
    while batch := await queue.end_all(tx, endpoint_id, status=DeliveryStatus.FAILED, error=why):
        ended += batch
    return ended


async def _append_event(tx: Tx, event_type: str, old: Endpoint, new: Endpoint) -> None:
    payload = {
        "endpoint_id": new.id,
        "user_id": new.user_id,
        "name": new.name,
        "status": new.status,
        "reason": new.status_reason,
        "failing_since": None if old.failing_since is None else old.failing_since.isoformat(),
    }
    await outbox.append(tx, [Event(event_type, "webhook_endpoint", new.id, payload, user_id=new.user_id)])
    await audit.record(tx, Who.system(), Action.DISABLED, resource_of(new), old=old, new=new)
    log.warning(event_type, endpoint_id=new.id, reason=new.status_reason)
