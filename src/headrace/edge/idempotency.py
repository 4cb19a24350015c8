"""``Idempotency-Key``: a request that creates something is executed once, however often it is sent.

>>> @router.post("/api-keys", status_code=201, response_model=ApiKeyMade, responses=problems(*ONCE, ApiKeyNameTaken))
... async def create(body: ApiKeyIn, caller: SignedIn, db: Db, once: OnceForApiKeys) -> Response:
...     async def act(tx: Tx) -> Answer:
...         key = await service.create_key(tx, caller.who, body.name)
...         return Answer(ApiKeyMade.of(key), status=201, headers={"Location": f"/v1/api-keys/{key.id}"})
...     return await once.run(db, act)
>>> OnceForApiKeys = Annotated[Once, Depends(idempotent("api_keys.create", secret=True))]

The change and its stored answer are one transaction, and a transaction-level lock marks the request as running. So a
crash at any point leaves either both or neither, and frees the key at once.

- Sent again with the same key: the first answer, with ``Idempotency-Replayed: true``. This includes refusals (4xx,
  except 429), which had no effect. Failures (5xx) and 429 are not stored: the next attempt is executed.
- Another method, path or body under the same key: 422. Bodies are compared as bytes.
- While the first is still running: 409 and ``Retry-After``.
- Without a key the request is executed.

Keys are scoped by user and operation. The request's hash is keyed: bodies may hold a password,
and a plain hash of one could be guessed from a copy of the database.
"""

import hashlib
import hmac
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Annotated, Any

import asyncpg
import orjson
from fastapi import Header, Request, Response
from pydantic import BaseModel

from headrace.connections import sqlstate_of
from headrace.database import Database, Json, Row, Tx
from headrace.edge.errors import (
    IdempotencyAnswerLost,
    IdempotencyInProgress,
    IdempotencyKeyReused,
    InvalidIdempotencyKey,
    TooManyAtOnce,
)
from headrace.edge.facts import facts_of
from headrace.edge.problem_details import Problem, answer, headers_of, problem_of, status_of
from headrace.edge.services import services_of
from headrace.errors import Exhausted, HeadraceError, Unavailable
from headrace.sql import Where
from headrace.transactions import literal
from headrace.vault import SecretUnreadable, Vault

HEADER = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"
IN_PROGRESS = "HR011"  # raised by headrace.lock_request
ANSWERED = "HR012"  # raised by headrace.open_request
_ACT = "act"  # the savepoint

# Errors of every route with a key, beside its own.
ONCE = (InvalidIdempotencyKey, IdempotencyKeyReused, IdempotencyInProgress, IdempotencyAnswerLost, TooManyAtOnce)

