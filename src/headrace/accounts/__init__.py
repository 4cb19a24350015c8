"""Who: registration, logins, sessions, API keys, roles, and what administrators do to accounts."""

from typing import TYPE_CHECKING

from headrace import lazily

if TYPE_CHECKING:
    from headrace.accounts.administration import (
        FirstAdmin,
        create_admin,
        ensure_first_admin,
        get_user,
        list_users,
        reinstate,
        reset_password,
        set_role,
        suspend,
    )
    from headrace.accounts.api_keys import create_api_key, get_api_key, list_api_keys, revoke_api_key
    from headrace.accounts.config import (
        AccountsConfig,
        DeletionConfig,
        PasswordConfig,
        SessionConfig,
        ThrottleConfig,
        WeChatConfig,
    )
    from headrace.accounts.deletion.credentials import ForgetCredentials
    from headrace.accounts.deletion.machine import Deletions
    from headrace.accounts.deletion.service import (
        delete_account,
        delete_own_account,
        delete_own_wechat_account,
        get_deletion,
        keep_account,
        list_deletions,
    )
    from headrace.accounts.login import log_in, log_in_with_wechat
    from headrace.accounts.model import (
        ApiKey,
        ApiKeyId,
        ApiKeyMade,
        Deletion,
        DeletionStatus,
        LoggedIn,
        NewUser,
        Session,
        SessionId,
        User,
        UserId,
        UserStatus,
    )
    from headrace.accounts.password_change import change_password
    from headrace.accounts.registration import prepare, refuse_if_closed, register
    from headrace.accounts.service import Accounts, open_accounts
    from headrace.accounts.sessions import (
        forget_sessions,
        get_self,
        get_session,
        list_sessions,
        log_out,
        revoke_other_sessions,
        revoke_session,
    )
    from headrace.accounts.throttle import forget_failures

__all__ = [
    "Accounts",
    "AccountsConfig",
    "ApiKey",
    "ApiKeyId",
    "ApiKeyMade",
    "Deletion",
    "DeletionConfig",
    "DeletionStatus",
    "Deletions",
    "FirstAdmin",
    "ForgetCredentials",
    "LoggedIn",
    "NewUser",
    "PasswordConfig",
    "Session",
    "SessionConfig",
    "SessionId",
    "ThrottleConfig",
    "User",
    "UserId",
    "UserStatus",
    "WeChatConfig",
    "change_password",
    "create_admin",
    "create_api_key",
    "delete_account",
    "delete_own_account",
    "delete_own_wechat_account",
    "ensure_first_admin",
    "forget_failures",
    "forget_sessions",
    "get_api_key",
    "get_deletion",
    "get_self",
    "get_session",
    "get_user",
    "keep_account",
    "list_api_keys",
    "list_deletions",
    "list_sessions",
    "list_users",
    "log_in",
    "log_in_with_wechat",
    "log_out",
    "open_accounts",
    "prepare",
    "refuse_if_closed",
    "register",
    "reinstate",
    "reset_password",
    "revoke_api_key",
    "revoke_other_sessions",
    "revoke_session",
    "set_role",
    "suspend",
]

__getattr__ = lazily.names_of(
    __name__,
    {
        "administration": "FirstAdmin create_admin ensure_first_admin get_user "
        "list_users reinstate reset_password set_role suspend",
        "api_keys": "create_api_key get_api_key list_api_keys revoke_api_key",
        "config": "AccountsConfig DeletionConfig PasswordConfig SessionConfig ThrottleConfig WeChatConfig",
        "deletion.credentials": "ForgetCredentials",
        "deletion.machine": "Deletions",
        "deletion.service": "delete_account delete_own_account delete_own_wechat_account get_deletion keep_account "
        "list_deletions",
        "login": "log_in log_in_with_wechat",
        "model": "ApiKey ApiKeyId ApiKeyMade Deletion DeletionStatus LoggedIn NewUser Session SessionId User UserId "
        "UserStatus",
        "password_change": "change_password",
        "registration": "prepare refuse_if_closed register",
        "service": "Accounts open_accounts",
        "sessions": "forget_sessions get_self get_session list_sessions log_out revoke_other_sessions revoke_session",
        "throttle": "forget_failures",
    },
)
