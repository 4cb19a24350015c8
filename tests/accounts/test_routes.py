from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from headrace.access import Role
from headrace.accounts.routes import create_router
from headrace.accounts.service import Accounts
from headrace.database import Database
from headrace.edge.cookies import CookieConfig
from headrace.edge.limits import LimitConfig
from headrace.edge.services import Services
from headrace.web.app import create_app
from headrace.web.config import WebConfig
from tests.accounts.conftest import PASSWORD, SECRET, MakeUser, configured, events, everything_in

BODY = {"username": "ada", "password": PASSWORD}


def make_app(db: Database, accounts: Accounts, *, secure: bool = False) -> FastAPI:
    services = Services(
        db=db,
        authenticate=accounts.authenticate,
        secret=SECRET,
        cookies=CookieConfig(secure=secure),
        limits=LimitConfig(per_minute=60_000, burst=10_000),
    )
    return create_app(services, WebConfig(https=secure), routers=[create_router(accounts)])


@asynccontextmanager
async def client_of(app: FastAPI, *, https: bool = False, **headers: str) -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(app, client=("192.0.2.7", 4711))
    base = f"http{'s' if https else ''}://headrace.test"
    async with httpx2.AsyncClient(transport=transport, base_url=base, headers=headers) as client:
        yield client


@pytest.fixture
def app(db: Database, accounts: Accounts) -> FastAPI:
    return make_app(db, accounts)


@pytest.fixture
async def client(app: FastAPI) -> AsyncIterator[httpx2.AsyncClient]:
    """A program: it keeps no cookies."""
    async with client_of(app) as opened:
        yield opened


async def register(client: httpx2.AsyncClient, name: str = "ada") -> dict[str, Any]:
    reply = await client.post("/v1/auth/register", json={"username": name, "password": PASSWORD})
    assert reply.status_code == 201, reply.text
    user: dict[str, Any] = reply.json()
    return user


async def bearer(client: httpx2.AsyncClient, name: str = "ada", password: str = PASSWORD) -> dict[str, str]:
    reply = await client.post("/v1/auth/login", json={"username": name, "password": password})
    assert reply.status_code == 200, reply.text
    client.cookies.clear()
    return {"Authorization": f"Bearer {reply.json()['token']}"}


async def test_register_log_in_and_ask_who_one_is(client: httpx2.AsyncClient) -> None:  # D-01
    reply = await client.post("/v1/auth/register", json={**BODY, "username": "Ada", "email": "ada@example.org"})
    assert reply.status_code == 201
    user = reply.json()
    assert (user["username"], user["email"], user["role"], user["status"]) == (
        "ada",
        "ada@example.org",
        "USER",
        "ACTIVE",
    )
    assert reply.headers["ETag"] == '"0"'
    assert "password" not in reply.text

    headers = await bearer(client)
    me = (await client.get("/v1/me", headers=headers)).json()
    assert me["user"]["id"] == user["id"]
    assert me["session_id"].startswith("ses_")
    assert me["scopes"] is None


async def test_what_registering_refuses(client: httpx2.AsyncClient) -> None:
    await register(client, "taken")
    changes: list[tuple[dict[str, str], int, str]] = [
        ({"username": "a b"}, 400, "invalid_username"),
        ({"username": "system"}, 400, "invalid_username"),
        ({"username": "taken"}, 409, "username_taken"),
        ({"username": "TAKEN"}, 409, "username_taken"),
        ({"password": "short"}, 400, "invalid_password"),
        ({"email": "nowhere"}, 400, "invalid_email"),
    ]
    for change, status, code in changes:
        reply = await client.post("/v1/auth/register", json=BODY | change)
        problem = reply.json()
        assert reply.headers["content-type"] == "application/problem+json"
        assert (reply.status_code, problem["code"]) == (status, code), change
        assert problem["details"]["field"] in change


async def test_what_has_the_wrong_shape_is_named_and_not_sent_back(client: httpx2.AsyncClient) -> None:
    for change in ({"username": ""}, {"password": "x" * 1025}, {"role": "ADMINISTRATOR"}):
        reply = await client.post("/v1/auth/register", json=BODY | change)
        assert reply.status_code in (400, 422)
        assert reply.json()["errors"][0]["field"].removeprefix("body.") in change
        assert not any(value and value in reply.text for value in change.values())