_KEY = re.compile(r"[A-Za-z0-9._~:+/=@-]{1,128}")
_PATTERN = f'^("{_KEY.pattern}"|{_KEY.pattern})$'


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request, stored for its repetitions. A mapping has the fields of the route's model as JSON has
    them; instants may be datetimes."""

    body: BaseModel | Mapping[str, object] | None
    status: int = 201
    headers: Mapping[str, str] = field(default_factory=dict)
    task_id: str | None = None  # the created task, to find it by the key


Act = Callable[[Tx], Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class KeyedRequest:
    """The identity of a request and its repetitions."""

    scope: str
    user_id: str | None
    key: str
    hash: str

    @property
    def lock(self) -> int:
        name = "\0".join(("idempotency", self.scope, self.user_id or "", self.key)).encode()
        return int.from_bytes(hashlib.blake2b(name, digest_size=8).digest(), signed=True)

    @property
    def name(self) -> Mapping[str, str | None]:
        return {"scope": self.scope, "user_id": self.user_id, "key": self.key}

    @property
    def place(self) -> bytes:
        """The binding of a sealed answer to its row, so that it cannot be moved to another."""
        return "\0".join((self.scope, self.user_id or "", self.key, self.hash)).encode()


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    status: int
    body: Any
    headers: Mapping[str, str]
    task_id: str | None = None


class Once:
    """One request that may be repeated."""

    def __init__(self, request: Request, scope: str, key: str | None, *, secret: bool) -> None:
        self._request = request
        self._scope = scope
        self.key = key
        self._secret = secret

    async def run(self, db: Database, act: Act, *, body: bytes | None = None) -> Response:
        """Execute it in one transaction with the key's record, or return the stored answer.

        A route that reads the body itself, such as an upload, passes a substitute: the file's checksum. Requests of one
        user take turns, so that they do not occupy all connections while they wait for each other.
        """
        caller = facts_of(self._request).caller
        async with services_of(self._request).turns.of(None if caller is None else caller.user_id):
            return await self._run(db, act, body)

    async def _run(self, db: Database, act: Act, body: bytes | None) -> Response:
        if self.key is None:
            async with db.transaction(defers=True) as tx:
                done = await act(tx)
            return _response(_stored(done), kept=False)
        request = await self._identify(self.key, body)
        while True:
            try:
                return await self._run_keyed(db, act, request)
            except asyncpg.PostgresError as exc:
                if sqlstate_of(exc) == IN_PROGRESS:
                    raise IdempotencyInProgress from exc
                if sqlstate_of(exc) != ANSWERED:
                    raise
            async with db.autocommit() as tx:
                row = await find(tx, request)
            if row is not None:  # otherwise it has expired since
                return self._replay(request, row)

    async def _run_keyed(self, db: Database, act: Act, request: KeyedRequest) -> Response:
        refused: HeadraceError | None = None
        # A savepoint from the start costs no message, and is released by the COMMIT.
        opening = f"SELECT headrace.open_request({request.lock}, {literal(request.name)}); SAVEPOINT {_ACT}"
        async with db.transaction(opening=opening, defers=True) as tx:
            try:
                stored = _stored(await act(tx))
            except HeadraceError as error:
                if not _is_final(error):
                    raise
                # The lock is kept until the refusal's record is written.
                await tx.roll_back_to(_ACT)
                refused, stored = error, _refusal(error)
            await keep(tx, request, stored, self._vault(), lifetime=services_of(self._request).idempotency_lifetime)
        if refused is not None:
            raise refused
        return _response(stored)

    def _vault(self) -> Vault | None:
        return Vault(services_of(self._request).key("idempotency.answers")) if self._secret else None

    async def _identify(self, key: str, body: bytes | None) -> KeyedRequest:
        request = self._request
        caller = facts_of(request).caller
        parts = (request.method.encode(), _target(request), await request.body() if body is None else body)
        # Length-prefixed parts, so that different requests never have the same bytes.
        whole = b"".join([each for part in parts for each in (len(part).to_bytes(8), part)])
        digest = hmac.digest(services_of(request).key("idempotency.requests"), whole, "sha256")
        return KeyedRequest(self._scope, caller.user_id if caller else None, key, digest.hex())

    def _replay(self, request: KeyedRequest, row: Row) -> Response:
        if row["request_hash"] != request.hash:
            raise IdempotencyKeyReused
        stored = _read(request, row, self._vault())
        replayed = {**stored.headers, REPLAYED: "true"}
        if stored.status >= 400:
            return answer(Problem.model_validate(stored.body), facts_of(self._request), headers=replayed)
        return _response(StoredAnswer(stored.status, stored.body, replayed))


def idempotent(scope: str, *, secret: bool = False) -> Callable[[Request, str | None], Awaitable[Once]]:
    """The dependency that reads the key. ``scope`` names the operation; ``secret`` answers are stored encrypted."""
    if not 0 < len(scope) <= 64:
        raise ValueError("an idempotency scope has 1 to 64 characters")

    async def once(
        request: Request,
        idempotency_key: Annotated[
            str | None,
            Header(
                alias=HEADER,
                description="Makes it safe to repeat this request: a repetition gets the first answer. Use a new key, "
                "such as a UUID, for each object to create.",
                json_schema_extra={"pattern": _PATTERN},
            ),
        ] = None,
    ) -> Once:
        if len(request.headers.getlist(HEADER)) > 1:
            raise InvalidIdempotencyKey
        return Once(request, scope, _parse(idempotency_key), secret=secret)

    return once


def _parse(value: str | None) -> str | None:
    if value is None:
        return None
    # The IETF draft uses a quoted string, most clients no quotes: both are the same key.
    key = value[1:-1] if len(value) > 2 and value[0] == value[-1] == '"' else value
    if not _KEY.fullmatch(key):
        raise InvalidIdempotencyKey
    return key


def _target(request: Request) -> bytes:
    path: bytes = request.scope.get("raw_path") or request.scope["path"].encode()
    query: bytes = request.scope["query_string"]
    return path + b"?" + query


SELECT = "SELECT request_hash, response_json, response_headers, http_status FROM headrace.idempotency_keys"


async def find(tx: Tx, request: KeyedRequest) -> Row | None:
    # IS NOT DISTINCT FROM would be shorter, but uses no index.
    where = Where().eq("scope", request.scope).eq("user_id", request.user_id).eq("idempotency_key", request.key)
    if request.user_id is None:
        where = where.is_null("user_id")
    return await tx.fetchrow(f"{SELECT} {where.sql} AND expires_at > now()", *where.args)


KEEP = "SELECT headrace.keep_answer($1)"
KEEP_AT_COMMIT = "SELECT headrace.keep_answer({given})"


async def keep(
    tx: Tx, request: KeyedRequest, stored: StoredAnswer, vault: Vault | None, *, lifetime: timedelta
) -> None:
    """Store the answer, replacing an expired one. The caller holds the key's lock."""
    body: object = stored.body
    headers: Mapping[str, str] | None = stored.headers
    if vault is not None:
        body, headers = _seal(vault, request, stored), None
    given = {
        **request.name,
        "hash": request.hash,
        "body": body,
        "headers": headers,
        "status": stored.status,
        "task_id": stored.task_id,
        "lifetime_seconds": lifetime.total_seconds(),
    }
    if not tx.defer(KEEP_AT_COMMIT, given):
        await tx.execute(KEEP, Json(orjson.dumps(given, option=orjson.OPT_UTC_Z)))


