"""Who is calling: authenticated once, counted once, and let in as far as role and scopes go."""

import httpx2
import pytest

from headrace.access import Caller, Credentials
from headrace.audit import Who
from headrace.database import Database
from headrace.edge.cookies import CookieConfig
from tests.edge import stand

USER = stand.USER


async def test_without_credentials_nobody_knows_who_you_are(db: Database) -> None:
    async with stand.client(stand.app(db)) as client:
        answer = await client.get("/v1/me")
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
    assert answer.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("header", ["Bearer wrong", "Basic dTpw", "Bearer", ""])
async def test_wrong_credentials_are_no_credentials(db: Database, header: str) -> None:
    async with stand.client(stand.app(db)) as client:
        assert (await client.get("/v1/me", headers={"Authorization": header})).status_code == 401


@pytest.mark.parametrize(
    ("path", "token", "status"),
    [
        ("/v1/tasks", USER, 200),  # a session is not narrowed
        ("/v1/tasks", f"{USER},tasks:read", 200),
        ("/v1/tasks", f"{USER},tasks:write", 403),
        ("/v1/admin", USER, 403),
        ("/v1/admin", f"{USER},ADMIN", 200),
        ("/v1/admin", f"{USER},ADMIN,tasks:read", 403),
        ("/v1/admin", f"{USER},ADMIN,admin", 200),
        ("/v1/admin", f"{USER},admin", 403),  # a scope makes nobody an admin
    ],
)
async def test_scopes_and_roles(db: Database, path: str, token: str, status: int) -> None:
    async with stand.client(stand.app(db), Authorization=f"Bearer {token}") as client:
        assert (await client.get(path)).status_code == status


async def test_a_missing_scope_is_named(db: Database) -> None:
    async with stand.client(stand.app(db), Authorization=f"Bearer {USER},audit:read") as client:
        problem = (await client.get("/v1/tasks")).json()
    assert (problem["code"], problem["details"]) == ("scope_missing", {"scope": "tasks:read"})


async def test_the_facts_of_the_request_reach_the_verbs(client: httpx2.AsyncClient) -> None:
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    seen = (
        await client.get(
            "/v1/me",
            headers={
                "User-Agent": "curl/8",
                "X-Request-Id": "mine-1",
                "traceparent": f"00-{trace}-00f067aa0ba902b7-01",
            },
        )
    ).json()
    assert seen["client_ip"] == "192.0.2.7"
    assert seen["user_agent"] == "curl/8"
    assert seen["request_method"] == "GET"
    assert seen["request_id"] == "mine-1"
    assert seen["trace_id"] == trace


@pytest.mark.parametrize(("secure", "name"), [(True, "__Host-headrace_session"), (False, "headrace_session")])
@pytest.mark.parametrize(("method", "changes"), [("GET", False), ("PUT", True)])
async def test_cookie_and_csrf_token_are_handed_to_accounts_once(
    db: Database, secure: bool, name: str, method: str, changes: bool
) -> None:
    seen: list[tuple[Credentials, bool]] = []

    async def authenticate(_: Database, who: Who, credentials: Credentials, changes_something: bool) -> Caller:
        seen.append((credentials, changes_something))
        return await stand.authenticate(_, who, Credentials(USER, None, None), changes_something)

    app = stand.app(db, authenticate=authenticate, cookies=CookieConfig(secure=secure))
    async with stand.client(app, **{"Cookie": f"{name}=token", "X-CSRF-Token": "proof"}) as client:
        await client.request(method, "/v1/me", json={"name": "a"})
    assert seen == [(Credentials(None, "token", "proof"), changes)]


def test_credentials_do_not_show_themselves() -> None:
    assert "swordfish" not in repr(Credentials("swordfish", "swordfish", "swordfish"))
