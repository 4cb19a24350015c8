"""From settings to accounts, and what new accounts receive."""

from collections.abc import Sequence

from headrace.accounts.config import (
    AccountsConfig,
    DeletionConfig,
    PasswordConfig,
    SessionConfig,
    ThrottleConfig,
    WeChatConfig,
)
from headrace.accounts.newcomers import Welcome
from headrace.billing.newcomers import grant_free_plan
from headrace.settings import Settings


def accounts_config(chosen: Settings) -> AccountsConfig:
    return AccountsConfig(
        registration_open=chosen.registration == "open",
        passwords=PasswordConfig(
            min_length=chosen.password_min_length,
            time_cost=chosen.argon2_time_cost,
            memory_kib=chosen.argon2_memory // 1024,
            parallelism=chosen.argon2_parallelism,
        ),
        sessions=SessionConfig(lifetime=chosen.session_lifetime, idle_lifetime=chosen.session_idle_lifetime),
        throttle=ThrottleConfig(
            free_failures=chosen.login_free_failures,
            block_first=chosen.login_block_first,
            block_max=chosen.login_block_max,
            forget_after=chosen.login_forget_after,
        ),
        deletion=DeletionConfig(grace=chosen.account_deletion_grace),
        wechat=_wechat_config(chosen),
    )


def newcomers() -> Sequence[Welcome]:
    """Called in this order, in the transaction in which a user is stored."""
    return (grant_free_plan,)


def _wechat_config(chosen: Settings) -> WeChatConfig | None:
    if chosen.wechat_app_id is None or chosen.wechat_app_secret is None:
        return None
    base = str(chosen.wechat_base_url).rstrip("/")
    return WeChatConfig(chosen.wechat_app_id, chosen.wechat_app_secret.get_secret_value(), base)
