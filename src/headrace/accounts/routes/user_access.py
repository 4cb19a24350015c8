"""Routes of a user's sessions and API keys, for administrators."""

from headrace.accounts import user_access
from headrace.accounts.errors import ApiKeyNotFound, CsrfFailed, SessionNotFound, UserNotFound
from headrace.accounts.routes.dependencies import AccountsDep
from headrace.accounts.schemas import ApiKeyOut, SessionOut
from headrace.edge.authorization import Admin
from headrace.edge.errors import InvalidCursor
from headrace.edge.paging import Page, Paging
from headrace.edge.problem_details import problems
from headrace.edge.routing import Router
from headrace.edge.services import Db

router = Router(prefix="/admin/users/{user_id}", tags=["Administration"])


@router.get(
    "/sessions",
    response_model=Page[SessionOut],
    summary="List a user's sessions",
    responses=problems(InvalidCursor, UserNotFound),
)
async def list_user_sessions(
    user_id: str, caller: Admin, db: Db, deps: AccountsDep, paging: Paging
) -> Page[SessionOut]:
    """A user's active sessions, newest first. The read is audited."""
    listing = paging.of("user_sessions", user=user_id)
    async with db.transaction() as tx:
        rows = await user_access.list_sessions(
            tx, deps.config.sessions, caller.who, user_id, older_than=listing.after, limit=listing.fetch
        )
    return listing.page(
        rows,
        mark=lambda session: (session.created_at, session.id),
        item=lambda session: SessionOut.of(session, current=caller.session_id),
    )


@router.delete(
    "/sessions/{session_id}",
    status_code=204,
    summary="End a user's session",
    responses=problems(UserNotFound, SessionNotFound, CsrfFailed),
)
async def revoke_user_session(user_id: str, session_id: str, caller: Admin, db: Db) -> None:
    """End one of a user's sessions, for instance on a lost device. Suspend the user to end all at once."""
    async with db.transaction() as tx:
        await user_access.revoke_session(tx, caller.who, user_id, session_id)


@router.get(
    "/api-keys",
    response_model=Page[ApiKeyOut],
    summary="List a user's API keys",
    responses=problems(InvalidCursor, UserNotFound),
)
async def list_user_api_keys(user_id: str, caller: Admin, db: Db, paging: Paging) -> Page[ApiKeyOut]:
    """A user's unrevoked API keys, without the keys themselves, newest first. The read is audited."""
    listing = paging.of("user_api_keys", user=user_id)
    async with db.transaction() as tx:
        rows = await user_access.list_api_keys(tx, caller.who, user_id, older_than=listing.after, limit=listing.fetch)
    return listing.page(rows, mark=lambda key: (key.created_at, key.id), item=ApiKeyOut.of)


@router.delete(
    "/api-keys/{api_key_id}",
    status_code=204,
    summary="Revoke a user's API key",
    responses=problems(UserNotFound, ApiKeyNotFound, CsrfFailed),
)
async def revoke_user_api_key(user_id: str, api_key_id: str, caller: Admin, db: Db) -> None:
    """Revoke one of a user's API keys, for instance one that leaked. It stops working at once."""
    async with db.transaction() as tx:
        await user_access.revoke_api_key(tx, caller.who, user_id, api_key_id)
