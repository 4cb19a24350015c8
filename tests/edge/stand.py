"""A small API to try the edge with: things that can be made, counted and listed, and callers who are whom they say."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Annotated, Any

import httpx2
from asyncpg import DataError, NumericValueOutOfRangeError, UntranslatableCharacterError
from fastapi import Depends, FastAPI, Response
from pydantic import BaseModel, ConfigDict

from headrace import ids
from headrace.access import Caller, Credentials, Role, Scope, check_version
from headrace.audit import ActorType, Principal, PrincipalType, Who
from headrace.database import Database, Tx
from headrace.edge.authorization import Admin, Anyone, SignedIn, scoped
from headrace.edge.etags import ExpectedVersion, etag
from headrace.edge.idempotency import ONCE, Answer, Once, idempotent
from headrace.edge.limits import LimitConfig
from headrace.edge.paging import Page, Paging
from headrace.edge.problem_details import problems
from headrace.edge.routing import Router
from headrace.edge.services import Db, Services
from headrace.edge.text import Text
from headrace.errors import Conflict, Denied, Exhausted, NotFound, Unauthenticated, Unavailable
from headrace.sql import Where
from headrace.storage import StorageUnreachable
from headrace.web.app import create_app
from headrace.web.config import WebConfig

SECRET = b"a secret of the tests, long enough"
USER = ids.SYSTEM_USER  # the one user that every fresh database has
AUTHORIZED = {"Authorization": f"Bearer {USER}"}


class NameTaken(Conflict):
    """Somebody else has this name."""

    code = "name_taken"


async def authenticate(_: Database, who: Who, credentials: Credentials, changes: bool) -> Caller:
    """The bearer token is the user's id, and what follows a space are its role or scopes."""
    if credentials.bearer is None or not credentials.bearer.startswith("u_"):
        raise Unauthenticated
    user_id, *rest = credentials.bearer.split(",")
    known = who.acting_as(Principal(user_id, "tester", PrincipalType.USER), ActorType.USER)
    role = Role.ADMIN if "ADMIN" in rest else Role.USER
    scopes = frozenset(word for word in rest if ":" in word or word == "admin")
    return Caller(known, user_id, role, scopes or None)


