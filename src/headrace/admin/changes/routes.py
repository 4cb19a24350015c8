"""What changes, as server-sent events for administrators."""

import itertools
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import timedelta
from typing import Annotated

from fastapi import Depends, Header, Request, Response
from pydantic import BaseModel, Field

from headrace import audit
from headrace.admin.changes.live import Changes
from headrace.admin.changes.model import Kind, News
from headrace.audit import Action, Resource, ResourceType
from headrace.edge.authorization import Admin, Again, AuthenticateAgain
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
from headrace.schedules.schemas import ExecutionItemOut
from headrace.tasks.schemas import TaskItemOut
from headrace.tasks.service import EVERYBODY

router = Router(tags=["Operations"])

_COME_BACK_AFTER = timedelta(seconds=2)


class ChangesOut(BaseModel):
    """The changes."""

    kinds: list[Kind] = Field(description="What to read again.")
    tasks: list[TaskItemOut] = Field(description="Tasks as they are now.")
    runs: list[ExecutionItemOut] = Field(description="Runs of schedules as they are now.")

    @classmethod
    def of(cls, news: News) -> "ChangesOut":
        return cls(
            kinds=sorted(news.kinds),
            tasks=[TaskItemOut.of(task) for task in news.tasks],
            runs=[ExecutionItemOut.of(run) for run in news.runs],
        )


def create_router(changes: Changes) -> Router:
    """This route, with the streams of this process."""

    async def give(request: Request) -> None:
        request.state.changes = changes

    parent = Router(prefix="/v1/admin", dependencies=[Depends(give)])
    parent.include(router)
    return parent


@router.get(
    "/changes",
    response_class=EventStream,
    summary="Follow what changes",
    responses={
        200: {
            "description": "`changed`: tasks and runs as they are now, and the kinds of things that are to be read "
            "again. `revoked`: the session or the API key was ended, or its user is no administrator any more; nothing "
            "follows. Comments in between keep the connection open.",
            "content": {
                "text/event-stream": {
                    "schema": {"type": "string"},
                    "example": 'id: 17\nevent: changed\ndata: {"kinds": ["locks"], "tasks": [], "runs": []}\n\n',
                }
            },
        },
        **problems(TooManyStreams),
    },
)
async def follow_changes(
    caller: Admin,
    again: Again,
    request: Request,
    db: Db,
    last_event_id: Annotated[
        str | None,
        Header(
            alias="Last-Event-ID",
            pattern="^[0-9]{1,18}$",
            description="The last event that was seen. A client that names one is first asked to read everything "
            "again: the changes in between were not kept.",
        ),
    ] = None,
) -> Response:
    """Everyone's tasks and runs as they move, and other changes (server-sent events), within a second or two.

    Opening it is in the audit trail, once for all that it shows. A stream lasts at most a quarter of an hour; then
    the client reconnects, as browsers' `EventSource` does by itself.
    """
    changes = request.state.changes
    assert isinstance(changes, Changes)
    changes.check_room(caller.user_id)
    async with db.transaction() as tx:
        whose = {"user_id": EVERYBODY, "of": "changes"}
        for kind in (ResourceType.TASK, ResourceType.EXECUTION):
            await audit.record(tx, caller.who, Action.READ, Resource(kind, "*"), data=whose)
    news = changes.follow(caller.user_id, again=last_event_id is not None, may_see=_may_see(again, caller.user_id))
    return event_stream(_written(news), come_back_after=_COME_BACK_AFTER)


def _may_see(again: AuthenticateAgain, user_id: str) -> MaySee:
    async def ask() -> bool:
        try:
            now = await again()
        except Denied:
            return False
        return now.is_admin and now.user_id == user_id

    return ask


async def _written(news: AsyncGenerator[News | Heartbeat | Revoked, None]) -> AsyncGenerator[bytes, None]:
    numbers = itertools.count(1)
    async with aclosing(news):
        async for each in news:
            match each:
                case News():
                    yield event("changed", ChangesOut.of(each), id=next(numbers))
                case Revoked():
                    yield event("revoked", RevokedOut())
                case Heartbeat():
                    yield KEEPALIVE
