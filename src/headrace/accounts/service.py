"""Dependencies of the verbs of this package."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from headrace.access import Authenticate
from headrace.accounts import tokens
from headrace.accounts.authenticate import authenticator
from headrace.accounts.config import AccountsConfig
from headrace.accounts.newcomers import Welcome
from headrace.accounts.passwords import Passwords
from headrace.vault import derive_key

if TYPE_CHECKING:
    from headrace.accounts.mail import Mailer
    from headrace.accounts.wechat import WeChat


@dataclass(frozen=True, slots=True)
class Accounts:
    """Configuration, password threads, mailer, WeChat client; made by ``open_accounts``, closed by ``async with``."""

    config: AccountsConfig
    passwords: Passwords
    wechat: "WeChat | None"
    authenticate: Authenticate
    csrf_key: bytes = field(repr=False)
    factor_key: bytes = field(repr=False)
    mailer: "Mailer | None" = None
    welcomes: Sequence[Welcome] = ()

    async def close(self) -> None:
        if self.mailer is not None:
            await self.mailer.close()
        self.passwords.close()
        if self.wechat is not None:
            await self.wechat.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def open_accounts(config: AccountsConfig, *, secret: bytes, welcomes: Sequence[Welcome] = ()) -> Accounts:
    """``secret`` is the deployment's: all its processes need the same, for CSRF tokens and second factors."""
    csrf_key = tokens.csrf_key(secret)
    return Accounts(
        config=config,
        passwords=Passwords(config.passwords),
        wechat=_wechat(config),
        authenticate=authenticator(config.sessions, csrf_key),
        csrf_key=csrf_key,
        factor_key=derive_key(secret, "accounts.second_factors"),
        mailer=_mailer(config),
        welcomes=welcomes,
    )


def _wechat(config: AccountsConfig) -> "WeChat | None":
    if config.wechat is None:
        return None
    from headrace.accounts.wechat import WeChat  # imports an HTTP client, which is slow

    return WeChat(config.wechat)


def _mailer(config: AccountsConfig) -> "Mailer | None":
    if config.mail is None:
        return None
    from headrace.accounts.mail import Mailer  # imports the mail libraries, which most processes do not need

    return Mailer(config.mail)
