"""Routes that create, read and change endpoints."""

from datetime import timedelta
from typing import Annotated

from fastapi import Depends, Query, Response

from headrace import clock
from headrace.access import AdminOnly, PreconditionFailed
from headrace.database import Tx
from headrace.edge.errors import InvalidCursor, InvalidIfMatch
from headrace.edge.etags import ExpectedVersion, etag
from headrace.edge.idempotency import ONCE, Answer, Once, idempotent
from headrace.edge.paging import Page, Paging
from headrace.edge.problem_details import problems
from headrace.edge.routing import Router
from headrace.edge.services import Db
from headrace.outbox.interests import EventWritersBusy
from headrace.webhooks import resending, service
from headrace.webhooks.errors import (
    EndpointInvalid,
    EndpointNotActive,
    EndpointNotFound,
    EndpointUrlTaken,
    SecretInvalid,
    TooManyEndpoints,
)
from headrace.webhooks.http.targets import UrlRefused
from headrace.webhooks.model import Endpoint, EndpointStatus
from headrace.webhooks.routes.dependencies import EndpointIdPath, Hooks, Owner, Reader, Writer, owner_of
from headrace.webhooks.schemas import (
    DeliveryOut,
    EndpointChangeIn,
    EndpointIn,
    EndpointMadeOut,
    EndpointOut,
    EndpointStatisticsOut,
    ResendIn,
    ResentOut,
    RotateIn,
)
from headrace.webhooks.store.endpoints import EndpointFilter

router = Router(prefix="/endpoints", tags=["Webhooks"])

CreateOnce = Annotated[Once, Depends(idempotent("webhooks.create", secret=True))]
RotateOnce = Annotated[Once, Depends(idempotent("webhooks.rotate", secret=True))]
TestOnce = Annotated[Once, Depends(idempotent("webhooks.test"))]
_REFUSED = (EndpointInvalid, UrlRefused, EndpointUrlTaken, AdminOnly, EventWritersBusy)
_CHANGE = (EndpointNotFound, PreconditionFailed, InvalidIfMatch)


@router.post(
    "",
    status_code=201,
    response_model=EndpointMadeOut,
    summary="Create an endpoint",
    responses=problems(*_REFUSED, SecretInvalid, TooManyEndpoints, *ONCE),
)
async def create_endpoint(body: EndpointIn, caller: Writer, db: Db, hooks: Hooks, once: CreateOnce) -> Response:
    """Send your events to your server, beginning with events that commit from now on. The answer holds the signing
    secret, which is shown only once."""

    async def act(tx: Tx) -> Answer:
        endpoint, secret = await service.create_endpoint(tx, hooks, caller, body.spec(), secret=body.secret)
        headers = {"Location": f"/v1/webhooks/endpoints/{endpoint.id}", "ETag": etag(endpoint.version)}
        return Answer(EndpointMadeOut.made(endpoint, secret), status=201, headers=headers)

    return await once.run(db, act)


@router.get(
    "", response_model=Page[EndpointOut], summary="List endpoints", responses=problems(InvalidCursor, AdminOnly)
)
async def list_endpoints(
    caller: Reader, db: Db, paging: Paging, status: EndpointStatus | None = None, user_id: Owner = None
) -> Page[EndpointOut]:
    """Endpoints, newest first."""
    owner = owner_of(caller, user_id)
    listing = paging.of("webhooks.endpoints", owner=owner, everybody=owner is None, status=status)
    async with db.transaction() as tx:
        found = await service.list_endpoints(
            tx, caller, EndpointFilter(owner, status), older_than=listing.after, limit=listing.fetch
        )
    return listing.page(found, mark=lambda each: (each.created_at, each.id), item=EndpointOut.of)


@router.get(
    "/{endpoint_id}", response_model=EndpointOut, summary="Read an endpoint", responses=problems(EndpointNotFound)
)
async def get_endpoint(endpoint_id: EndpointIdPath, caller: Reader, db: Db, response: Response) -> EndpointOut:
    async with db.transaction() as tx:
        return _shown(response, await service.get_endpoint(tx, caller, endpoint_id))


@router.patch(
    "/{endpoint_id}",
    response_model=EndpointOut,
    summary="Change an endpoint",
    responses=problems(*_CHANGE, *_REFUSED),
)
async def update_endpoint(
    endpoint_id: EndpointIdPath,
    body: EndpointChangeIn,
    caller: Writer,
    db: Db,
    hooks: Hooks,
    expected: ExpectedVersion,
    response: Response,
) -> EndpointOut:
    """Change some properties. Waiting deliveries are sent with the new ones."""
    async with db.transaction() as tx:
        return _shown(
            response,
            await service.update_endpoint(tx, hooks, caller, endpoint_id, body.changes(), expected=expected),
        )