async def test_registering_twice_with_one_key_registers_once(client: httpx2.AsyncClient, db: Database) -> None:
    replies = [await client.post("/v1/auth/register", json=BODY, headers={"Idempotency-Key": "k1"}) for _ in range(2)]
    assert [reply.status_code for reply in replies] == [201, 201]
    assert replies[0].json() == replies[1].json()
    assert len(await events(db, "created")) == 1


async def test_a_closed_house_registers_nobody(db: Database, accounts: Accounts) -> None:
    async with client_of(make_app(db, configured(accounts, registration_open=False))) as client:
        reply = await client.post("/v1/auth/register", json=BODY)
    assert (reply.status_code, reply.json()["code"]) == (403, "registration_closed")


async def test_a_wrong_login_is_401_and_a_paused_one_429(client: httpx2.AsyncClient) -> None:
    await register(client)
    for _ in range(5):
        reply = await client.post("/v1/auth/login", json={**BODY, "password": "wrong"})
        assert (reply.status_code, reply.json()["code"]) == (401, "bad_credentials")
    reply = await client.post("/v1/auth/login", json=BODY)
    assert (reply.status_code, reply.json()["code"], reply.headers["Retry-After"]) == (429, "login_paused", "1")


async def test_a_browser_logs_in_by_cookie_and_needs_the_csrf_token(app: FastAPI, db: Database) -> None:
    async with client_of(app) as browser:
        await register(browser)
        reply = await browser.post("/v1/auth/login", json=BODY)
        session, csrf = reply.headers.get_list("set-cookie")
        assert session.startswith("headrace_session=hrs_")
        assert "HttpOnly" in session
        assert "SameSite=lax" in session
        assert csrf.startswith(f"headrace_csrf={reply.json()['csrf_token']}")
        assert "HttpOnly" not in csrf

        me = await browser.get("/v1/me")
        assert me.json()["csrf_token"] == browser.cookies["headrace_csrf"]
        refused = await browser.post("/v1/auth/logout")
        assert (refused.status_code, refused.json()["code"]) == (403, "csrf_failed")
        done = await browser.post("/v1/auth/logout", headers={"X-CSRF-Token": browser.cookies["headrace_csrf"]})
        assert done.status_code == 204
        assert not browser.cookies
        assert (await browser.get("/v1/me")).status_code == 401
    assert len(await events(db, "logout")) == 1


async def test_by_https_the_cookies_are_secure(db: Database, accounts: Accounts) -> None:
    async with client_of(make_app(db, accounts, secure=True), https=True) as browser:
        await register(browser)
        reply = await browser.post("/v1/auth/login", json=BODY)
        for cookie in reply.headers.get_list("set-cookie"):
            assert cookie.startswith("__Host-headrace_")
            assert "Secure" in cookie
        assert (await browser.get("/v1/me")).status_code == 200


async def test_the_trail_knows_the_request(client: httpx2.AsyncClient, db: Database) -> None:
    await client.post("/v1/auth/register", json=BODY, headers={"X-Request-Id": "req-of-mine", "User-Agent": "tester/1"})
    (event,) = await events(db)
    assert (event["client_ip"], event["user_agent"], event["request_method"], event["request_id"]) == (
        "192.0.2.7",
        "tester/1",
        "POST",
        "req-of-mine",
    )


async def test_changing_the_password(client: httpx2.AsyncClient) -> None:
    await register(client)
    here, there = await bearer(client), await bearer(client)
    new = "a new long phrase"

    wrong = await client.post(
        "/v1/auth/password", json={"current_password": "wrong", "new_password": new}, headers=here
    )
    assert (wrong.status_code, wrong.json()["code"]) == (400, "wrong_password")
    done = await client.post(
        "/v1/auth/password", json={"current_password": PASSWORD, "new_password": new}, headers=here
    )
    assert (done.status_code, done.headers["ETag"]) == (200, '"1"')
    assert (await client.get("/v1/me", headers=there)).status_code == 401
    assert (await client.get("/v1/me", headers=here)).status_code == 200
    await bearer(client, password=new)


