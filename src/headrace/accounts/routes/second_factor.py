"""Routes of the caller's second factor."""

import base64

from headrace.accounts import second_factor
from headrace.accounts.errors import (
    CsrfFailed,
    LoginPaused,
    NoPassword,
    PasswordsBusy,
    SecondFactorOff,
    SecondFactorOn,
    SessionNeeded,
    WrongCode,
    WrongPassword,
)
from headrace.accounts.routes.dependencies import AccountsDep
from headrace.accounts.schemas import (
    CodeIn,
    NewSecondFactorOut,
    PasswordAndCodeIn,
    RecoveryCodesOut,
    SecondFactorIn,
    SecondFactorOut,
)
from headrace.edge.authorization import SignedIn
from headrace.edge.problem_details import problems
from headrace.edge.routing import Router
from headrace.edge.services import Db
from headrace.extras import ExtraMissing
from headrace.qr import qr_png

router = Router(prefix="/me/second-factor", tags=["Accounts"])

_CONFIRMED = (WrongPassword, NoPassword, SessionNeeded, CsrfFailed, LoginPaused, PasswordsBusy)


@router.get("", response_model=SecondFactorOut, summary="Read your second factor")
async def get_second_factor(caller: SignedIn, db: Db) -> SecondFactorOut:
    """Whether a login asks for a code, and how many recovery codes are left."""
    async with db.transaction(readonly=True) as tx:
        status = await second_factor.get_status(tx, caller)
    return SecondFactorOut(enabled_at=status.user.second_factor_at, recovery_codes=status.recovery_codes)


@router.post(
    "",
    response_model=NewSecondFactorOut,
    summary="Begin a second factor",
    responses=problems(SecondFactorOn, *_CONFIRMED),
)
async def begin_second_factor(body: SecondFactorIn, caller: SignedIn, db: Db, deps: AccountsDep) -> NewSecondFactorOut:
    """Make a secret for an authenticator app (TOTP). Nothing changes until its first code is sent to `enable`."""
    made = await second_factor.begin(db, deps, caller, password=body.password.get_secret_value())
    return NewSecondFactorOut(secret=made.secret, uri=made.uri, qr_code=_qr_code(made.uri))


@router.post(
    "/enable",
    response_model=RecoveryCodesOut,
    summary="Turn the second factor on",
    responses=problems(WrongCode, SecondFactorOn, SessionNeeded, CsrfFailed, LoginPaused),
)
async def enable_second_factor(body: CodeIn, caller: SignedIn, db: Db, deps: AccountsDep) -> RecoveryCodesOut:
    """Turn the second factor on with the app's present code. From now on every login asks for a code."""
    codes = await second_factor.enable(db, deps, caller, code=body.code.get_secret_value())
    return RecoveryCodesOut(recovery_codes=list(codes))


@router.post(
    "/disable",
    status_code=204,
    summary="Turn the second factor off",
    responses=problems(WrongCode, SecondFactorOff, *_CONFIRMED),
)
async def disable_second_factor(body: PasswordAndCodeIn, caller: SignedIn, db: Db, deps: AccountsDep) -> None:
    """Turn the second factor off, with the password and a code. Recovery codes are removed with it."""
    await second_factor.disable(
        db, deps, caller, password=body.password.get_secret_value(), code=body.code.get_secret_value()
    )


@router.post(
    "/recovery-codes",
    response_model=RecoveryCodesOut,
    summary="Make new recovery codes",
    responses=problems(WrongCode, SecondFactorOff, *_CONFIRMED),
)
async def make_recovery_codes(body: PasswordAndCodeIn, caller: SignedIn, db: Db, deps: AccountsDep) -> RecoveryCodesOut:
    """Replace your recovery codes; the former ones stop working."""
    codes = await second_factor.new_recovery_codes(
        db, deps, caller, password=body.password.get_secret_value(), code=body.code.get_secret_value()
    )
    return RecoveryCodesOut(recovery_codes=list(codes))


def _qr_code(uri: str) -> str | None:
    try:
        return f"data:image/png;base64,{base64.b64encode(qr_png(uri)).decode()}"
    except ExtraMissing:
        return None
