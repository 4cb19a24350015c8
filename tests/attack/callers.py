"""Everybody who may call: with nothing, with something forged, ended or too narrow, and somebody else."""

import secrets
from dataclasses import dataclass, field
from typing import Any

from headrace.access import Scope
from headrace.accounts import tokens
from tests.web.world import PASSWORD, World


@dataclass(frozen=True, slots=True)
class Person:
    user_id: str
    username: str
    token: str


@dataclass(frozen=True, slots=True)
class Callers:
    """By what is wrong with them, the headers they send."""

    unknown: dict[str, dict[str, str]]  # whose credential is none, or none any more
    without_csrf: dict[str, str]  # a session by its cookie alone
    of_victim: dict[str, dict[str, str]]  # the victim's own key with a single scope, by the scope
    of_other: dict[str, dict[str, str]]  # the same of somebody else
    other: Person = field(repr=False)
    other_session: dict[str, str]


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def person(world: World) -> Person:
    token, user = await world.session()
    return Person(user["id"], user["username"], token)


async def key_of(world: World, token: str | None, scopes: list[str]) -> dict[str, Any]:
    made: dict[str, Any] = (
        await world.send("POST", "/v1/api-keys", {"name": secrets.token_hex(4), "scopes": scopes}, token=token)
    ).json()
    return made


async def key_of_one_who_was_administrator(world: World) -> str:
    user = await person(world)
    await world.send("POST", f"/v1/admin/users/{user.user_id}/role", {"role": "ADMIN"})
    token = (await world.send("POST", "/v1/auth/login", {"username": user.username, "password": PASSWORD})).json()[
        "token"
    ]
    key: str = (await key_of(world, token, [Scope.ADMIN]))["key"]
    await world.send("POST", f"/v1/admin/users/{user.user_id}/role", {"role": "USER"})
    return key


async def everybody(world: World) -> Callers:
    other, leaver, suspended, expired = [await person(world) for _ in range(4)]
    every_scope = [str(scope) for scope in Scope if scope is not Scope.ADMIN]
    revoked_key = await key_of(world, other.token, every_scope)
    expired_key = await key_of(world, other.token, every_scope)
    suspended_key = await key_of(world, suspended.token, every_scope)
    cookie = await world.client.post("/v1/auth/login", json={"username": other.username, "password": PASSWORD})
    await world.send("DELETE", f"/v1/api-keys/{revoked_key['id']}", token=other.token)
    await world.send("POST", "/v1/auth/logout", token=leaver.token)
    await world.send("POST", f"/v1/admin/users/{suspended.user_id}/suspend")
    async with world.db.transaction() as tx:
        await tx.execute(
            "UPDATE headrace.sessions SET created_at = now() - interval '2 h', expires_at = now() - interval '1 h'"
            " WHERE user_id = $1",
            expired.user_id,
        )
        await tx.execute(
            "UPDATE headrace.api_keys SET created_at = now() - interval '1 day', expires_at = now() - interval '1 hour'"
            " WHERE id = $1",
            expired_key["id"],
        )
    world.client.cookies.clear()
    return Callers(
        unknown={
            "nobody": {},
            "a forged session": bearer(tokens.SESSION + secrets.token_urlsafe(32)),
            "a forged key": bearer(tokens.API_KEY + secrets.token_urlsafe(32)),
            "an id instead of a token": bearer(other.user_id),
            "a session that logged out": bearer(leaver.token),
            "a session that expired": bearer(expired.token),
            "a revoked key": bearer(revoked_key["key"]),
            "an expired key": bearer(expired_key["key"]),
            "a suspended user's session": bearer(suspended.token),
            "a suspended user's key": bearer(suspended_key["key"]),
        },
        without_csrf={"Cookie": cookie.headers["set-cookie"].partition(";")[0]},
        of_victim={scope: bearer((await key_of(world, None, [scope]))["key"]) for scope in [*every_scope, Scope.ADMIN]},
        of_other={
            **{scope: bearer((await key_of(world, other.token, [scope]))["key"]) for scope in every_scope},
            Scope.ADMIN: bearer(await key_of_one_who_was_administrator(world)),
        },
        other=other,
        other_session=bearer(other.token),
    )
