"""Request and response bodies of accounts."""

import difflib
from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)

from headrace.access import TYPE_SCOPE, Caller, Role, Scope
from headrace.accounts.model import ApiKey, Deletion, DeletionStatus, LoggedIn, Session, User, UserStatus
from headrace.accounts.model import ApiKeyMade as Made
from headrace.edge.instants import Instant
from headrace.edge.text import Line, Text

_USER_ID = "u_01h455vb4pex5vsknk084sn02q"
_SESSION_ID = "ses_01h455vb4pex5vsknk084sn02q"
_DELETION_ID = "del_01h455vb4pex5vsknk084sn02q"
_KEY_ID = "key_01h455vb4pex5vsknk084sn02q"
_AT = "2026-03-01T08:00:00Z"

Username = Annotated[
    Text,
    Field(
        min_length=1,
        max_length=64,
        description="Letters and digits of any script, `_`, `.` and `-`. Upper and lower case are the same.",
        examples=["ada"],
    ),
]
Email = Annotated[Text, Field(max_length=255, examples=["ada@example.org"])]
Mobile = Annotated[
    Text,
    Field(
        max_length=64,
        description="With the country code: `+` and 7 to 15 digits. Blanks, hyphens, dots and brackets are ignored.",
        examples=["+49 30 1234567"],
    ),
]
# The rules for new passwords depend on the settings; this only bounds what is read.
Password = Annotated[SecretStr, Field(min_length=1, max_length=1024, examples=["a long phrase is best"])]


WeChatCode = Annotated[
    Text, Field(min_length=1, max_length=256, description="The code that `wx.login` returned to the mini-program.")
]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


KeepAccount = Annotated[bool, Field(description="Undo your own deletion request, while it has not begun.")]


class RegisterIn(_Body):
    username: Username
    password: Password
    email: Email | None = None


Code = Annotated[
    SecretStr,
    Field(
        min_length=1,
        max_length=64,
        description="The present code of the authenticator app, or an unused recovery code.",
        examples=["123456"],
    ),
]
MailLanguage = Annotated[Literal["en", "zh"], Field(description="The language of the e-mail.")]
LinkToken = Annotated[
    SecretStr, Field(min_length=1, max_length=256, description="The token of the link in the e-mail.")
]


class LoginIn(_Body):
    username: Annotated[Text, Field(min_length=1, max_length=256, examples=["ada"])]
    password: Password
    code: Annotated[Code | None, Field(description="For an account with a second factor.")] = None
    keep_account: KeepAccount = False


class WeChatIn(_Body):
    code: WeChatCode
    keep_account: KeepAccount = False


class PasswordIn(_Body):
    current_password: Password
    new_password: Password


class ForgottenPasswordIn(_Body):
    login: Annotated[Text, Field(min_length=1, max_length=256, description="The username or the e-mail address.")]
    language: MailLanguage = "en"


class ResetByLinkIn(_Body):
    token: LinkToken
    new_password: Password


class EmailIn(_Body):
    email: Annotated[Email | None, Field(description="Null removes it.")]
    password: Password
    language: MailLanguage = "en"


class ConfirmEmailIn(_Body):
    token: LinkToken
    language: MailLanguage = "en"


class SecondFactorIn(_Body):
    password: Password


class CodeIn(_Body):
    code: Code


class PasswordAndCodeIn(_Body):
    password: Password
    code: Code


class ProfileIn(_Body):
    """Changes of your profile."""

    mobile: Annotated[Mobile | None, Field(description="Null removes it.")]


class DeleteMeIn(_Body):
    """Confirmation: the password, or a new WeChat code for an account without one."""

    password: Password | None = None
    code: WeChatCode | None = None

    @model_validator(mode="after")
    def _password_or_code(self) -> Self:
        if (self.password is None) == (self.code is None):
            raise ValueError("send either password or code")
        return self


def _named_scope(text: object, validate: ValidatorFunctionWrapHandler) -> object:
    """Report an unknown scope in one line, instead of one for each alternative of the union."""
    try:
        return validate(text)
    except ValidationError:
        close = difflib.get_close_matches(str(text), list(Scope), n=1)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(Scope)}, and tasks:submit:TYPE"
        raise ValueError(f"{text!r} is not a scope: {hint}") from None