async def test_sessions_are_listed_paged_and_ended(client: httpx2.AsyncClient) -> None:
    await register(client)
    sessions = [await bearer(client) for _ in range(4)]
    here = sessions[0]
    page = (await client.get("/v1/sessions?limit=3", headers=here)).json()
    assert len(page["items"]) == 3
    rest = (await client.get(f"/v1/sessions?limit=3&cursor={page['next_cursor']}", headers=here)).json()
    (mine,) = rest["items"]
    assert mine["current"] is True
    assert mine["client_ip"] == "192.0.2.7"
    assert rest["next_cursor"] is None
    assert not any(item["current"] for item in page["items"])

    one = page["items"][0]["id"]
    assert (await client.get(f"/v1/sessions/{one}", headers=here)).json() == page["items"][0]
    assert (await client.delete(f"/v1/sessions/{one}", headers=here)).status_code == 204
    again = await client.delete(f"/v1/sessions/{one}", headers=here)
    assert (again.status_code, again.json()["code"]) == (404, "session_not_found")
    assert (await client.get("/v1/me", headers=sessions[3])).status_code == 401
    assert (await client.delete("/v1/sessions", headers=here)).json() == {"ended": 2}
    assert (await client.get("/v1/me", headers=sessions[1])).status_code == 401
    assert (await client.get("/v1/me", headers=here)).status_code == 200


async def test_another_s_rows_look_like_missing_ones(client: httpx2.AsyncClient) -> None:
    await register(client, "ada")
    await register(client, "bob")
    ada, bob = await bearer(client, "ada"), await bearer(client, "bob")
    session = (await client.get("/v1/sessions", headers=ada)).json()["items"][0]["id"]
    made = await client.post("/v1/api-keys", json={"name": "k", "scopes": ["tasks:read"]}, headers=ada)
    key = made.json()["id"]

    def told(reply: httpx2.Response) -> tuple[int, dict[str, Any]]:
        problem = reply.json()
        return reply.status_code, {name: problem.get(name) for name in ("code", "detail", "details")}

    for method, path, theirs, none in (
        ("GET", "/v1/sessions", session, "ses_none"),
        ("DELETE", "/v1/sessions", session, "ses_none"),
        ("DELETE", "/v1/api-keys", key, "key_none"),
        ("GET", "/v1/api-keys", key, "key_none"),
    ):
        replies = [await client.request(method, f"{path}/{name}", headers=bob) for name in (theirs, none)]
        assert told(replies[0]) == told(replies[1])
        assert replies[0].status_code == 404
    for path in ("/v1/admin/users", "/v1/admin/users/u_none"):
        reply = await client.get(path, headers=bob)
        assert (reply.status_code, reply.json()["code"]) == (403, "admin_only")


async def test_an_api_key_is_made_used_and_revoked(client: httpx2.AsyncClient, db: Database) -> None:
    await register(client)
    person = await bearer(client)
    body = {"name": "nightly", "scopes": ["account:read", "tasks:write"]}
    replies = [
        await client.post("/v1/api-keys", json=body, headers=person | {"Idempotency-Key": "k1"}) for _ in range(2)
    ]
    made = replies[0].json()
    assert replies[1].json() == made, "sent again, the key is told again, once"
    assert replies[0].headers["Location"] == f"/v1/api-keys/{made['id']}"
    assert made["key"].endswith(made["hint"])
    async with db.transaction() as tx:
        stored = str(await tx.fetch("SELECT * FROM headrace.idempotency_keys"))
    assert made["key"] not in stored
    assert made["key"] not in await everything_in(db)

    program = {"Authorization": f"Bearer {made['key']}"}
    me = (await client.get("/v1/me", headers=program)).json()
    assert (me["api_key_id"], me["session_id"], me["csrf_token"]) == (made["id"], None, None)
    assert me["scopes"] == ["account:read", "tasks:write"]
    (listed,) = (await client.get("/v1/api-keys", headers=program)).json()["items"]
    assert "key" not in listed
    assert listed["last_used_at"] is not None
    refused = await client.delete(f"/v1/api-keys/{made['id']}", headers=program)
    assert (refused.status_code, refused.json()["code"]) == (403, "scope_missing")

    assert (await client.delete(f"/v1/api-keys/{made['id']}", headers=person)).status_code == 204
    assert (await client.get("/v1/me", headers=program)).status_code == 401


