"""Routes of registration, login, logout and the caller's profile."""

from typing import Annotated

from fastapi import Depends, Request, Response

from headrace.access import PreconditionFailed
from headrace.accounts import login, password_change, profile, registration, sessions, tokens
from headrace.accounts.errors import (
    AccountBeingDeleted,
    AccountSuspended,
    BadCredentials,
    CsrfFailed,
    InvalidEmail,
    InvalidMobile,
    InvalidPassword,
    InvalidUsername,
    InvalidWeChatCode,
    LoginPaused,
    NoPassword,
    PasswordsBusy,
    RegistrationClosed,
    SecondFactorNeeded,
    SessionNeeded,
    UsernameTaken,
    WeChatBlocked,
    WeChatOff,
    WeChatUnavailable,
    WrongCode,
    WrongPassword,
)
from headrace.accounts.model import LoggedIn
from headrace.accounts.routes.dependencies import AccountsDep
from headrace.accounts.schemas import (
    LoginIn,
    LoginOut,
    MeOut,
    OwnUserOut,
    PasswordIn,
    ProfileIn,
    RegisterIn,
    UserOut,
    WeChatIn,
)
from headrace.accounts.service import Accounts
from headrace.database import Tx
from headrace.edge.authorization import Anyone, SignedIn
from headrace.edge.cookies import forget, remember
from headrace.edge.errors import InvalidIfMatch
from headrace.edge.etags import ExpectedVersion, etag
from headrace.edge.idempotency import ONCE, Answer, Once, idempotent
from headrace.edge.limits import bucket_of, take
from headrace.edge.problem_details import problems
from headrace.edge.routing import Router
from headrace.edge.services import Db, services_of

router = Router(tags=["Accounts"])

RegisterOnce = Annotated[Once, Depends(idempotent("accounts.register"))]


@router.post(
    "/auth/register",
    status_code=201,
    response_model=UserOut,
    summary="Register",
    responses=problems(
        InvalidUsername, InvalidEmail, InvalidPassword, UsernameTaken, RegistrationClosed, PasswordsBusy, *ONCE
    ),
)
async def register(body: RegisterIn, who: Anyone, db: Db, deps: AccountsDep, once: RegisterOnce) -> Response:
    """Create an account with a username and a password. Log in with a separate request.

    The username is kept in lower case. Closed installations answer `registration_closed`.
    """
    registration.refuse_if_closed(deps)
    stranger = bucket_of(user_id=None, client_ip=who.client_ip)
    await take(db, f"register:{stranger}", deps.config.registration_limit)
    new = await registration.prepare(
        deps, username=body.username, password=body.password.get_secret_value(), email=body.email
    )

    async def act(tx: Tx) -> Answer:
        user = await registration.register(tx, who, new, welcomes=deps.welcomes)
        return Answer(UserOut.of(user), status=201, headers={"Location": "/v1/me", "ETag": etag(user.version)})

    return await once.run(db, act)


@router.post(
    "/auth/login",
    response_model=LoginOut,
    summary="Log in",
    responses=problems(
        BadCredentials,
        SecondFactorNeeded,
        WrongCode,
        AccountSuspended,
        AccountBeingDeleted,
        LoginPaused,
        PasswordsBusy,
    ),
)
async def log_in(
    body: LoginIn, who: Anyone, db: Db, deps: AccountsDep, request: Request, response: Response
) -> LoginOut:
    """Open a session with a username and a password.

    Browsers get two cookies: the session, which scripts cannot read, and the CSRF token, which they send back as
    `X-CSRF-Token`. Programs take `token` from the body. After some failures for one account or from one address each
    further one begins a pause of up to five minutes: `login_paused` has it in `Retry-After`. An account with a pending
    deletion answers `account_being_deleted`; `keep_account` undoes the deletion. An account with a second factor
    answers `second_factor_needed`: send the same again with `code`.
    """
    logged_in = await login.log_in(
        db,
        deps,
        who,
        username=body.username,
        password=body.password.get_secret_value(),
        code=body.code.get_secret_value() if body.code else None,
        keep_account=body.keep_account,
    )
    return _welcome(request, response, deps, logged_in)


