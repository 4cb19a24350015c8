"""A task's life as server-sent events."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import timedelta
from typing import Annotated

from fastapi import Header, Query, Response
from pydantic import BaseModel

from headrace.access import Caller, Scope
from headrace.edge import streams
from headrace.edge.authorization import Again, AuthenticateAgain
from headrace.edge.problem_details import problems
from headrace.edge.routing import Router
from headrace.edge.services import Db
from headrace.edge.streams import KEEPALIVE, EventStream, MaySee, RevokedOut, TooManyStreams, event_stream
from headrace.errors import Denied
from headrace.tasks import live, service
from headrace.tasks.errors import TaskNotFound
from headrace.tasks.live import EVENT_ID, Event, Kind, event_id
from headrace.tasks.model import Task, TaskStatus
from headrace.tasks.routes.dependencies import Reader, TaskIdPath, Watching
from headrace.tasks.schemas import LogOut, TaskItemOut

router = Router(prefix="/tasks", tags=["Tasks"])

_COME_BACK_AFTER = timedelta(seconds=1)


class EndOut(BaseModel):
    """The last event: null for a task that was deleted."""

    status: TaskStatus | None


@router.get(
    "/{task_id}/events",
    response_class=EventStream,
    summary="Follow a task",
    responses={
        200: {
            "description": "`task`: the task as it is now, first of all and whenever something about it has changed. "
            "`log`: a line of its log. `end`: it is over; nothing follows, and the stream is closed. `revoked`: the "
            "session or the API key was ended, or may no longer see the task; nothing follows either. Comments in "
            "between keep the connection open.",
            "content": {
                "text/event-stream": {
                    "schema": {"type": "string"},
                    "example": 'id: 3.1.17\nevent: log\ndata: {"id": 17, "attempt": 1, "status": "LOG", …}\n\n',
                }
            },
        },
        204: {"description": "It is over, and everything was sent before `Last-Event-ID`: do not reconnect."},
        **problems(TaskNotFound, TooManyStreams),
    },
)
async def follow_task(
    task_id: TaskIdPath,
    caller: Reader,
    again: Again,
    db: Db,
    watch: Watching,
    last_event_id: Annotated[
        str | None,
        Header(
            alias="Last-Event-ID",
            pattern=EVENT_ID,
            description="The last event that was seen: the stream continues after it, without gaps or repetitions.",
        ),
    ] = None,
    after_log: Annotated[
        int | None,
        Query(ge=0, le=2**63 - 1, description="Begin with the log lines after this one: 0 for all there are."),
    ] = None,
) -> Response:
    """Status, step, progress and log lines as they come (server-sent events), until the task is over.

    Every ten seconds the credentials are checked again: a stream ends soon after a logout, the end of an API key or the
    suspension of its user. Browsers' `EventSource` reconnects by itself with the last id when the connection breaks. A
    stream lasts at most a quarter of an hour; then the client reconnects in the same way.
    """
    since = None if last_event_id is None else live.position_of(last_event_id)
    async with db.transaction() as tx:
        task = await service.get_task(tx, caller, task_id)
        if await live.nothing_left(tx, task, since):
            return Response(status_code=204)
    watch.check_room(caller.user_id)
    news = watch.follow(
        task.id, user_id=caller.user_id, since=since, lines_after=after_log, may_see=_may_see(again, caller, task)
    )
    return event_stream(_written(caller, news), come_back_after=_COME_BACK_AFTER)


def _may_see(again: AuthenticateAgain, opener: Caller, task: Task) -> MaySee:
    async def ask() -> bool:
        try:
            caller = await again()
        except Denied:
            return False
        if opener.is_admin and not caller.is_admin:  # the stream shows what administrators see
            return False
        return caller.may(Scope.TASKS_READ) and (caller.user_id == task.user_id or caller.is_admin)

    return ask


async def _written(caller: Caller, news: AsyncGenerator[Event, None]) -> AsyncGenerator[bytes, None]:
    async with aclosing(news):
        async for each in news:
            yield encode(caller, each)


def encode(caller: Caller, event: Event) -> bytes:
    """One event as it goes over the wire to this caller."""
    shown: BaseModel
    match event:
        case Event(kind=Kind.TASK, task=task) if task is not None:
            shown = TaskItemOut.of(service.seen_by(caller, task))
        case Event(kind=Kind.LOG, line=line) if line is not None:
            shown = LogOut.of(service.line_seen_by(caller, line))
        case Event(kind=Kind.END):
            shown = EndOut(status=event.task.status if event.task else None)
        case Event(kind=Kind.REVOKED):
            shown = RevokedOut()
        case _:
            return KEEPALIVE
    return streams.event(event.kind, shown, id=event_id(event.position))