class ApiKeyIn(_Body):
    name: Annotated[Line, Field(min_length=1, max_length=64, pattern=r"\S", examples=["nightly import"])]
    scopes: Annotated[
        frozenset[Annotated[Scope | Annotated[str, Field(pattern=f"^{TYPE_SCOPE}$")], WrapValidator(_named_scope)]],
        Field(
            min_length=1,
            max_length=100,
            description="The scopes of the key. `tasks:submit:TYPE` lets it submit tasks of this type, "
            "`tasks:submit:report.*` of all types with this prefix.",
            examples=[["tasks:read", "tasks:submit:report.build"]],
        ),
    ]
    expires_at: Annotated[Instant | None, Field(description="Null for a key that does not expire.")] = None


class AdminUserIn(_Body):
    username: Username
    password: Annotated[Password | None, Field(description="If omitted, one is generated and shown once.")] = None
    email: Email | None = None
    role: Role = Role.USER


class RoleIn(_Body):
    role: Role


class ResetPasswordIn(_Body):
    password: Annotated[Password | None, Field(description="If omitted, one is generated and shown once.")] = None


class DeleteUserIn(_Body):
    at_once: Annotated[bool, Field(description="Without the grace period; also ends a running one.")] = False


class UserOut(BaseModel):
    """A user."""

    id: str = Field(examples=[_USER_ID])
    username: str | None = Field(description="Null for a user who only logs in with WeChat.", examples=["ada"])
    email: str | None = Field(examples=["ada@example.org"])
    status: UserStatus
    role: Role
    version: int = Field(description="The `ETag`: send it as `If-Match` to change only this version.")
    created_at: datetime = Field(examples=[_AT])
    updated_at: datetime = Field(examples=[_AT])
    last_login_at: datetime | None = Field(examples=[_AT])
    second_factor_at: datetime | None = Field(
        default=None, description="When the second factor was turned on; null without one.", examples=[None]
    )

    @classmethod
    def of(cls, user: User) -> Self:
        return cls.model_validate(user, from_attributes=True)


class OwnUserOut(UserOut):
    """The caller's own user."""

    mobile: str | None = Field(
        default=None, description="Shown only to you, and not to your API keys.", examples=["+49301234567"]
    )

    @classmethod
    def to(cls, caller: Caller, user: User) -> Self:
        shown = cls.of(user)
        return shown if caller.session_id is not None else shown.model_copy(update={"mobile": None})


class MeOut(BaseModel):
    """The caller and its credentials."""

    user: OwnUserOut
    session_id: str | None = Field(description="Null for an API key.", examples=[_SESSION_ID])
    api_key_id: str | None = Field(description="Null for a session.", examples=[None])
    scopes: list[str] | None = Field(description="The scopes of the API key; null for a session, which is not limited.")
    csrf_token: str | None = Field(description="The value for `X-CSRF-Token` in a browser; null for an API key.")


class EmailChangeOut(BaseModel):
    """The user, and where a link was sent."""

    user: UserOut
    sent_to: str | None = Field(
        description="The address with the link to confirm it; null if the address is changed already.",
        examples=["ada@example.net"],
    )


class SecondFactorOut(BaseModel):
    """The second factor of an account."""

    enabled_at: datetime | None = Field(description="Null: off.", examples=[_AT])
    recovery_codes: int = Field(description="The number of unused recovery codes.", examples=[10])


class NewSecondFactorOut(BaseModel):
    """A secret for an authenticator app, shown only now. It counts once a code of it was sent to `enable`."""

    secret: str = Field(description="In Base32.", examples=["JBSWY3DPEHPK3PXP"])
    uri: str = Field(description="The same for apps.", examples=["otpauth://totp/Headrace:ada?secret=…"])
    qr_code: str | None = Field(
        description="`uri` as a QR code, a `data:` URL of a PNG; null where the extra `payments` is not installed."
    )


class RecoveryCodesOut(BaseModel):
    """Recovery codes, shown only now. Each replaces the app once."""

    recovery_codes: list[str] = Field(examples=[["k3vq-7a2m-x4pd-9h2c"]])


