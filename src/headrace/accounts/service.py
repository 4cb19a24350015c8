"""What the verbs of this package work with."""

from dataclasses import dataclass, field
from typing import Self

from headrace.accounts import tokens
from headrace.accounts.config import AccountsConfig
from headrace.accounts.passwords import Passwords
from headrace.accounts.wechat import WeChat


@dataclass(frozen=True, slots=True)
class Accounts:
    """The configuration and what lives on beside it; made once by the wiring, closed with the process."""

    config: AccountsConfig
    passwords: Passwords
    wechat: WeChat | None
    csrf_key: bytes = field(repr=False)

    @classmethod
    def create(cls, config: AccountsConfig, *, secret: bytes) -> Self:
        """``secret`` is the deployment's; every process of it must have the same."""
        wechat = WeChat(config.wechat) if config.wechat else None
        return cls(config, Passwords(config.passwords), wechat, tokens.csrf_key(secret))

    async def close(self) -> None:
        self.passwords.close()
        if self.wechat is not None:
            await self.wechat.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
