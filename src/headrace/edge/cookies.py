"""The two cookies of a session: the token, which scripts cannot read, and the CSRF token, which ours must."""

from dataclasses import dataclass
from datetime import timedelta

from starlette.requests import HTTPConnection
from starlette.responses import Response

CSRF_HEADER = "X-CSRF-Token"


@dataclass(frozen=True, slots=True)
class CookieConfig:
    """``secure`` for https: the cookies are never sent unencrypted, and no other host can set them."""

    secure: bool = True

    @property
    def session_name(self) -> str:
        return "__Host-headrace_session" if self.secure else "headrace_session"

    @property
    def csrf_name(self) -> str:
        return "__Host-headrace_csrf" if self.secure else "headrace_csrf"


def session_token(request: HTTPConnection, config: CookieConfig) -> str | None:
    return request.cookies.get(config.session_name)


def remember(response: Response, config: CookieConfig, *, token: str, csrf: str, lifetime: timedelta) -> None:
    """Log a browser in: set both cookies on the answer."""
    seconds = int(lifetime.total_seconds())
    for name, value, hidden in ((config.session_name, token, True), (config.csrf_name, csrf, False)):
        response.set_cookie(
            name, value, max_age=seconds, path="/", secure=config.secure, httponly=hidden, samesite="lax"
        )


def forget(response: Response, config: CookieConfig) -> None:
    """Log a browser out: clear both cookies."""
    for name, hidden in ((config.session_name, True), (config.csrf_name, False)):
        response.delete_cookie(name, path="/", secure=config.secure, httponly=hidden, samesite="lax")
