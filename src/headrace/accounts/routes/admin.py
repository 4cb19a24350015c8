"""Routes of accounts for administrators."""

from typing import Annotated

from fastapi import Depends, Query, Response

from headrace.access import PreconditionFailed, Role
from headrace.accounts import administration, second_factor
from headrace.accounts.errors import (
    CsrfFailed,
    DeletionPending,
    InvalidEmail,
    InvalidPassword,
    InvalidUsername,
    LastAdmin,
    NoPassword,
    PasswordsBusy,
    UsernameTaken,
    UserNotFound,
)
from headrace.accounts.model import User, UserStatus
from headrace.accounts.passwords import generate
from headrace.accounts.registration import prepare, register
from headrace.accounts.routes.dependencies import AccountsDep
from headrace.accounts.schemas import AdminUserIn, ResetPasswordIn, RoleIn, UserNamesOut, UserOut, UserWithPasswordOut
from headrace.database import Tx
from headrace.edge.authorization import Admin
from headrace.edge.errors import InvalidCursor, InvalidIfMatch
from headrace.edge.etags import ExpectedVersion, etag
from headrace.edge.idempotency import ONCE, Answer, Once, idempotent
from headrace.edge.paging import Page, Paging
from headrace.edge.problem_details import problems
from headrace.edge.routing import Router
from headrace.edge.services import Db

router = Router(prefix="/admin/users", tags=["Administration"])

CreateOnce = Annotated[Once, Depends(idempotent("accounts.create_user", secret=True))]
_CHANGE = (UserNotFound, CsrfFailed, PreconditionFailed, InvalidIfMatch)


@router.get("", response_model=Page[UserOut], summary="List users", responses=problems(InvalidCursor))
async def list_users(
    caller: Admin,
    db: Db,
    paging: Paging,
    username: Annotated[str | None, Query(max_length=256, description="Exact match, case-insensitive.")] = None,
    status: UserStatus | None = None,
    role: Role | None = None,
) -> Page[UserOut]:
    """All users, newest first. The read is audited."""
    listing = paging.of("users", username=username, status=status, role=role)
    async with db.transaction() as tx:
        rows = await administration.list_users(
            tx,
            caller.who,
            username=username,
            status=status,
            role=role,
            older_than=listing.after,
            limit=listing.fetch,
        )
    return listing.page(rows, mark=lambda user: (user.created_at, user.id), item=UserOut.of)


@router.get("/names", response_model=UserNamesOut, summary="Read users' names")
async def get_user_names(
    caller: Admin,
    db: Db,
    user_id: Annotated[list[Annotated[str, Query(max_length=64)]], Query(min_length=1, max_length=100)],
) -> UserNamesOut:
    """The usernames of these users, for lists that show what is theirs; unknown ids are left out. Audited."""
    async with db.transaction() as tx:
        return UserNamesOut(names=await administration.list_names(tx, caller.who, user_id))


@router.get("/{user_id}", response_model=UserOut, summary="Read a user", responses=problems(UserNotFound))
async def get_user(user_id: str, caller: Admin, db: Db, response: Response) -> UserOut:
    """One user. The read is audited."""
    async with db.transaction() as tx:
        return _shown(response, await administration.get_user(tx, caller.who, user_id))


@router.post(
    "",
    status_code=201,
    response_model=UserWithPasswordOut,
    summary="Create a user",
    responses=problems(InvalidUsername, InvalidEmail, InvalidPassword, UsernameTaken, CsrfFailed, PasswordsBusy, *ONCE),
)
async def create_user(body: AdminUserIn, caller: Admin, db: Db, deps: AccountsDep, once: CreateOnce) -> Response:
    """Create an account for another person, also where registration is closed."""
    chosen = body.password.get_secret_value() if body.password else None
    password = chosen or generate(deps.config.passwords)
    new = await prepare(
        deps, username=body.username, password=password, email=body.email, role=body.role, by_operator=True
    )

    async def act(tx: Tx) -> Answer:
        user = await register(tx, caller.who, new, welcomes=deps.welcomes)
        return Answer(
            UserWithPasswordOut(user=UserOut.of(user), password=None if chosen else password),
            status=201,
            headers={"Location": f"/v1/admin/users/{user.id}", "ETag": etag(user.version)},
        )

    return await once.run(db, act)


@router.post(
    "/{user_id}/suspend",
    response_model=UserOut,
    summary="Suspend a user",
    responses=problems(*_CHANGE, LastAdmin, DeletionPending),
)
async def suspend_user(user_id: str, caller: Admin, db: Db, expected: ExpectedVersion, response: Response) -> UserOut:
    """Suspend a user: their sessions end and their API keys stop working at once."""
    async with db.transaction() as tx:
        return _shown(response, await administration.suspend(tx, caller.who, user_id, expected=expected))


@router.post(
    "/{user_id}/reinstate",
    response_model=UserOut,
    summary="Reinstate a user",
    responses=problems(*_CHANGE, DeletionPending),
)
async def reinstate_user(user_id: str, caller: Admin, db: Db, expected: ExpectedVersion, response: Response) -> UserOut:
    """Reinstate a suspended user. Their API keys work again; they must log in again."""
    async with db.transaction() as tx:
        return _shown(response, await administration.reinstate(tx, caller.who, user_id, expected=expected))


@router.post(
    "/{user_id}/role", response_model=UserOut, summary="Set a user's role", responses=problems(*_CHANGE, LastAdmin)
)
async def set_user_role(
    user_id: str, body: RoleIn, caller: Admin, db: Db, expected: ExpectedVersion, response: Response
) -> UserOut:
    """Set a user's role. It applies from their next request on."""
    async with db.transaction() as tx:
        return _shown(response, await administration.set_role(tx, caller.who, user_id, body.role, expected=expected))


@router.post(
    "/{user_id}/password",
    response_model=UserWithPasswordOut,
    summary="Reset a user's password",
    responses=problems(*_CHANGE, InvalidPassword, NoPassword, PasswordsBusy),
)
async def reset_user_password(
    user_id: str,
    body: ResetPasswordIn,
    caller: Admin,
    db: Db,
    deps: AccountsDep,
    expected: ExpectedVersion,
    response: Response,
) -> UserWithPasswordOut:
    """Set a user's password, for instance a forgotten one. All their sessions end."""
    chosen = body.password.get_secret_value() if body.password else None
    password = chosen or generate(deps.config.passwords)
    user = await administration.reset_password(db, deps, caller.who, user_id, password, expected=expected)
    return UserWithPasswordOut(user=_shown(response, user), password=None if chosen else password)


@router.delete(
    "/{user_id}/second-factor",
    response_model=UserOut,
    summary="Turn a user's second factor off",
    responses=problems(UserNotFound, CsrfFailed),
)
async def disable_user_second_factor(user_id: str, caller: Admin, db: Db, response: Response) -> UserOut:
    """Turn a user's second factor off, when they lost their phone and their recovery codes. Idempotent."""
    async with db.transaction() as tx:
        return _shown(response, await second_factor.turn_off_for(tx, caller.who, user_id))


def _shown(response: Response, user: User) -> UserOut:
    response.headers["ETag"] = etag(user.version)
    return UserOut.of(user)