async def test_keys_that_cannot_be_made(client: httpx2.AsyncClient) -> None:
    await register(client)
    headers = await bearer(client)
    body: dict[str, Any] = {"name": "k", "scopes": ["tasks:read"]}
    await client.post("/v1/api-keys", json=body | {"name": "twice"}, headers=headers)
    changes: list[tuple[dict[str, Any], str | None]] = [
        ({"scopes": ["admin"]}, "invalid_scopes"),
        ({"expires_at": "2020-01-01T00:00:00Z"}, "invalid_expiry"),
        ({"name": "twice"}, "api_key_name_taken"),
        ({"name": "   "}, None),
        ({"scopes": []}, None),
        ({"scopes": ["everything"]}, None),
        ({"expires_at": "2090-01-01T00:00:00"}, None),
    ]
    for change, code in changes:
        reply = await client.post("/v1/api-keys", json=body | change, headers=headers)
        assert 400 <= reply.status_code < 500, change
        if code:
            assert reply.json()["code"] == code
        else:
            assert reply.json()["errors"][0]["field"].removeprefix("body.").partition(".")[0] in change


async def test_an_api_key_cannot_do_what_only_a_person_may(client: httpx2.AsyncClient) -> None:
    await register(client)
    person = await bearer(client)
    expires_at = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    body = {"name": "k", "scopes": ["account:write"], "expires_at": expires_at}
    made = (await client.post("/v1/api-keys", json=body, headers=person)).json()
    program = {"Authorization": f"Bearer {made['key']}"}
    for path, content in (
        ("/v1/api-keys", {"name": "more", "scopes": ["account:write"]}),
        ("/v1/auth/password", {"current_password": PASSWORD, "new_password": "a new long phrase"}),
        ("/v1/auth/logout", None),
    ):
        reply = await client.post(path, json=content, headers=program)
        assert (reply.status_code, reply.json()["code"]) == (403, "session_needed"), path


async def test_an_administrator_makes_and_changes_users(
    client: httpx2.AsyncClient, db: Database, make_user: MakeUser
) -> None:
    await make_user("root", role=Role.ADMIN)
    root = await bearer(client, "root")
    made = await client.post("/v1/admin/users", json={"username": "Ada"}, headers=root)
    assert made.status_code == 201
    user, password = made.json()["user"], made.json()["password"]
    at = made.headers["Location"]
    assert at == f"/v1/admin/users/{user['id']}"
    ada = await bearer(client, "ada", password)

    stale = await client.post(f"{at}/suspend", headers=root | {"If-Match": '"7"'})
    assert (stale.status_code, stale.json()["code"]) == (412, "precondition_failed")
    suspended = await client.post(f"{at}/suspend", headers=root | {"If-Match": '"0"'})
    assert (suspended.status_code, suspended.json()["status"], suspended.headers["ETag"]) == (200, "SUSPENDED", '"1"')
    assert (await client.get("/v1/me", headers=ada)).status_code == 401
    refused = await client.post("/v1/auth/login", json={"username": "ada", "password": password})
    assert (refused.status_code, refused.json()["code"]) == (403, "account_suspended")
    assert (await client.post(f"{at}/reinstate", headers=root)).json()["status"] == "ACTIVE"

    reset = (await client.post(f"{at}/password", json={}, headers=root)).json()
    ada = await bearer(client, "ada", reset["password"])
    chosen = await client.post(f"{at}/password", json={"password": "a phrase of her own"}, headers=root)
    assert chosen.json()["password"] is None
    assert (await client.get("/v1/me", headers=ada)).status_code == 401
    ada = await bearer(client, "ada", "a phrase of her own")

    assert (await client.get("/v1/admin/users", headers=ada)).status_code == 403
    granted = await client.post(f"{at}/role", json={"role": "ADMIN"}, headers=root)
    assert granted.json()["role"] == "ADMIN"
    assert (await client.get("/v1/admin/users", headers=ada)).status_code == 200
    for secret in (password, reset["password"], "a phrase of her own"):
        assert secret not in await everything_in(db)


async def test_the_last_administrator_stays(client: httpx2.AsyncClient, make_user: MakeUser) -> None:
    user = await make_user("root", role=Role.ADMIN)
    root = await bearer(client, "root")
    for path, body in (("suspend", None), ("role", {"role": "USER"})):
        reply = await client.post(f"/v1/admin/users/{user.id}/{path}", json=body, headers=root)
        assert (reply.status_code, reply.json()["code"]) == (409, "last_admin")


