"""Routes of account deletions: the caller's own, and any for administrators."""

from datetime import timedelta

from fastapi import Request, Response

from headrace.access import PreconditionFailed
from headrace.accounts.deletion import service as deletion
from headrace.accounts.errors import (
    CsrfFailed,
    DeletionNotFound,
    DeletionStarted,
    InvalidWeChatCode,
    LastAdmin,
    LoginPaused,
    NoPassword,
    PasswordsBusy,
    SessionNeeded,
    UserNotFound,
    WeChatBlocked,
    WeChatOff,
    WeChatUnavailable,
    WrongPassword,
)
from headrace.accounts.model import DeletionStatus
from headrace.accounts.routes.dependencies import AccountsDep
from headrace.accounts.schemas import DeleteMeIn, DeleteUserIn, DeletionOut, UserOut
from headrace.edge.authorization import Admin, SignedIn
from headrace.edge.cookies import forget
from headrace.edge.errors import InvalidCursor
from headrace.edge.etags import etag
from headrace.edge.paging import Page, Paging
from headrace.edge.problem_details import problems
from headrace.edge.routing import Router
from headrace.edge.services import Db, services_of

router = Router(tags=["Accounts"])
admin_router = Router(prefix="/admin", tags=["Administration"])


@router.post(
    "/me/deletion",
    status_code=202,
    response_model=DeletionOut,
    summary="Delete my account",
    responses=problems(
        WrongPassword,
        NoPassword,
        InvalidWeChatCode,
        WeChatOff,
        WeChatBlocked,
        WeChatUnavailable,
        LastAdmin,
        SessionNeeded,
        CsrfFailed,
        PreconditionFailed,
        LoginPaused,
        PasswordsBusy,
    ),
)
async def delete_me(
    body: DeleteMeIn, caller: SignedIn, db: Db, deps: AccountsDep, request: Request, response: Response
) -> DeletionOut:
    """Request the deletion of your account. This ends all your sessions, including this one, and revokes your API keys.

    Until `due_at` all other data stays: log in with `keep_account` to undo the request. Then your tasks are canceled
    and your files, results and personal data are removed permanently. The username becomes free.
    """
    if body.password is not None:
        requested = await deletion.delete_own_account(db, deps, caller, password=body.password.get_secret_value())
    else:
        requested = await deletion.delete_own_wechat_account(db, deps, caller, code=body.code or "")
    forget(response, services_of(request).cookies)
    return DeletionOut.of(requested)


@admin_router.post(
    "/users/{user_id}/deletion",
    status_code=202,
    response_model=DeletionOut,
    summary="Delete a user",
    responses=problems(UserNotFound, LastAdmin, CsrfFailed),
)
async def delete_user(user_id: str, body: DeleteUserIn, caller: Admin, db: Db, deps: AccountsDep) -> DeletionOut:
    """Request the deletion of a user's account. Idempotent; with `at_once` it begins now. Only an administrator can
    undo it."""
    grace = timedelta(0) if body.at_once else deps.config.deletion.grace
    async with db.transaction() as tx:
        return DeletionOut.of(await deletion.delete_account(tx, caller.who, user_id, grace=grace))


@admin_router.get(
    "/users/{user_id}/deletion",
    response_model=DeletionOut,
    summary="Read a user's deletion",
    responses=problems(DeletionNotFound),
)
async def get_user_deletion(user_id: str, caller: Admin, db: Db) -> DeletionOut:
    """The last deletion of an account, with its progress."""
    async with db.transaction() as tx:
        return DeletionOut.of(await deletion.get_deletion(tx, caller.who, user_id))


@admin_router.delete(
    "/users/{user_id}/deletion",
    response_model=UserOut,
    summary="Undo a user's deletion",
    responses=problems(DeletionNotFound, DeletionStarted, CsrfFailed),
)
async def keep_user(user_id: str, caller: Admin, db: Db, response: Response) -> UserOut:
    """Undo a deletion that has not begun: the user's former status is restored. Their API keys stay revoked."""
    async with db.transaction() as tx:
        user = await deletion.keep_account(tx, caller.who, user_id)
    response.headers["ETag"] = etag(user.version)
    return UserOut.of(user)


@admin_router.get(
    "/deletions", response_model=Page[DeletionOut], summary="List deletions", responses=problems(InvalidCursor)
)
async def list_deletions(
    caller: Admin, db: Db, paging: Paging, status: DeletionStatus | None = None
) -> Page[DeletionOut]:
    """Deletions of accounts, newest first."""
    listing = paging.of("deletions", status=status)
    async with db.transaction() as tx:
        rows = await deletion.list_deletions(
            tx, caller.who, status=status, older_than=listing.after, limit=listing.fetch
        )
    return listing.page(rows, mark=lambda each: (each.created_at, each.id), item=DeletionOut.of)
