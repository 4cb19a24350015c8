"""Registration, logins, passwords, and deletion of accounts."""

from datetime import timedelta
from typing import Annotated, ClassVar, Literal, Self

from pydantic import ByteSize, Field, HttpUrl, PositiveInt, SecretStr, model_validator

from headrace.settings.kinds import Duration, Group, OptionalDuration, setting


class AccountsSettings(Group):
    title: ClassVar[str] = "Accounts"

    registration: Literal["open", "closed"] = setting(
        "Whether new users may register. When closed, an administrator creates accounts. `headrace up` opens it where "
        "it listens only on this machine, and reports that, unless you have set it.",
        "closed",
    )
    session_lifetime: Duration = setting("The maximum lifetime of a login.", timedelta(days=30))
    session_idle_lifetime: Duration = setting("The lifetime of an unused login.", timedelta(days=7))
    password_min_length: Annotated[int, Field(ge=8, le=128)] = setting("The minimum length of a new password.", 10)
    argon2_time_cost: Annotated[int, Field(ge=1, le=20)] = setting(
        "Argon2id passes. Changed parameters take effect for each user at the next login.", 3
    )
    argon2_memory: ByteSize = setting("Argon2id memory for one password check.", "64MiB")
    argon2_parallelism: Annotated[int, Field(ge=1, le=64)] = setting("Argon2id lanes.", 4)
    login_free_failures: PositiveInt = setting(
        "Wrong passwords for one account before logging in is slowed down; ten times as many for one address, which "
        "may be a whole office.",
        5,
    )
    login_block_first: Duration = setting(
        "The first pause after that; it doubles with each further failure.", timedelta(seconds=1)
    )
    login_block_max: Duration = setting(
        "The longest pause: it slows an attacker, and delays the owner for at most this long after the guessing "
        "ends. In networks of recent logins, pauses caused from elsewhere do not apply.",
        timedelta(minutes=5),
    )
    login_forget_after: Duration = setting(
        "Failures are forgotten after this long without a new one.", timedelta(hours=1)
    )
    account_deletion_grace: OptionalDuration = setting(
        "How long a user can undo the requested deletion of their account; other logins are refused meanwhile. `0s` "
        "begins at once.",
        timedelta(days=7),
    )
    wechat_app_id: str | None = setting("The mini-program's AppID; unset, WeChat login is off.", None)
    wechat_app_secret: SecretStr | None = setting("The mini-program's AppSecret.", None)
    wechat_base_url: HttpUrl = setting("The URL of WeChat's server API.", HttpUrl("https://api.weixin.qq.com"))

    @model_validator(mode="after")
    def _check_accounts(self) -> Self:
        if self.login_block_first > self.login_block_max:
            raise ValueError("login_block_first must not exceed login_block_max")
        if self.argon2_memory < (least := 8 * 1024 * self.argon2_parallelism):
            raise ValueError(f"argon2_memory must be at least {least // 1024}KiB: 8KiB for each of argon2_parallelism")
        if (self.wechat_app_id is None) != (self.wechat_app_secret is None):
            raise ValueError("wechat_app_id and wechat_app_secret go together: set both or none")
        return self
