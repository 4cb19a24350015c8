"""From settings to accounts, and what new accounts receive."""

from collections.abc import Sequence

from headrace.accounts.config import (
    AccountsConfig,
    DeletionConfig,
    MailConfig,
    PasswordConfig,
    SessionConfig,
    ThrottleConfig,
    WeChatConfig,
)
from headrace.accounts.newcomers import Welcome
from headrace.billing.newcomers import grant_free_plan
from headrace.settings import Settings


def accounts_config(chosen: Settings, *, url: str = "") -> AccountsConfig:
    """``url`` is how browsers reach the console: links in e-mails begin with it."""
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
        mail=_mail_config(chosen, url),
        wechat=_wechat_config(chosen),
    )


def newcomers() -> Sequence[Welcome]:
    """Called in this order, in the transaction in which a user is stored."""
    return (grant_free_plan,)


def _mail_config(chosen: Settings, url: str) -> MailConfig | None:
    if chosen.smtp_host is None or chosen.smtp_from is None:
        return None
    return MailConfig(
        host=chosen.smtp_host,
        sender=chosen.smtp_from,
        console_url=str(chosen.api_public_url or url),
        port=chosen.smtp_port,
        security=chosen.smtp_security,
        username=chosen.smtp_username,
        password=None if chosen.smtp_password is None else chosen.smtp_password.get_secret_value(),
        timeout=chosen.smtp_timeout,
    )


def _wechat_config(chosen: Settings) -> WeChatConfig | None:
    if chosen.wechat_app_id is None or chosen.wechat_app_secret is None:
        return None
    base = str(chosen.wechat_base_url).rstrip("/")
    return WeChatConfig(chosen.wechat_app_id, chosen.wechat_app_secret.get_secret_value(), base)