@router.delete("/{endpoint_id}", status_code=204, summary="Delete an endpoint", responses=problems(*_CHANGE))
async def delete_endpoint(endpoint_id: EndpointIdPath, caller: Writer, db: Db, expected: ExpectedVersion) -> None:
    """Remove an endpoint. Waiting deliveries are not sent; the record of past ones stays."""
    async with db.transaction() as tx:
        await service.delete_endpoint(tx, caller, endpoint_id, expected=expected)


@router.post(
    "/{endpoint_id}/pause",
    response_model=EndpointOut,
    summary="Pause an endpoint",
    responses=problems(*_CHANGE, EndpointNotActive),
)
async def pause_endpoint(
    endpoint_id: EndpointIdPath, caller: Writer, db: Db, expected: ExpectedVersion, response: Response
) -> EndpointOut:
    """Send nothing until it is resumed. Events wait, each for at most `HEADRACE_WEBHOOK_LIFETIME`."""
    async with db.transaction() as tx:
        return _shown(response, await service.pause_endpoint(tx, caller, endpoint_id, expected=expected))


@router.post(
    "/{endpoint_id}/resume",
    response_model=EndpointOut,
    summary="Resume an endpoint",
    responses=problems(*_CHANGE, EventWritersBusy),
)
async def resume_endpoint(
    endpoint_id: EndpointIdPath, caller: Writer, db: Db, expected: ExpectedVersion, response: Response
) -> EndpointOut:
    """Send again, oldest deliveries first. A disabled endpoint receives only events from now on."""
    async with db.transaction() as tx:
        return _shown(response, await service.resume_endpoint(tx, caller, endpoint_id, expected=expected))


@router.post(
    "/{endpoint_id}/rotate-secret",
    response_model=EndpointMadeOut,
    summary="Rotate an endpoint's secret",
    responses=problems(*_CHANGE, SecretInvalid, *ONCE),
)
async def rotate_secret(
    endpoint_id: EndpointIdPath,
    caller: Writer,
    db: Db,
    hooks: Hooks,
    once: RotateOnce,
    expected: ExpectedVersion,
    body: RotateIn | None = None,
) -> Response:
    """The old secret signs beside the new one for `HEADRACE_WEBHOOK_SECRET_OVERLAP` (a day): change it at the receiver
    meanwhile. If the old one has leaked, rotate twice."""

    async def act(tx: Tx) -> Answer:
        endpoint, secret = await service.rotate_secret(
            tx, hooks, caller, endpoint_id, secret=None if body is None else body.secret, expected=expected
        )
        return Answer(EndpointMadeOut.made(endpoint, secret), status=200, headers={"ETag": etag(endpoint.version)})

    return await once.run(db, act)


@router.post(
    "/{endpoint_id}/test",
    status_code=201,
    response_model=DeliveryOut,
    summary="Send a test event",
    responses=problems(EndpointNotFound, EndpointNotActive, *ONCE),
)
async def send_test(endpoint_id: EndpointIdPath, caller: Writer, db: Db, once: TestOnce) -> Response:
    """Send `webhook.test` to this endpoint; read the delivery for the result."""

    async def act(tx: Tx) -> Answer:
        delivery = await resending.send_test(tx, caller, endpoint_id)
        headers = {"Location": f"/v1/webhooks/deliveries/{delivery.delivery_id}"}
        return Answer(DeliveryOut.of(delivery), status=201, headers=headers)

    return await once.run(db, act)


@router.post(
    "/{endpoint_id}/resend",
    response_model=ResentOut,
    summary="Resend failed deliveries",
    responses=problems(EndpointNotFound, EndpointNotActive, EndpointInvalid),
)
async def resend_failed(endpoint_id: EndpointIdPath, body: ResendIn, caller: Writer, db: Db) -> ResentOut:
    """One more attempt for each event whose last attempt failed for good (`FAILED`, `DEAD`) in this time range."""
    async with db.transaction() as tx:
        resent = await resending.resend_failed(tx, caller, endpoint_id, since=body.since, until=body.until)
    return ResentOut(resent=resent, more=resent >= resending.MAX_RESENT)


@router.get(
    "/{endpoint_id}/statistics",
    response_model=EndpointStatisticsOut,
    summary="Read an endpoint's statistics",
    responses=problems(EndpointNotFound),
)
async def get_endpoint_statistics(
    endpoint_id: EndpointIdPath,
    caller: Reader,
    db: Db,
    hours: Annotated[int, Query(ge=1, le=24 * 30, description="The last hours to count.")] = 24,
) -> EndpointStatisticsOut:
    """Attempts, success rate and latency of the last hours, and the present health."""
    since = clock.now() - timedelta(hours=hours)
    async with db.transaction() as tx:
        return EndpointStatisticsOut.of(await service.get_statistics(tx, caller, endpoint_id, since=since))


def _shown(response: Response, endpoint: Endpoint) -> EndpointOut:
    response.headers["ETag"] = etag(endpoint.version)
    return EndpointOut.of(endpoint)