class DeletionOut(BaseModel):
    """The deletion of an account."""

    id: str = Field(examples=[_DELETION_ID])
    user_id: str = Field(examples=[_USER_ID])
    requested_by: str = Field(description="The user, or the administrator who requested it.", examples=[_USER_ID])
    status: DeletionStatus
    due_at: datetime = Field(description="When it begins; until then it can be undone.", examples=[_AT])
    steps_done: list[str] = Field(examples=[["tasks.cancel", "tasks.erase"]])
    obstacle: str | None = Field(description="Why it is not completed yet.", examples=["2 tasks are running"])
    created_at: datetime = Field(examples=[_AT])
    started_at: datetime | None = Field(examples=[_AT])
    ended_at: datetime | None = Field(examples=[_AT])

    @classmethod
    def of(cls, deletion: Deletion) -> Self:
        return cls.model_validate(deletion, from_attributes=True)


class SessionOut(BaseModel):
    """An active session."""

    id: str = Field(examples=[_SESSION_ID])
    current: bool = Field(description="Whether it is the session of this request.")
    client_ip: str | None = Field(examples=["192.0.2.7"])
    user_agent: str | None = Field(examples=["Mozilla/5.0"])
    created_at: datetime = Field(examples=[_AT])
    last_seen_at: datetime = Field(description="Precise to the minute.", examples=[_AT])
    expires_at: datetime = Field(examples=[_AT])

    @classmethod
    def of(cls, session: Session, *, current: str | None) -> Self:
        return cls(
            id=session.id,
            current=session.id == current,
            client_ip=None if session.client_ip is None else str(session.client_ip),
            user_agent=session.user_agent,
            created_at=session.created_at,
            last_seen_at=session.last_seen_at,
            expires_at=session.expires_at,
        )


class LoginOut(BaseModel):
    """A new session. Browsers get it as cookies; programs send `token` as `Authorization: Bearer …`."""

    user: UserOut
    session: SessionOut
    token: str = Field(description="Shown once.", examples=["hrs_5YJm0…"])
    csrf_token: str = Field(description="The value for `X-CSRF-Token` in a browser.")

    @classmethod
    def of(cls, logged_in: LoggedIn, *, csrf: str) -> Self:
        session = SessionOut.of(logged_in.session, current=logged_in.session.id)
        return cls(user=UserOut.of(logged_in.user), session=session, token=logged_in.token, csrf_token=csrf)


class EndedOut(BaseModel):
    ended: int = Field(description="The number of ended sessions.", examples=[2])


class ApiKeyOut(BaseModel):
    """An API key, without the key itself."""

    id: str = Field(examples=[_KEY_ID])
    name: str = Field(examples=["nightly import"])
    hint: str = Field(description="The key's last characters.", examples=["x7Qa"])
    scopes: list[str] = Field(examples=[["tasks:read", "tasks:write"]])
    created_at: datetime = Field(examples=[_AT])
    expires_at: datetime | None
    last_used_at: datetime | None = Field(description="Precise to the minute.")

    @classmethod
    def of(cls, api_key: ApiKey) -> Self:
        return cls(**_shown(api_key))


class ApiKeyMadeOut(ApiKeyOut):
    """A new API key. The key is shown only here."""

    key: str = Field(description="Shown once: store it.", examples=["hrk_5YJm0…"])

    @classmethod
    def made(cls, made: Made) -> Self:
        return cls(**_shown(made.api_key), key=made.key)


class UserNamesOut(BaseModel):
    names: dict[str, str | None] = Field(
        description="By id; null for a user without a username.", examples=[{_USER_ID: "ada"}]
    )


class UserWithPasswordOut(BaseModel):
    """A user, and the generated password."""

    user: UserOut
    password: str | None = Field(description="Shown once; null if you chose it yourself.")


def _shown(api_key: ApiKey) -> dict[str, object]:
    return {
        "id": api_key.id,
        "name": api_key.name,
        "hint": api_key.key_hint,
        "scopes": sorted(api_key.scopes),
        "created_at": api_key.created_at,
        "expires_at": api_key.expires_at,
        "last_used_at": api_key.last_used_at,
    }