@router.post(
    "/auth/wechat",
    response_model=LoginOut,
    summary="Log in with WeChat",
    responses=problems(
        InvalidWeChatCode,
        WeChatOff,
        WeChatBlocked,
        AccountSuspended,
        AccountBeingDeleted,
        RegistrationClosed,
        WeChatUnavailable,
    ),
)
async def log_in_with_wechat(
    body: WeChatIn, who: Anyone, db: Db, deps: AccountsDep, request: Request, response: Response
) -> LoginOut:
    """Open a session for the WeChat user of this code; the first login creates the account."""
    logged_in = await login.log_in_with_wechat(db, deps, who, code=body.code, keep_account=body.keep_account)
    return _welcome(request, response, deps, logged_in)


@router.post("/auth/logout", status_code=204, summary="Log out", responses=problems(SessionNeeded, CsrfFailed))
async def log_out(caller: SignedIn, db: Db, request: Request, response: Response) -> None:
    """End the session of this request and clear its cookies."""
    async with db.transaction() as tx:
        await sessions.log_out(tx, caller)
    forget(response, services_of(request).cookies)


@router.post(
    "/auth/password",
    response_model=UserOut,
    summary="Change the password",
    responses=problems(
        WrongPassword,
        InvalidPassword,
        NoPassword,
        SessionNeeded,
        CsrfFailed,
        PreconditionFailed,
        LoginPaused,
        PasswordsBusy,
    ),
)
async def change_password(body: PasswordIn, caller: SignedIn, db: Db, deps: AccountsDep, response: Response) -> UserOut:
    """Replace your password. All your other sessions end; this one and API keys stay valid."""
    user = await password_change.change_password(
        db,
        deps,
        caller,
        current=body.current_password.get_secret_value(),
        new=body.new_password.get_secret_value(),
    )
    response.headers["ETag"] = etag(user.version)
    return UserOut.of(user)


@router.get("/me", response_model=MeOut, summary="Who am I")
async def me(caller: SignedIn, db: Db, deps: AccountsDep, response: Response) -> MeOut:
    """The user of this request, and its credentials."""
    async with db.transaction(readonly=True) as tx:
        user = await sessions.get_self(tx, caller)
    response.headers["ETag"] = etag(user.version)
    return MeOut(
        user=OwnUserOut.to(caller, user),
        session_id=caller.session_id,
        api_key_id=caller.api_key_id,
        scopes=None if caller.scopes is None else sorted(caller.scopes),
        csrf_token=tokens.csrf(deps.csrf_key, caller.session_id) if caller.session_id else None,
    )


@router.patch(
    "/me",
    response_model=OwnUserOut,
    summary="Change your profile",
    responses=problems(InvalidMobile, SessionNeeded, CsrfFailed, PreconditionFailed, InvalidIfMatch),
)
async def change_me(
    body: ProfileIn, caller: SignedIn, db: Db, expected: ExpectedVersion, response: Response
) -> OwnUserOut:
    """Set or remove your telephone number. Only its form is checked; it is not used for calls or logins."""
    async with db.transaction() as tx:
        user = await profile.change_mobile(tx, caller, body.mobile, expected=expected)
    response.headers["ETag"] = etag(user.version)
    return OwnUserOut.to(caller, user)


def _welcome(request: Request, response: Response, deps: Accounts, logged_in: LoggedIn) -> LoginOut:
    csrf = tokens.csrf(deps.csrf_key, logged_in.session.id)
    remember(
        response,
        services_of(request).cookies,
        token=logged_in.token,
        csrf=csrf,
        lifetime=deps.config.sessions.lifetime,
    )
    return LoginOut.of(logged_in, csrf=csrf)
