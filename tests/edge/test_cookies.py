"""A browser's two cookies: where they go, who can read them, and that they can be taken back."""

from datetime import timedelta
from http.cookies import SimpleCookie

import pytest
from starlette.responses import Response

from headrace.edge.cookies import CookieConfig, forget, remember


def cookies_of(response: Response) -> SimpleCookie:
    jar = SimpleCookie()
    for name, value in response.raw_headers:
        if name == b"set-cookie":
            jar.load(value.decode())
    return jar


@pytest.mark.parametrize("secure", [True, False])
def test_the_session_is_hidden_from_scripts_and_the_csrf_token_is_not(secure: bool) -> None:
    config, response = CookieConfig(secure=secure), Response()
    remember(response, config, token="t", csrf="c", lifetime=timedelta(days=30))
    jar = cookies_of(response)
    session, csrf = jar[config.session_name], jar[config.csrf_name]
    assert (session.value, csrf.value) == ("t", "c")
    assert (bool(session["httponly"]), bool(csrf["httponly"])) == (True, False)
    for cookie in (session, csrf):
        # What the prefix __Host- demands: secure, the whole site, no domain.
        assert (bool(cookie["secure"]), cookie["path"], cookie["domain"]) == (secure, "/", "")
        assert cookie.key.startswith("__Host-") == secure
        assert cookie["samesite"] == "lax"
        assert cookie["max-age"] == "2592000"


def test_logging_out_takes_both_back() -> None:
    config, response = CookieConfig(), Response()
    forget(response, config)
    jar = cookies_of(response)
    assert {cookie["max-age"] for cookie in jar.values()} == {"0"}
    assert set(jar) == {config.session_name, config.csrf_name}
    assert all(cookie["secure"] for cookie in jar.values())