def _seal(vault: Vault, request: KeyedRequest, stored: StoredAnswer) -> dict[str, str]:
    text = orjson.dumps({"body": stored.body, "headers": dict(stored.headers)})
    return {"sealed": vault.seal(text, binding=request.place)}


def _open(vault: Vault, request: KeyedRequest, sealed: str) -> tuple[Any, Mapping[str, str]]:
    try:
        text = orjson.loads(vault.open(sealed, binding=request.place))
    except SecretUnreadable:
        raise IdempotencyAnswerLost from None
    return text["body"], text["headers"]


def _read(request: KeyedRequest, row: Row, vault: Vault | None) -> StoredAnswer:
    body, headers = row["response_json"], row["response_headers"]
    if vault is not None:
        body, headers = _open(vault, request, body["sealed"])
    return StoredAnswer(row["http_status"], body, headers or {})


def _stored(done: Answer) -> StoredAnswer:
    assert "set-cookie" not in {name.lower() for name in done.headers}, "a cookie would be stored and replayed"
    body = done.body.model_dump(mode="json") if isinstance(done.body, BaseModel) else done.body
    return StoredAnswer(done.status, body, done.headers, done.task_id)


def _refusal(error: HeadraceError) -> StoredAnswer:
    # Without path and request id: the replay has its own.
    return StoredAnswer(
        status_of(error),
        problem_of(error).model_dump(mode="json", exclude_none=True),
        headers_of(error),
    )


def _is_final(error: HeadraceError) -> bool:
    """Whether a repetition would get the same answer: not if the error has a retry time."""
    later = isinstance(error, Exhausted | Unavailable) or getattr(error, "retry_after", None) is not None
    return not later and status_of(error) < 500


def _response(stored: StoredAnswer, *, kept: bool = True) -> Response:
    if stored.body is None:
        return Response(status_code=stored.status, headers=dict(stored.headers))
    # Sorted where it is kept: jsonb has no order of names, and a repetition gets the bytes of the first answer.
    options = orjson.OPT_UTC_Z | (orjson.OPT_SORT_KEYS if kept else 0)
    body = orjson.dumps(stored.body, option=options)
    return Response(body, status_code=stored.status, media_type="application/json", headers=dict(stored.headers))
