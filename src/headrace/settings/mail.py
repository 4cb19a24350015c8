"""The server that sends e-mail."""

from datetime import timedelta
from typing import ClassVar, Literal, Self

from pydantic import SecretStr, model_validator

from headrace.settings.kinds import Duration, Group, Port, setting

_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


class MailSettings(Group):
    title: ClassVar[str] = "E-mail"

    smtp_host: str | None = setting(
        "The SMTP server for links to reset a forgotten password and to confirm an e-mail address. Unset, no e-mail "
        "is sent: an administrator resets passwords (`headrace admin reset-password`), and addresses are not "
        "confirmed. Set `HEADRACE_API_PUBLIC_URL` too: the links begin with it.",
        None,
    )
    smtp_port: Port = setting("Its port: 587 for `starttls`, 465 for `tls`.", 587)
    smtp_security: Literal["starttls", "tls", "none"] = setting(
        "How the connection is encrypted; `none` only for a server on this machine.", "starttls"
    )
    smtp_username: str | None = setting("The name to log in with; unset, without a login.", None)
    smtp_password: SecretStr | None = setting("The password to log in with.", None)
    smtp_from: str | None = setting(
        "The address of the sender, with a name before it in angle brackets or without.", None
    )
    smtp_timeout: Duration = setting("How long one attempt to send may take.", timedelta(seconds=15))

    @model_validator(mode="after")
    def _check_mail(self) -> Self:
        if (self.smtp_host is None) != (self.smtp_from is None):
            raise ValueError("smtp_host and smtp_from go together: set both or none")
        if (self.smtp_username is None) != (self.smtp_password is None):
            raise ValueError("smtp_username and smtp_password go together: set both or none")
        if self.smtp_security == "none" and self.smtp_host is not None and self.smtp_host not in _LOOPBACK:
            raise ValueError("smtp_security may be none only where smtp_host is this machine: use starttls or tls")
        return self
