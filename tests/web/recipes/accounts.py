"""Recipes of sign-in, accounts, sessions, API keys and users."""

import base64
import time

from headrace import ids
from headrace.accounts import tokens, totp
from tests.web.recipes.base import Sent, recipe
from tests.web.world import PASSWORD, World


@recipe("POST /v1/auth/register")
async def _(world: World) -> Sent:
    return Sent(body={"username": "newcomer", "password": PASSWORD})


@recipe("POST /v1/auth/login")
async def _(world: World) -> Sent:
    return Sent(body={"username": (await world.user())["username"], "password": PASSWORD})


@recipe("POST /v1/auth/wechat")
async def _(world: World) -> Sent:
    return Sent(body={"code": "from-the-mini-program"})


@recipe("POST /v1/auth/logout")
async def _(world: World) -> Sent:
    return Sent(token=(await world.session())[0])


@recipe("POST /v1/auth/password")
async def _(world: World) -> Sent:
    token, _ = await world.session()
    return Sent(body={"current_password": PASSWORD, "new_password": f"{PASSWORD} 2"}, token=token)


@recipe("PATCH /v1/me")
async def _(world: World) -> Sent:
    return Sent(body={"mobile": "+49 30 1234567"}, token=(await world.session())[0])


async def _link(world: World, purpose: str) -> str:
    """The token of a link that was sent by e-mail."""
    token = tokens.new(tokens.LINK)
    await world.db.fetch_alone(
        "INSERT INTO headrace.account_links (id, user_id, purpose, token_hash, email, expires_at) "
        "VALUES ($1, $2, $3, $4, 'ada@example.org', now() + interval '1 hour') RETURNING 1",
        ids.new("lnk"),
        (await world.user())["id"],
        purpose,
        tokens.digest(token),
    )
    return token


@recipe("POST /v1/auth/password/reset")
async def _(world: World) -> Sent:
    return Sent(body={"token": await _link(world, "PASSWORD_RESET"), "new_password": f"{PASSWORD} 2"})


@recipe("POST /v1/auth/email/confirm")
async def _(world: World) -> Sent:
    return Sent(body={"token": await _link(world, "EMAIL_CHANGE")})


@recipe("POST /v1/me/email")
async def _(world: World) -> Sent:
    return Sent(body={"email": "ada@example.org", "password": PASSWORD}, token=(await world.session())[0])


async def _first_code(world: World, token: str) -> dict[str, str]:
    made = (await world.send("POST", "/v1/me/second-factor", {"password": PASSWORD}, token=token)).json()
    return {"code": totp.code_of(base64.b32decode(made["secret"]), totp.step_of(time.time()))}


async def _second_factor(world: World) -> tuple[str, str, str]:
    """A session, its user's id, and a recovery code."""
    token, user = await world.session()
    on = await world.send("POST", "/v1/me/second-factor/enable", await _first_code(world, token), token=token)
    return token, user["id"], on.json()["recovery_codes"][0]


@recipe("POST /v1/me/second-factor")
async def _(world: World) -> Sent:
    return Sent(body={"password": PASSWORD}, token=(await world.session())[0])


@recipe("POST /v1/me/second-factor/enable")
async def _(world: World) -> Sent:
    token, _ = await world.session()
    return Sent(body=await _first_code(world, token), token=token)


@recipe("POST /v1/me/second-factor/disable", "POST /v1/me/second-factor/recovery-codes")
async def _(world: World) -> Sent:
    token, _, code = await _second_factor(world)
    return Sent(body={"password": PASSWORD, "code": code}, token=token)


@recipe("DELETE /v1/admin/users/{user_id}/second-factor")
async def _(world: World) -> Sent:
    return Sent({"user_id": (await _second_factor(world))[1]})


@recipe("DELETE /v1/sessions")
async def _(world: World) -> Sent:
    token, user = await world.session()
    await world.send("POST", "/v1/auth/login", {"username": user["username"], "password": PASSWORD})
    return Sent(token=token)


@recipe("DELETE /v1/sessions/{session_id}")
async def _(world: World) -> Sent:
    token, _ = await world.session()
    page = (await world.send("GET", "/v1/sessions", token=token)).json()
    return Sent({"session_id": page["items"][0]["id"]}, token=token)


@recipe("DELETE /v1/admin/users/{user_id}/sessions/{session_id}")
async def _(world: World) -> Sent:
    token, user = await world.session()
    page = (await world.send("GET", "/v1/sessions", token=token)).json()
    return Sent({"user_id": user["id"], "session_id": page["items"][0]["id"]})


@recipe("DELETE /v1/admin/users/{user_id}/api-keys/{api_key_id}")
async def _(world: World) -> Sent:
    me = (await world.send("GET", "/v1/me")).json()["user"]["id"]
    return Sent({"user_id": me, "api_key_id": await world.api_key()})


@recipe("POST /v1/api-keys")
async def _(world: World) -> Sent:
    return Sent(body={"name": "another", "scopes": ["tasks:read"]})


@recipe("DELETE /v1/api-keys/{api_key_id}")
async def _(world: World) -> Sent:
    return Sent({"api_key_id": await world.api_key()})


@recipe("POST /v1/admin/users")
async def _(world: World) -> Sent:
    return Sent(body={"username": "made-by-admin"})


@recipe("POST /v1/admin/users/{user_id}/suspend")
async def _(world: World) -> Sent:
    return Sent({"user_id": (await world.user())["id"]})


@recipe("POST /v1/admin/users/{user_id}/reinstate")
async def _(world: World) -> Sent:
    user_id = (await world.user())["id"]
    await world.send("POST", f"/v1/admin/users/{user_id}/suspend")
    return Sent({"user_id": user_id})


@recipe("POST /v1/admin/users/{user_id}/role")
async def _(world: World) -> Sent:
    return Sent({"user_id": (await world.user())["id"]}, {"role": "ADMIN"})


@recipe("POST /v1/admin/users/{user_id}/password")
async def _(world: World) -> Sent:
    return Sent({"user_id": (await world.user())["id"]}, {})
