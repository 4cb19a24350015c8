"""W-15, D-06: the same key gives the same answer, and what it stands for happens once."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Annotated, Any

import httpx2
import pytest
from fastapi import Depends, Request, Response

from headrace import ids
from headrace.database import Database, Tx
from headrace.edge import stored_answers
from headrace.edge.authorization import Anyone
from headrace.edge.idempotency import Answer, Once, idempotent
from headrace.edge.routing import Router
from headrace.edge.services import Db
from headrace.errors import Conflict, Exhausted, HeadraceError, Unavailable
from headrace.web.app import create_app
from headrace.web.config import WebConfig
from tests.edge import stand

KEY = {"Idempotency-Key": "order-4711"}


async def rows(db: Database) -> list[dict[str, Any]]:
    async with db.transaction() as tx:
        return [dict(row) for row in await tx.fetch("SELECT * FROM headrace.idempotency_keys ORDER BY id")]


async def test_the_second_request_gets_the_first_answer(client: httpx2.AsyncClient, db: Database) -> None:
    first = await client.post("/v1/things", json={"name": "a"}, headers=KEY)
    second = await client.post("/v1/things", json={"name": "a"}, headers=KEY)

    assert first.status_code == second.status_code == 201
    assert first.content == second.content
    assert first.headers["Location"] == second.headers["Location"] == f"/v1/things/{first.json()['id']}"
    assert "Idempotency-Replayed" not in first.headers
    assert second.headers["Idempotency-Replayed"] == "true"
    assert first.headers["X-Request-Id"] != second.headers["X-Request-Id"]
    assert await stand.things(db, "a") == 1


async def test_the_record_names_what_was_asked_and_answered(client: httpx2.AsyncClient, db: Database) -> None:
    first = await client.post("/v1/things", json={"name": "a"}, headers=KEY)

    (row,) = await rows(db)
    assert (row["scope"], row["user_id"], row["idempotency_key"]) == ("things.create", stand.USER, "order-4711")
    assert (row["http_status"], row["response_json"]) == (201, first.json())
    assert row["result_task_id"] == first.json()["id"]
    assert row["expires_at"] - row["created_at"] == timedelta(hours=24)


async def test_without_a_key_every_request_is_a_new_one(client: httpx2.AsyncClient, db: Database) -> None:
    for _ in range(2):
        assert (await client.post("/v1/things", json={"name": "a"})).status_code == 201
    assert await stand.things(db, "a") == 2
    assert await rows(db) == []


async def test_fifty_at_once_do_it_once(db: Database) -> None:  # D-06, W-15
    # Two processes' worth of apps, so that nothing in memory can be what keeps them apart.
    apps = [stand.app(db), stand.app(db)]
    async with stand.client(apps[0], **stand.AUTHORIZED) as one, stand.client(apps[1], **stand.AUTHORIZED) as other:

        async def send(number: int) -> httpx2.Response:
            caller = (one, other)[number % 2]
            return await caller.post("/v1/things", json={"name": "a"}, headers=KEY)

        answers = await asyncio.gather(*(send(number) for number in range(50)))
        made = [answer for answer in answers if answer.status_code == 201]
        waiting = [answer for answer in answers if answer.status_code == 409]

        assert len(made) + len(waiting) == 50
        assert len({answer.json()["id"] for answer in made}) == 1
        assert sum("Idempotency-Replayed" not in answer.headers for answer in made) == 1
        assert {answer.json()["code"] for answer in waiting} <= {"idempotency_in_progress"}
        assert (await send(0)).json() == made[0].json()
    assert await stand.things(db, "a") == 1


async def test_while_the_first_is_running_the_second_is_told_to_wait(
    client: httpx2.AsyncClient, behaviour: stand.Behaviour, db: Database
) -> None:
    first = asyncio.create_task(client.post("/v1/things", json={"name": "slow"}, headers=KEY))
    await behaviour.inside.wait()
    second = await client.post("/v1/things", json={"name": "slow"}, headers=KEY)
    assert (second.status_code, second.json()["code"]) == (409, "idempotency_in_progress")
    assert second.headers["Retry-After"] == "1"

    behaviour.gate.set()
    third_must_equal = (await first).json()
    third = await client.post("/v1/things", json={"name": "slow"}, headers=KEY)
    assert third.json() == third_must_equal
    assert await stand.things(db, "slow") == 1


async def test_a_request_that_is_cut_off_leaves_nothing_and_frees_the_key(
    client: httpx2.AsyncClient, behaviour: stand.Behaviour, db: Database
) -> None:
    first = asyncio.create_task(client.post("/v1/things", json={"name": "slow"}, headers=KEY))
    await behaviour.inside.wait()
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert await stand.things(db, "slow") == 0
    assert await rows(db) == []

    behaviour.gate.set()
    assert (await client.post("/v1/things", json={"name": "slow"}, headers=KEY)).status_code == 201


@pytest.mark.parametrize(
    "changed",
    [
        {"content": b'{"name":"b"}'},
        {"content": b'{"name": "a"}'},  # the same JSON in other bytes is another body
        {"content": b'{"name":"a"}', "params": {"dry_run": "1"}},
    ],
)
async def test_another_request_under_the_same_key_is_refused(
    client: httpx2.AsyncClient, db: Database, changed: dict[str, Any]
) -> None:
    headers = {**KEY, "Content-Type": "application/json"}
    await client.post("/v1/things", content=b'{"name":"a"}', headers=headers)
    second = await client.post("/v1/things", headers=headers, **changed)
    assert (second.status_code, second.json()["code"]) == (422, "idempotency_key_reused")
    assert await stand.things(db, "a") == 1
    assert await stand.things(db, "b") == 0


async def test_keys_belong_to_a_user_and_an_operation(db: Database) -> None:
    other_user = ids.new("u")
    async with db.transaction() as tx:
        await tx.execute(
            "INSERT INTO headrace.users (id, username, password_hash) VALUES ($1, 'other', '!')", other_user
        )
    async with stand.client(stand.app(db)) as client:
        answers = [
            await client.post("/v1/things", json={"name": "a"}, headers={**KEY, **stand.AUTHORIZED}),
            await client.post(
                "/v1/things", json={"name": "a"}, headers={**KEY, "Authorization": f"Bearer {other_user}"}
            ),
            await client.post("/v1/secrets", json={"name": "a"}, headers=KEY),
        ]
    assert [answer.status_code for answer in answers] == [201, 201, 201]
    assert len({answer.json()["id"] for answer in answers}) == 3
    assert {row["user_id"] for row in await rows(db)} == {stand.USER, other_user, None}


async def test_nobody_in_particular_has_keys_too(db: Database) -> None:
    async with stand.client(stand.app(db)) as client:
        first = await client.post("/v1/secrets", json={"name": "a"}, headers=KEY)
        second = await client.post("/v1/secrets", json={"name": "a"}, headers=KEY)
    assert first.json() == second.json()
    assert len(await rows(db)) == 1


@pytest.mark.parametrize("quoted", ["order-4711", '"order-4711"'])
async def test_a_key_may_be_quoted_as_the_draft_has_it(client: httpx2.AsyncClient, db: Database, quoted: str) -> None:
    await client.post("/v1/things", json={"name": "a"}, headers=KEY)
    second = await client.post("/v1/things", json={"name": "a"}, headers={"Idempotency-Key": quoted})
    assert second.headers["Idempotency-Replayed"] == "true"


@pytest.mark.parametrize("key", ["", " ", "a b", "é", "x" * 129, '""', '"half', "a\\b", "a,b"])
async def test_a_key_with_other_characters_is_refused(client: httpx2.AsyncClient, db: Database, key: str) -> None:
    headers = {"Idempotency-Key": key.encode()}
    answer = await client.post("/v1/things", json={"name": "a"}, headers=headers)  # type: ignore[arg-type]
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_idempotency_key")
    assert await stand.things(db, "a") == 0


async def test_two_keys_on_one_request_are_refused(client: httpx2.AsyncClient) -> None:
    headers = httpx2.Headers([*stand.AUTHORIZED.items(), ("Idempotency-Key", "a"), ("Idempotency-Key", "b")])
    answer = await client.post("/v1/things", json={"name": "a"}, headers=headers)
    assert answer.json()["code"] == "invalid_idempotency_key"


async def test_a_refusal_is_an_answer_and_undoes_what_was_done(
    client: httpx2.AsyncClient, behaviour: stand.Behaviour, db: Database
) -> None:
    behaviour.error = stand.NameTaken(name="a")
    first = await client.post("/v1/things", json={"name": "a"}, headers=KEY)
    behaviour.error = None
    second = await client.post("/v1/things", json={"name": "a"}, headers=KEY)

    for answer in (first, second):
        assert (answer.status_code, answer.json()["code"]) == (409, "name_taken")
        assert answer.json()["details"] == {"name": "a"}
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert answer.json()["request_id"] == answer.headers["X-Request-Id"]
    assert second.headers["Idempotency-Replayed"] == "true"
    assert await stand.things(db, "a") == 0
    assert behaviour.acts == 1


async def test_nobody_runs_between_a_refusal_and_its_record(db: Database, behaviour: stand.Behaviour) -> None:
    """The lock is kept while the refusal is written down: of many at once only one acts."""
    behaviour.error = Conflict()
    async with stand.client(stand.app(db, behaviour), **stand.AUTHORIZED) as client:
        answers = await asyncio.gather(*(client.post("/v1/things", json={"name": "a"}, headers=KEY) for _ in range(20)))
    assert {answer.json()["code"] for answer in answers} <= {"conflict", "idempotency_in_progress"}
    assert behaviour.acts == 1


@pytest.mark.parametrize(
    ("error", "status"), [(Unavailable(), 503), (Exhausted(), 429), (RuntimeError("bug"), 500), (HeadraceError(), 500)]
)
async def test_failures_and_limits_are_forgotten(
    client: httpx2.AsyncClient, behaviour: stand.Behaviour, db: Database, error: Exception, status: int
) -> None:
    behaviour.error = error
    first = await client.post("/v1/things", json={"name": "a"}, headers=KEY)
    assert first.status_code == status
    assert await rows(db) == []
    behaviour.error = None
    second = await client.post("/v1/things", json={"name": "a"}, headers=KEY)
    assert second.status_code == 201
    assert await stand.things(db, "a") == 1


async def test_an_expired_key_is_as_good_as_new(db: Database) -> None:
    async with stand.client(
        stand.app(db, idempotency_lifetime=timedelta(milliseconds=1)), **stand.AUTHORIZED
    ) as client:
        first = await client.post("/v1/things", json={"name": "a"}, headers=KEY)
        second = await client.post("/v1/things", json={"name": "b"}, headers=KEY)
    assert (first.status_code, second.status_code) == (201, 201)
    (row,) = await rows(db)
    assert row["response_json"]["name"] == "b"


async def test_expired_keys_are_reaped_in_portions(db: Database) -> None:
    short = stand.app(db, idempotency_lifetime=timedelta(milliseconds=1))
    async with stand.client(short, **stand.AUTHORIZED) as client:
        for number in range(3):
            await client.post("/v1/things", json={"name": "a"}, headers={"Idempotency-Key": f"old-{number}"})
    async with stand.client(stand.app(db), **stand.AUTHORIZED) as client:
        await client.post("/v1/things", json={"name": "a"}, headers={"Idempotency-Key": "new"})
    counts = []
    for _ in range(3):
        async with db.transaction() as tx:
            counts.append(await stored_answers.reap(tx, 2))
    assert counts == [2, 1, 0]
    assert [row["idempotency_key"] for row in await rows(db)] == ["new"]


@pytest.fixture
async def anyone(db: Database, behaviour: stand.Behaviour) -> AsyncIterator[httpx2.AsyncClient]:
    async with stand.client(stand.app(db, behaviour)) as opened:
        yield opened


async def test_a_secret_is_not_to_be_found_in_the_database(anyone: httpx2.AsyncClient, db: Database) -> None:
    first = await anyone.post("/v1/secrets", json={"name": "a"}, headers=KEY)
    assert first.json()["secret"] == "hr_live_swordfish"
    (row,) = await rows(db)
    assert "swordfish" not in str(row)
    assert row["response_headers"] is None

    second = await anyone.post("/v1/secrets", json={"name": "a"}, headers=KEY)
    assert second.json() == first.json()
    assert second.headers["Location"] == first.headers["Location"]


async def test_a_sealed_answer_cannot_be_moved_to_another_key(anyone: httpx2.AsyncClient, db: Database) -> None:
    await anyone.post("/v1/secrets", json={"name": "a"}, headers=KEY)
    await anyone.post("/v1/secrets", json={"name": "a"}, headers={"Idempotency-Key": "mine"})
    async with db.transaction() as tx:
        await tx.execute(
            "UPDATE headrace.idempotency_keys SET response_json = (SELECT response_json FROM headrace.idempotency_keys "
            "WHERE idempotency_key = 'order-4711') WHERE idempotency_key = 'mine'"
        )
    answer = await anyone.post("/v1/secrets", json={"name": "a"}, headers={"Idempotency-Key": "mine"})
    assert (answer.status_code, answer.json()["code"]) == (409, "idempotency_answer_lost")


async def test_a_body_cannot_be_guessed_from_its_hash(db: Database) -> None:
    """A plain hash of a body with a password would be a fast password hash; under another secret it is another one."""
    for secret in (b"1" * 32, b"2" * 32):
        async with stand.client(stand.app(db, secret=secret)) as client:
            key = {"Idempotency-Key": f"key-{secret[0]}"}
            await client.post("/v1/secrets", json={"name": "a"}, headers=key)
    first, second = await rows(db)
    assert first["request_hash"] != second["request_hash"]


async def test_a_body_that_is_not_valid_leaves_the_key_free(client: httpx2.AsyncClient) -> None:
    assert (await client.post("/v1/things", json={}, headers=KEY)).status_code == 422
    assert (await client.post("/v1/things", json={"name": "a"}, headers=KEY)).status_code == 201


async def test_a_route_that_read_the_body_itself_says_what_stands_for_it(db: Database) -> None:
    routes = Router(prefix="/v1")

    @routes.post("/uploads")
    async def upload(
        request: Request, who: Anyone, db: Db, once: Annotated[Once, Depends(idempotent("uploads.create"))]
    ) -> Response:
        checksum = hashlib.sha256()
        async for piece in request.stream():
            checksum.update(piece)

        async def act(_: Tx) -> Answer:
            return Answer(stand.Thing(id=checksum.hexdigest(), name="file"))

        return await once.run(db, act, body=checksum.digest())

    app = create_app(stand.services(db), WebConfig(streamed_paths=("POST /v1/uploads",)), routers=[routes])
    async with stand.client(app) as client:
        answers = [await client.post("/v1/uploads", content=body, headers=KEY) for body in (b"a", b"a", b"b")]
    assert [answer.status_code for answer in answers] == [201, 201, 422]