async def test_users_are_listed_by_page_and_filter(client: httpx2.AsyncClient, make_user: MakeUser) -> None:
    await make_user("root", role=Role.ADMIN)
    names = [f"user{n}" for n in range(5)]
    for name in names:
        await make_user(name)
    root = await bearer(client, "root")
    seen: list[str] = []
    cursor = ""
    while True:
        page = (await client.get(f"/v1/admin/users?limit=2{cursor}", headers=root)).json()
        seen += [user["username"] for user in page["items"]]
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"
    assert seen == [*reversed(names), "root"]
    one = (await client.get("/v1/admin/users?username=USER3", headers=root)).json()
    assert [user["username"] for user in one["items"]] == ["user3"]
    none = (await client.get("/v1/admin/users?status=SUSPENDED", headers=root)).json()
    assert none["items"] == []


async def test_wechat_is_off_until_it_is_set_up(client: httpx2.AsyncClient) -> None:
    reply = await client.post("/v1/auth/wechat", json={"code": "c"})
    assert (reply.status_code, reply.json()["code"]) == (403, "wechat_off")


async def test_nothing_is_open_without_a_credential(app: FastAPI, client: httpx2.AsyncClient) -> None:
    open_to_all = {
        "/v1/auth/register",
        "/v1/auth/login",
        "/v1/auth/wechat",
        "/v1/auth/password/forgot",
        "/v1/auth/password/reset",
        "/v1/auth/email/confirm",
    }
    document = app.openapi()
    asked = 0
    for path, methods in document["paths"].items():
        if not path.startswith("/v1") or path in open_to_all:
            continue
        for method in methods:
            reply = await client.request(method, path.replace("{", "").replace("}", ""))
            assert reply.status_code == 401, (method, path)
            asked += 1
    assert asked == 36


def test_every_route_is_described(app: FastAPI) -> None:
    for path, methods in app.openapi()["paths"].items():
        for method, operation in methods.items():
            if path.startswith("/v1"):
                assert operation.get("summary"), (method, path)
                assert operation.get("description"), (method, path)
                assert operation.get("tags"), (method, path)
                assert any(int(status) >= 400 for status in operation["responses"]), (method, path)


async def test_a_forged_session_of_the_right_shape_is_nobody(client: httpx2.AsyncClient) -> None:
    await register(client)
    headers = await bearer(client)
    forged = {"Authorization": headers["Authorization"][:-1] + "!"}
    assert (await client.get("/v1/me", headers=forged)).status_code == 401


async def test_a_stranger_cannot_keep_every_core_busy_with_registering(
    client: httpx2.AsyncClient, accounts: Accounts
) -> None:
    burst = accounts.config.registration_limit.burst
    replies = [await client.post("/v1/auth/register", json=BODY) for _ in range(burst + 1)]
    assert [reply.status_code for reply in replies] == [201, *[409] * (burst - 1), 429]
    assert replies[-1].headers["Retry-After"]


async def test_a_long_body_is_refused_before_anyone_looks_into_it(client: httpx2.AsyncClient) -> None:
    reply = await client.post("/v1/auth/login", json={f"field{number}": 1 for number in range(10_000)})
    assert (reply.status_code, reply.json()["code"]) == (413, "body_too_large")
    longest = {"current_password": "\U0001f511" * 1024, "new_password": "\U0001f512" * 1024}
    assert (await client.post("/v1/auth/password", json=longest)).status_code == 401


async def test_an_answer_that_holds_a_new_key_is_not_given_again_to_an_old_one(client: httpx2.AsyncClient) -> None:
    await register(client)
    person = await bearer(client)
    old = await client.post("/v1/api-keys", json={"name": "old", "scopes": ["account:write"]}, headers=person)
    program = {"Authorization": f"Bearer {old.json()['key']}"}
    wanted = {"name": "new", "scopes": ["account:write"]}
    once = {"Idempotency-Key": "k1"}
    assert (await client.post("/v1/api-keys", json=wanted, headers=person | once)).status_code == 201
    assert (await client.post("/v1/api-keys", json=wanted, headers=program | once)).status_code == 403


