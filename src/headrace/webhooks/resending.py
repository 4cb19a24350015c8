"""Deliveries by hand: read them, send a test, resend one, resend all that failed."""

from datetime import datetime

from headrace import audit, clock, ids
from headrace.access import Caller
from headrace.audit import Action, Resource, ResourceType
from headrace.database import Tx
from headrace.outbox import Event
from headrace.outbox.consumers import StoredEvent
from headrace.sql import Mark
from headrace.walks import Found
from headrace.webhooks.errors import (
    DeliveryNotFound,
    DeliveryUnderWay,
    EndpointInvalid,
    EndpointNotActive,
    EndpointNotFound,
)
from headrace.webhooks.model import TEST_EVENT, Delivery, Endpoint, EndpointStatus
from headrace.webhooks.resources import resource_of
from headrace.webhooks.service import check_owner, get_endpoint
from headrace.webhooks.store import deliveries as store
from headrace.webhooks.store import endpoints, fan_out, resending
from headrace.webhooks.store.deliveries import DeliveryFilter

MAX_RESENT = 10_000  # deliveries by one request


async def get_delivery(tx: Tx, caller: Caller, delivery_id: str) -> Delivery:
    """One attempt with its request and response; another user's is not found."""
    try:
        found = await store.find(tx, ids.check(delivery_id, "whd"))
    except (ids.InvalidId, ValueError):  # the id may name an impossible month
        found = None
    if found is None:
        raise DeliveryNotFound
    try:
        await get_endpoint(tx, caller, found.endpoint_id)
    except EndpointNotFound:
        if not await _is_own_past(tx, caller, found):
            raise DeliveryNotFound from None
    return found


async def _is_own_past(tx: Tx, caller: Caller, delivery: Delivery) -> bool:
    """Whether it belongs to a deleted endpoint of the caller, whose deliveries stay readable."""
    owner = await endpoints.find_owner(tx, delivery.endpoint_id)
    return owner == caller.user_id or caller.is_admin


async def list_deliveries(
    tx: Tx, caller: Caller, wanted: DeliveryFilter, *, older_than: Mark | None = None, limit: int
) -> Found[Delivery]:
    """Attempts, newest first. Only administrators list other users' deliveries."""
    await check_owner(tx, caller, wanted.user_id, ResourceType.WEBHOOK_DELIVERY)
    return await store.list_deliveries(tx, wanted, older_than=older_than, limit=limit)


async def send_test(tx: Tx, caller: Caller, endpoint_id: str) -> Delivery:
    """Send a test event, signed and retried like all others."""
    endpoint = await _active(tx, caller, endpoint_id)
    data = {"endpoint_id": endpoint.id, "message": "This is a test. If you can read it, it works."}
    event = Event(TEST_EVENT, "webhook_endpoint", endpoint.id, data, user_id=endpoint.user_id)
    body = fan_out.body_of(StoredEvent(0, event, clock.now()))  # not in the outbox: it is for one endpoint alone
    delivery = await resending.insert_test(tx, endpoint.id, event_id=event.id, event_type=TEST_EVENT, body=body)
    await audit.record(tx, caller.who, Action.CREATED, _resource(delivery), data={"verb": "test"})
    await fan_out.wake_senders(tx)
    return delivery


async def resend(tx: Tx, caller: Caller, delivery_id: str) -> Delivery:
    """Send a delivery's event to its endpoint again, whatever its result; returns the new attempt."""
    old = await get_delivery(tx, caller, delivery_id)
    await _active(tx, caller, old.endpoint_id)
    new = await resending.resend_one(tx, old.endpoint_id, old.event_id)
    if new is None:
        raise DeliveryUnderWay
    await audit.record(tx, caller.who, Action.CREATED, _resource(new), data={"verb": "resend"})
    await fan_out.wake_senders(tx)
    return new


async def resend_failed(
    tx: Tx, caller: Caller, endpoint_id: str, *, since: datetime, until: datetime | None = None
) -> int:
    """Resend deliveries that failed for good in a range; returns their number, ``MAX_RESENT`` if more may remain."""
    endpoint = await _active(tx, caller, endpoint_id)
    end = until or clock.now()
    if since >= end:
        raise EndpointInvalid("The start must lie before the end.", field="since")
    resent = await resending.resend_failed(tx, endpoint.id, since=since, until=end, limit=MAX_RESENT)
    if resent:
        facts = {"verb": "resend", "deliveries": str(resent), "since": since.isoformat(), "until": end.isoformat()}
        await audit.record(tx, caller.who, Action.UPDATED, resource_of(endpoint), data=facts)
        await fan_out.wake_senders(tx)
    return resent


async def _active(tx: Tx, caller: Caller, endpoint_id: str) -> Endpoint:
    endpoint = await get_endpoint(tx, caller, endpoint_id)
    if endpoint.status is not EndpointStatus.ACTIVE:
        raise EndpointNotActive(status=endpoint.status)
    return endpoint


def _resource(delivery: Delivery) -> Resource:
    return Resource(
        ResourceType.WEBHOOK_DELIVERY,
        delivery.delivery_id,
        {"endpoint_id": delivery.endpoint_id, "event_id": delivery.event_id, "event_type": delivery.event_type},
        space_path=f"{delivery.endpoint_id}/{delivery.delivery_id}",
    )
