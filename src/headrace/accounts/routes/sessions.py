"""Routes of the caller's sessions."""

from fastapi import Request, Response

from headrace.accounts import sessions
from headrace.accounts.errors import CsrfFailed, SessionNotFound
from headrace.accounts.routes.dependencies import AccountsDep, Reader, Writer
from headrace.accounts.schemas import EndedOut, SessionOut
from headrace.edge.cookies import forget
from headrace.edge.errors import InvalidCursor
from headrace.edge.paging import Page, Paging
from headrace.edge.problem_details import problems
from headrace.edge.routing import Router
from headrace.edge.services import Db, services_of

router = Router(prefix="/sessions", tags=["Sessions"])


@router.get("", response_model=Page[SessionOut], summary="List sessions", responses=problems(InvalidCursor))
async def list_sessions(caller: Reader, db: Db, deps: AccountsDep, paging: Paging) -> Page[SessionOut]:
    """Your active sessions, newest first."""
    listing = paging.of("sessions", owner=caller.user_id)
    async with db.transaction(readonly=True) as tx:
        rows = await sessions.list_sessions(
            tx, deps.config.sessions, caller, older_than=listing.after, limit=listing.fetch
        )
    return listing.page(
        rows,
        mark=lambda session: (session.created_at, session.id),
        item=lambda session: SessionOut.of(session, current=caller.session_id),
    )


@router.get("/{session_id}", response_model=SessionOut, summary="Read a session", responses=problems(SessionNotFound))
async def get_session(session_id: str, caller: Reader, db: Db, deps: AccountsDep) -> SessionOut:
    """One of your active sessions."""
    async with db.transaction(readonly=True) as tx:
        session = await sessions.get_session(tx, deps.config.sessions, caller, session_id)
    return SessionOut.of(session, current=caller.session_id)


@router.delete("", response_model=EndedOut, summary="End all other sessions", responses=problems(CsrfFailed))
async def revoke_other_sessions(caller: Writer, db: Db) -> EndedOut:
    """End all your sessions but the one of this request."""
    async with db.transaction() as tx:
        return EndedOut(ended=await sessions.revoke_other_sessions(tx, caller))


@router.delete(
    "/{session_id}", status_code=204, summary="End a session", responses=problems(SessionNotFound, CsrfFailed)
)
async def revoke_session(session_id: str, caller: Writer, db: Db, request: Request, response: Response) -> None:
    """End one of your sessions. Ending the session of this request is a logout."""
    async with db.transaction() as tx:
        await sessions.revoke_session(tx, caller, session_id)
    if session_id == caller.session_id:
        forget(response, services_of(request).cookies)