async def test_an_account_is_deleted_and_kept_over_http(
    client: httpx2.AsyncClient, make_user: MakeUser
) -> None:  # W-16
    await make_user("root", role=Role.ADMIN)
    ada, headers, root = await register(client), await bearer(client), await bearer(client, "root")
    for body in ({}, {"password": PASSWORD, "code": "c"}):
        assert (await client.post("/v1/me/deletion", json=body, headers=headers)).status_code == 422
    wrong = await client.post("/v1/me/deletion", json={"password": "a guess at it"}, headers=headers)
    assert (wrong.status_code, wrong.json()["code"]) == (400, "wrong_password")
    asked = await client.post("/v1/me/deletion", json={"password": PASSWORD}, headers=headers)
    assert (asked.status_code, asked.json()["status"]) == (202, "WAITING")
    assert all("Max-Age=0" in cookie for cookie in asked.headers.get_list("set-cookie"))
    assert (await client.get("/v1/me", headers=headers)).status_code == 401
    refused = await client.post("/v1/auth/login", json=BODY)
    assert (refused.status_code, refused.json()["code"]) == (403, "account_being_deleted")

    url = f"/v1/admin/users/{ada['id']}"
    pending = await client.post(f"{url}/reinstate", headers=root)
    assert (pending.status_code, pending.json()["code"]) == (409, "deletion_pending")
    listed = (await client.get("/v1/admin/deletions", params={"status": "WAITING"}, headers=root)).json()["items"]
    assert [item["user_id"] for item in listed] == [ada["id"]]
    assert (await client.get(f"{url}/deletion", headers=root)).json() == listed[0]
    kept = await client.delete(f"{url}/deletion", headers=root)
    assert (kept.status_code, kept.json()["status"]) == (200, "ACTIVE")
    assert (await client.delete(f"{url}/deletion", headers=root)).status_code == 404
    again = await client.post(f"{url}/deletion", json={"at_once": True}, headers=root)
    assert again.json()["due_at"] == again.json()["created_at"]
    assert (await client.post("/v1/auth/login", json=BODY | {"keep_account": True})).status_code == 403


NUMBER = "+49301234567"


async def test_a_telephone_number_is_its_owner_s_alone(
    client: httpx2.AsyncClient, db: Database, make_user: MakeUser
) -> None:
    await register(client)
    await make_user("root", role=Role.ADMIN)
    ada, root = await bearer(client), await bearer(client, "root")
    said = await client.patch("/v1/me", json={"mobile": "+49 (30) 123-45.67"}, headers=ada | {"If-Match": '"0"'})
    assert (said.status_code, said.json()["mobile"], said.headers["ETag"]) == (200, NUMBER, '"1"')
    me = (await client.get("/v1/me", headers=ada)).json()["user"]
    assert me["mobile"] == NUMBER
    again = await client.patch("/v1/me", json={"mobile": NUMBER}, headers=ada)
    assert again.headers["ETag"] == '"1"', "the same again changes nothing"
    stale = await client.patch("/v1/me", json={"mobile": None}, headers=ada | {"If-Match": '"0"'})
    assert stale.status_code == 412

    body = {"name": "k", "scopes": ["account:write", "account:read"], "expires_at": None}
    key = (await client.post("/v1/api-keys", json=body, headers=ada)).json()["key"]
    program = {"Authorization": f"Bearer {key}"}
    assert (await client.get("/v1/me", headers=program)).json()["user"]["mobile"] is None
    refused = await client.patch("/v1/me", json={"mobile": None}, headers=program)
    assert (refused.status_code, refused.json()["code"]) == (403, "session_needed")
    for path in ("/v1/admin/users", f"/v1/admin/users/{me['id']}"):
        assert "1234567" not in (await client.get(path, headers=root)).text

    (changed,) = await events(db, "updated")
    assert '"mobile":"(changed)"' in changed["diff_object"]["new_object"]
    assert "1234567" not in await everything_in(db)
    gone = await client.patch("/v1/me", json={"mobile": None}, headers=ada)
    assert gone.json()["mobile"] is None


async def test_what_is_no_telephone_number_is_refused(client: httpx2.AsyncClient) -> None:
    await register(client)
    ada = await bearer(client)
    for wrong in ("030 1234567", "+0301234567", "+49", "+123456", "+1234567890123456", "+49 30 ABC", "+٤٩٣٠١٢٣٤٥٦"):
        reply = await client.patch("/v1/me", json={"mobile": wrong}, headers=ada)
        assert (reply.status_code, reply.json()["code"]) == (400, "invalid_mobile"), wrong
        assert reply.json()["details"] == {"field": "mobile"}
