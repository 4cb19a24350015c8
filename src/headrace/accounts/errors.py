"""Errors of accounts.

NotFound         UserNotFound · SessionNotFound · ApiKeyNotFound · DeletionNotFound
Invalid          InvalidUsername · InvalidEmail · InvalidMobile · InvalidPassword · WrongPassword · InvalidScopes
                 InvalidExpiry · InvalidWeChatCode · InvalidLink · WrongCode
Conflict         UsernameTaken · ApiKeyNameTaken · LastAdmin · NoPassword · DeletionPending · DeletionStarted
                 SecondFactorOn · SecondFactorOff
Denied           RegistrationClosed · AccountSuspended · AccountBeingDeleted · CsrfFailed · SessionNeeded
                 WeChatBlocked · WeChatOff · MailOff
  Unauthenticated  BadCredentials · SecondFactorNeeded
Exhausted        LoginPaused · TooManyApiKeys · TooManyLinks
Unavailable      PasswordsBusy · WeChatUnavailable · MailBusy
"""

from headrace.errors import Conflict, Denied, Exhausted, Invalid, NotFound, Unauthenticated, Unavailable


class UserNotFound(NotFound):
    """There is no such user."""

    code = "user_not_found"


class SessionNotFound(NotFound):
    """There is no such session."""

    code = "session_not_found"


class ApiKeyNotFound(NotFound):
    """There is no such API key."""

    code = "api_key_not_found"


class DeletionNotFound(NotFound):
    """There is no such deletion of this account."""

    code = "deletion_not_found"


class InvalidUsername(Invalid):
    """A username has 1 to 64 letters or digits of any script, `_`, `.` or `-`, and starts with a letter or a digit."""

    code = "invalid_username"


class InvalidEmail(Invalid):
    """This is not an e-mail address."""

    code = "invalid_email"


class InvalidMobile(Invalid):
    """A telephone number begins with + and the country code, and has 7 to 15 digits: +49 30 1234567."""

    code = "invalid_mobile"


class InvalidPassword(Invalid):
    """This password cannot be used."""

    code = "invalid_password"


class WrongPassword(Invalid):
    """The current password is wrong."""

    code = "wrong_password"


class InvalidScopes(Invalid):
    """These scopes are not valid for an API key."""

    code = "invalid_scopes"


class InvalidExpiry(Invalid):
    """An API key cannot expire in the past."""

    code = "invalid_expiry"


class InvalidWeChatCode(Invalid):
    """WeChat does not know this code, or it was used before: ask WeChat for a new one."""

    code = "invalid_wechat_code"


class UsernameTaken(Conflict):
    """This username is taken."""

    code = "username_taken"


class ApiKeyNameTaken(Conflict):
    """You have an API key with this name: revoke it first, or choose another name."""

    code = "api_key_name_taken"


class LastAdmin(Conflict):
    """This is the last active administrator: appoint another one first."""

    code = "last_admin"


class NoPassword(Conflict):
    """This account has no password: it logs in with WeChat."""

    code = "no_password"


class DeletionPending(Conflict):
    """This account has a pending deletion: undo it first."""

    code = "deletion_pending"


class DeletionStarted(Conflict):
    """The deletion has begun and cannot be undone."""

    code = "deletion_started"


class RegistrationClosed(Denied):
    """Registration is closed here: ask an administrator for an account."""

    code = "registration_closed"


class AccountSuspended(Denied):
    """This account is suspended: ask an administrator."""

    code = "account_suspended"


class AccountBeingDeleted(Denied):
    """This account will be deleted. Until then, log in with `keep_account` to keep it."""

    code = "account_being_deleted"


class CsrfFailed(Denied):
    """The header X-CSRF-Token is missing or wrong: send the value of the CSRF cookie."""

    code = "csrf_failed"


class SessionNeeded(Denied):
    """This requires a login: an API key is not enough."""

    code = "session_needed"


class WeChatBlocked(Denied):
    """WeChat blocks this user as a risk."""

    code = "wechat_blocked"


class WeChatOff(Denied):
    """Login with WeChat is not set up here."""

    code = "wechat_off"


class BadCredentials(Unauthenticated):
    """The username or the password is wrong."""

    code = "bad_credentials"


class LoginPaused(Exhausted):
    """Too many failed logins: wait for the time in Retry-After, then try again."""

    code = "login_paused"


class PasswordsBusy(Unavailable):
    """Too many logins at this moment; try again in a few seconds."""

    code = "passwords_busy"


class WeChatUnavailable(Unavailable):
    """WeChat does not answer correctly; try again in a moment."""

    code = "wechat_unavailable"


class TooManyApiKeys(Exhausted):
    """You have the maximum number of API keys: revoke some first."""

    code = "too_many_api_keys"


class InvalidLink(Invalid):
    """This link has expired or was used: ask for a new one."""

    code = "invalid_link"


class WrongCode(Invalid):
    """This code is wrong or was used: take the present one from your authenticator, or a recovery code."""

    code = "wrong_code"


class SecondFactorNeeded(Unauthenticated):
    """This account has a second factor: send the `code` of your authenticator, or a recovery code, as well."""

    code = "second_factor_needed"


class SecondFactorOn(Conflict):
    """The second factor is already on: turn it off first."""

    code = "second_factor_on"


class SecondFactorOff(Conflict):
    """The second factor is not on."""

    code = "second_factor_off"


class MailOff(Denied):
    """No e-mail is sent here: ask an administrator to reset your password (`headrace admin reset-password`)."""

    code = "mail_off"


class MailBusy(Unavailable):
    """Too many e-mails wait to be sent; try again in a minute."""

    code = "mail_busy"


class TooManyLinks(Exhausted):
    """Too many e-mails were sent for this account: open the last one, or wait an hour."""

    code = "too_many_links"
