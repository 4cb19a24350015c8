"""Alive, ready, counted."""

import asyncio
from collections.abc import Sequence

import pytest

from headrace.database import Database
from headrace.web import health
from tests.edge import stand


async def test_alive_needs_nobody(no_db: Database) -> None:
    async with stand.client(stand.app(no_db)) as client:
        answer = await client.get("/healthz")
        assert (answer.status_code, answer.json()["status"]) == (200, "ok")
        assert (await client.head("/healthz")).status_code == 200


async def test_ready_asks_and_gives_the_reasons(no_db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "_CACHE_SECONDS", 0)
    reasons: list[str] = []

    async def readiness() -> Sequence[str]:
        return reasons

    async with stand.client(stand.app(no_db, readiness=readiness)) as client:
        assert (await client.get("/readyz")).json() == {"status": "ready"}
        reasons.append("The schema is older than this program.")
        answer = await client.get("/readyz")
    assert (answer.status_code, answer.json()["code"]) == (503, "not_ready")
    assert answer.json()["details"] == {"reasons": ["The schema is older than this program."]}
    assert answer.headers["Retry-After"] == "1"


async def test_without_file_storage_it_is_ready_and_says_what_does_not_work(no_db: Database) -> None:
    """All processes share one storage: taking every one of them away would end everything else, too."""
    async with stand.client(stand.app(no_db, degraded=lambda: ("storage",))) as client:
        answer = await client.get("/readyz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ready", "degraded": ["storage"]})


async def test_a_flood_of_probes_asks_once(no_db: Database) -> None:
    asked = 0

    async def readiness() -> Sequence[str]:
        nonlocal asked
        asked += 1
        await asyncio.sleep(0.01)
        return ()

    async with stand.client(stand.app(no_db, readiness=readiness)) as client:
        answers = await asyncio.gather(*(client.get("/readyz") for _ in range(50)))
    assert {answer.status_code for answer in answers} == {200}
    assert asked == 1


async def test_a_database_that_hangs_does_not_hang_the_probe(no_db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "_READINESS_TIMEOUT_S", 0.05)

    async def readiness() -> Sequence[str]:
        try:
            await asyncio.sleep(0 if over.is_set() else 60)
        except asyncio.CancelledError:
            await over.wait()  # as long as a statement takes to be taken back; the probe does not wait for it
        return ()

    over = asyncio.Event()
    async with stand.client(stand.app(no_db, readiness=readiness)) as client:
        for _ in range(2):
            answer = await client.get("/readyz")
            assert (answer.status_code, answer.json()["code"]) == (503, "not_ready")
        over.set()


async def test_two_apps_in_one_process_count_apart(no_db: Database) -> None:
    one, other = stand.app(no_db), stand.app(no_db)
    async with stand.client(one) as first, stand.client(other) as second:
        await first.get("/v1/nowhere")
        assert "unmatched" in (await first.get("/metrics")).text
        assert "unmatched" not in (await second.get("/metrics")).text
