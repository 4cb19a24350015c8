"""A worker that cannot claim stays, says so, and goes on when it can."""

import asyncio
from collections.abc import Sequence
from typing import Any

import asyncpg
import httpx2
import pytest

from headrace.figures import Meters, no_figures
from headrace.tasks.context import TaskContext
from headrace.tasks.worker import store
from headrace.web.exposition import create_metrics_app
from tests.tasks.conftest import Bench


async def test_a_claim_that_postgres_refuses_ends_no_worker(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Going back over a migration under a running worker ended it: "this should not have happened"."""
    claim_first, survey = store.claim_first, store.survey

    async def refused(*_: Any, **__: Any) -> Sequence[Any]:
        raise asyncpg.UndefinedColumnError("column known.limited_by_plan does not exist")

    @bench.registry.task("work")
    async def work(context: TaskContext, payload: Any) -> None: ...

    monkeypatch.setattr(store, "claim_first", refused)
    monkeypatch.setattr(store, "survey", refused)
    async with bench.working() as worker, asyncio.timeout(60):
        task = await bench.submit("work")
        app = create_metrics_app(Meters(), no_figures, reasons=worker.reasons_not_ready)
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://worker") as client:
            while (answer := await client.get("/readyz")).status_code == 200:
                await asyncio.sleep(0.01)
            assert "UndefinedColumnError" in answer.json()["reasons"][0]
            monkeypatch.setattr(store, "claim_first", claim_first)
            monkeypatch.setattr(store, "survey", survey)
            await bench.over(task)
            assert (await client.get("/readyz")).status_code == 200
