"""Routes of forgotten passwords and of the e-mail address, whose links are sent by e-mail."""

from fastapi import Response

from headrace.accounts import email_change, password_reset
from headrace.accounts.errors import (
    CsrfFailed,
    InvalidEmail,
    InvalidLink,
    InvalidPassword,
    LoginPaused,
    MailBusy,
    MailOff,
    NoPassword,
    PasswordsBusy,
    SessionNeeded,
    TooManyLinks,
    WrongPassword,
)
from headrace.accounts.routes.dependencies import AccountsDep
from headrace.accounts.schemas import (
    ConfirmEmailIn,
    EmailChangeOut,
    EmailIn,
    ForgottenPasswordIn,
    ResetByLinkIn,
    UserOut,
)
from headrace.accounts.service import Accounts
from headrace.audit import Who
from headrace.database import Database
from headrace.edge.authorization import Anyone, SignedIn
from headrace.edge.errors import RateLimited
from headrace.edge.etags import etag
from headrace.edge.limits import bucket_of, take
from headrace.edge.problem_details import problems
from headrace.edge.routing import Router
from headrace.edge.services import Db

router = Router(tags=["Accounts"])


@router.post(
    "/auth/password/forgot",
    status_code=204,
    summary="Forgot the password",
    responses=problems(MailOff, MailBusy, RateLimited),
)
async def forgot_password(body: ForgottenPasswordIn, who: Anyone, db: Db, deps: AccountsDep) -> None:
    """Send a link to choose another password to the e-mail address of this account.

    The answer is the same whether there is such an account or not. The link works once, for 30 minutes; each account
    gets at most three an hour. Where no e-mail is sent (`mail_off`), an administrator resets passwords.
    """
    password_reset.mailer_of(deps)
    await _limit(db, deps, who)
    password_reset.request_reset(db, deps, who, login=body.login, language=body.language)


@router.post(
    "/auth/password/reset",
    status_code=204,
    summary="Reset the password by a link",
    responses=problems(InvalidLink, InvalidPassword, PasswordsBusy, RateLimited),
)
async def reset_password(body: ResetByLinkIn, who: Anyone, db: Db, deps: AccountsDep) -> None:
    """Choose another password with the token of the link. All sessions of the account end; log in afterwards."""
    await _limit(db, deps, who)
    await password_reset.reset_password(
        db, deps, who, token=body.token.get_secret_value(), new=body.new_password.get_secret_value()
    )


@router.post(
    "/me/email",
    response_model=EmailChangeOut,
    summary="Change your e-mail address",
    responses=problems(
        WrongPassword,
        InvalidEmail,
        NoPassword,
        SessionNeeded,
        CsrfFailed,
        LoginPaused,
        PasswordsBusy,
        TooManyLinks,
        MailBusy,
        RateLimited,
    ),
)
async def change_email(
    body: EmailIn, caller: SignedIn, db: Db, deps: AccountsDep, response: Response
) -> EmailChangeOut:
    """Change or remove your e-mail address. Where e-mail is sent, a new address counts once its link was opened."""
    await take(db, f"links:{caller.user_id}", deps.config.links.limit)
    changed = await email_change.change_email(
        db,
        deps,
        caller,
        email=body.email,
        password=body.password.get_secret_value(),
        language=body.language,
    )
    response.headers["ETag"] = etag(changed.user.version)
    return EmailChangeOut(user=UserOut.of(changed.user), sent_to=changed.sent_to)


@router.post(
    "/auth/email/confirm",
    status_code=204,
    summary="Confirm an e-mail address",
    responses=problems(InvalidLink, RateLimited),
)
async def confirm_email(body: ConfirmEmailIn, who: Anyone, db: Db, deps: AccountsDep) -> None:
    """Confirm a new e-mail address with the token of the link that was sent to it."""
    await _limit(db, deps, who)
    await email_change.confirm_email(db, deps, who, token=body.token.get_secret_value(), language=body.language)


async def _limit(db: Database, deps: Accounts, who: Who) -> None:
    stranger = bucket_of(user_id=None, client_ip=who.client_ip)
    await take(db, f"links:{stranger}", deps.config.links.limit)
