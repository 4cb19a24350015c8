"""Notifications over HTTP: each caller's own."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import timedelta
from typing import Annotated

from fastapi import Depends, Header, Path, Query, Request, Response

from headrace.access import Caller, Scope
from headrace.edge.authorization import Again, AuthenticateAgain, scoped
from headrace.edge.errors import InvalidCursor
from headrace.edge.paging import Page, Paging
from headrace.edge.problem_details import problems
from headrace.edge.routing import Router
from headrace.edge.services import Db
from headrace.edge.streams import (
    KEEPALIVE,
    EventStream,
    Heartbeat,
    MaySee,
    Revoked,
    RevokedOut,
    TooManyStreams,
    event,
    event_stream,
)
from headrace.errors import Denied
from headrace.notifications import service
from headrace.notifications.errors import NotificationNotFound
from headrace.notifications.live import Inbox
from headrace.notifications.model import Notification
from headrace.notifications.schemas import LanguageBody, MarkedOut, NotificationOut, ReadAllIn, UnreadOut

router = Router(prefix="/v1/notifications", tags=["Notifications"])

Reader = Annotated[Caller, Depends(scoped(Scope.NOTIFICATIONS_READ))]
Writer = Annotated[Caller, Depends(scoped(Scope.NOTIFICATIONS_WRITE))]
NotificationId = Annotated[str, Path(max_length=32, examples=["17"])]
_RECONNECT_AFTER = timedelta(seconds=1)
_MAX_ID_DIGITS = 18  # digits of a bigint


def create_router(inbox: Inbox) -> Router:
    """All routes of this package, with the streams of this process."""

    async def give(request: Request) -> None:
        request.state.inbox = inbox

    given = Router(dependencies=[Depends(give)])
    given.include(router)
    return given


@router.get("", response_model=Page[NotificationOut], summary="List notifications", responses=problems(InvalidCursor))
async def list_notifications(
    caller: Reader,
    db: Db,
    paging: Paging,
    unread: Annotated[bool | None, Query(description="`true` for unread, `false` for read ones.")] = None,
) -> Page[NotificationOut]:
    """Your notifications, newest first."""
    listing = paging.of("notifications", owner=caller.user_id, unread=unread)
    before = int(listing.after[1]) if listing.after else None
    async with db.transaction(readonly=True) as tx:
        rows = await service.list_notifications(tx, caller, unread=unread, before=before, limit=listing.fetch)
    return listing.page(rows, mark=lambda each: (each.created_at, str(each.id)), item=NotificationOut.of)


@router.get("/unread-count", response_model=UnreadOut, summary="Count unread notifications")
async def count_unread(caller: Reader, db: Db) -> UnreadOut:
    async with db.transaction(readonly=True) as tx:
        return UnreadOut(unread=await service.count_unread(tx, caller))


@router.post(
    "/{notification_id}/read",
    response_model=NotificationOut,
    summary="Mark a notification as read",
    responses=problems(NotificationNotFound),
)
async def mark_read(notification_id: NotificationId, caller: Writer, db: Db) -> NotificationOut:
    """Idempotent."""
    async with db.transaction() as tx:
        return NotificationOut.of(await service.mark_read(tx, caller, _number(notification_id)))


def _number(text: str) -> int:
    """The number in a path; ``NotificationNotFound`` if it is none."""
    if not (text.isascii() and text.isdigit() and len(text) <= _MAX_ID_DIGITS):
        raise NotificationNotFound
    return int(text)


@router.post("/read-all", response_model=MarkedOut, summary="Mark all notifications as read")
async def mark_all_read(body: ReadAllIn, caller: Writer, db: Db) -> MarkedOut:
    """Send the newest id that you have shown as `up_to`, so that later ones stay unread."""
    async with db.transaction() as tx:
        return MarkedOut(marked=await service.mark_all_read(tx, caller, up_to=body.up_to))


@router.get("/language", response_model=LanguageBody, summary="Read your language")
async def get_language(caller: Reader, db: Db) -> LanguageBody:
    async with db.transaction(readonly=True) as tx:
        return LanguageBody(language=await service.get_language(tx, caller))


@router.put("/language", response_model=LanguageBody, summary="Choose your language")
async def set_language(body: LanguageBody, caller: Writer, db: Db) -> LanguageBody:
    """Set the language of future notifications."""
    async with db.transaction() as tx:
        return LanguageBody(language=await service.set_language(tx, caller, body.language))


@router.get(
    "/events",
    response_class=EventStream,
    summary="Follow your notifications",
    responses={
        200: {
            "description": "`notification`: a new one. `revoked`: the session or API key was ended; nothing "
            "follows. Comments in between keep the connection open.",
            "content": {
                "text/event-stream": {
                    "schema": {"type": "string"},
                    "example": 'id: 17\nevent: notification\ndata: {"id": 17, "type": "TASK_SUCCEEDED", …}\n\n',
                }
            },
        },
        **problems(TooManyStreams),
    },
)
async def follow_notifications(
    caller: Reader,
    again: Again,
    request: Request,
    last_event_id: Annotated[
        str | None,
        Header(
            alias="Last-Event-ID",
            pattern="^[0-9]{1,18}$",
            description="The id of the last one received: the stream continues after it.",
        ),
    ] = None,
) -> Response:
    """Your notifications, live (server-sent events). A stream lasts at most a quarter of an hour; then the client
    reconnects with the last id, as browsers' `EventSource` does."""
    inbox = request.state.inbox
    assert isinstance(inbox, Inbox)
    inbox.check_room(caller.user_id)
    after = None if last_event_id is None else int(last_event_id)
    news = inbox.follow(caller.user_id, after=after, may_see=_may_see(again, caller))
    return event_stream(_written(news), come_back_after=_RECONNECT_AFTER)


def _may_see(again: AuthenticateAgain, caller: Caller) -> MaySee:
    async def ask() -> bool:
        try:
            now = await again()
        except Denied:
            return False
        return now.may(Scope.NOTIFICATIONS_READ) and now.user_id == caller.user_id

    return ask


async def _written(
    news: AsyncGenerator[Notification | Heartbeat | Revoked, None],
) -> AsyncGenerator[bytes, None]:
    async with aclosing(news):
        async for each in news:
            match each:
                case Notification():
                    yield event("notification", NotificationOut.of(each), id=each.id)
                case Revoked():
                    yield event("revoked", RevokedOut())
                case Heartbeat():
                    yield KEEPALIVE