class ThingIn(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: Text
    data: dict[str, Any] | None = None


class Thing(BaseModel):
    id: str
    name: str
    secret: str | None = None


class Behaviour:
    """How the next act goes wrong, and what lets a slow one go on."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.gate = asyncio.Event()
        self.inside = asyncio.Event()
        self.acts = 0


def makers(behaviour: Behaviour) -> Router:
    """Routes whose effect is a row in ``users`` with a name that no constraint can keep from coming twice."""
    routes = Router(prefix="/v1", tags=["making"])

    async def make(tx: Tx, body: ThingIn, *, secret: str | None = None) -> Answer:
        behaviour.acts += 1
        thing = Thing(id=ids.new("u"), name=body.name, secret=secret)
        await tx.execute(
            "INSERT INTO headrace.users (id, username, password_hash) VALUES ($1, $2, '!')",
            thing.id,
            f"{body.name}.{thing.id}",
        )
        if body.name == "slow":
            behaviour.inside.set()
            await behaviour.gate.wait()
        if behaviour.error is not None:
            raise behaviour.error
        return Answer(thing, status=201, headers={"Location": f"/v1/things/{thing.id}"}, task_id=thing.id)

    @routes.post("/things", status_code=201, response_model=Thing, responses=problems(*ONCE, NameTaken))
    async def create_thing(
        body: ThingIn,
        caller: SignedIn,
        db: Db,
        once: Annotated[Once, Depends(idempotent("things.create"))],
        dry_run: bool = False,
    ) -> Response:
        return await once.run(db, lambda tx: make(tx, body))

    @routes.post("/secrets", status_code=201, response_model=Thing, responses=problems(NameTaken))
    async def create_secret(
        body: ThingIn, who: Anyone, db: Db, once: Annotated[Once, Depends(idempotent("secrets.create", secret=True))]
    ) -> Response:
        return await once.run(db, lambda tx: make(tx, body, secret="hr_live_swordfish"))

    return routes


@cache
def seers() -> Router:
    """Routes that show what the edge makes of a request."""
    routes = Router(prefix="/v1", tags=["seeing"])

    @routes.get("/things")
    async def list_things(caller: SignedIn, db: Db, paging: Paging, prefix: str | None = None) -> Page[Thing]:
        listing = paging.of("things", owner=caller.user_id, prefix=prefix)
        where = Where().older_than(("created_at", "id"), listing.after)
        async with db.transaction(readonly=True) as tx:
            rows = await tx.fetch(
                f"SELECT id, username, created_at FROM headrace.users {where.sql} "
                f"ORDER BY created_at DESC, id DESC LIMIT ${where.next}",
                *where.args,
                listing.fetch,
            )
        return listing.page(
            rows,
            mark=lambda row: (row["created_at"], row["id"]),
            item=lambda row: Thing(id=row["id"], name=row["username"]),
        )

    @routes.get("/other-things")
    async def list_other_things(caller: SignedIn, paging: Paging) -> Page[Thing]:
        listing = paging.of("other_things", owner=caller.user_id)
        return listing.page(list[Thing](), mark=lambda thing: (datetime.now(UTC), thing.id), item=lambda thing: thing)

    @routes.get("/me", responses=problems(NotFound))
    async def read_me(caller: SignedIn, response: Response) -> dict[str, Any]:
        response.headers["ETag"] = etag(7)
        return {"user_id": caller.user_id, **asdict(caller.who)}

    @routes.put("/me")
    async def change_me(caller: SignedIn, expected: ExpectedVersion, body: ThingIn) -> dict[str, Any]:
        check_version(7, expected)
        return {"expected": expected}

    @routes.get("/tasks")
    async def read_tasks(caller: Annotated[Caller, Depends(scoped(Scope.TASKS_READ))]) -> dict[str, str]:
        return {"user_id": caller.user_id}

    @routes.get("/admin")
    async def read_admin(caller: Admin) -> dict[str, str]:
        return {"user_id": caller.user_id}

    return routes


@cache
def trouble() -> Router:
    """Routes that take anything, and routes that go wrong."""
    routes = Router(prefix="/v1", tags=["trouble"])

    @routes.post("/echo")
    async def echo(who: Anyone, body: ThingIn) -> ThingIn:
        return body

    @routes.get("/echo/{word}")
    async def echo_word(who: Anyone, db: Db, word: str, number: int = 0) -> dict[str, Any]:
        async with db.transaction() as tx:
            row = await tx.fetchrow("SELECT $1::text AS word, $2::int8 AS number", word, number)
        assert row is not None
        return dict(row)

    @routes.post("/store")
    async def store(who: Anyone, db: Db, body: dict[str, Any]) -> dict[str, Any]:
        async with db.transaction() as tx:
            return {"stored": await tx.fetchval("SELECT $1::jsonb", body)}

    @routes.get("/failing/{how}")
    async def fail(who: Anyone, how: str) -> None:
        raise {
            "unforeseen": RuntimeError("the password is swordfish"),
            "unavailable": Unavailable(),
            "exhausted": Exhausted(retry_after=timedelta(seconds=2.5)),
            "storage": StorageUnreachable("s3://inner-bucket/p at http://10.0.0.7 refuses the key AKIA7"),
            "conflict": NameTaken(name="x"),
            "denied": Denied(),
            "text": UntranslatableCharacterError("a character that no schema looked at"),
            "number": NumericValueOutOfRangeError("a number that no schema looked at"),
            "data": DataError("a mistake of ours"),
        }[how]

    return routes


def services(db: Database, **changes: Any) -> Services:
    ample = LimitConfig(per_minute=60_000, burst=10_000)
    return replace(Services(db=db, authenticate=authenticate, secret=SECRET, limits=ample), **changes)


def app(
    db: Database, behaviour: Behaviour | None = None, *, config: WebConfig | None = None, **changes: Any
) -> FastAPI:
    return create_app(
        services(db, **changes), config or WebConfig(), routers=[makers(behaviour or Behaviour()), seers(), trouble()]
    )


@asynccontextmanager
async def client(served: FastAPI, *, peer: str = "192.0.2.7", **headers: str) -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(served, client=(peer, 4711))
    async with httpx2.AsyncClient(transport=transport, base_url="http://headrace.test", headers=headers) as opened:
        yield opened


async def user(db: Database, name: str) -> str:
    """The id of somebody new, who signs in with it as a token."""
    user_id = ids.new("u")
    async with db.transaction() as tx:
        await tx.execute("INSERT INTO headrace.users (id, username, password_hash) VALUES ($1, $2, '!')", user_id, name)
    return user_id


async def things(db: Database, name: str) -> int:
    """How many things of this name there are."""
    async with db.transaction() as tx:
        return int(await tx.fetchval("SELECT count(*) FROM headrace.users WHERE username LIKE $1", f"{name}.%"))
