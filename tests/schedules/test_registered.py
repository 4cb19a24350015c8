"""A schedule's type is registered: declared by a program, or alive in a worker, not too long ago. S-02

Whether somebody runs it now is another question: then the answer carries a warning.
"""

from datetime import timedelta
from typing import Any

import httpx2
import pytest

from headrace.archive.retention import purge_rows
from headrace.assembly.retention import ROWS
from headrace.schedules.errors import ScheduleInvalid
from headrace.schedules.model import ScheduleSpec
from headrace.schedules.service import create_schedule
from headrace.tasks.catalog import StoredCatalog
from headrace.tasks.service import Tasks
from tests.schedules.conftest import Clockwork

NIGHTLY = {"name": "Nightly", "type": "job", "cron": "0 2 * * *"}
DAY = timedelta(days=1)

WORKED = """
INSERT INTO headrace.workers (id, host, pid, types, concurrency, lease, started_at, heartbeat_at, ended_at, ending)
SELECT 'w' || $1, 'h', 1, '{job}', 1, '15 s', at, at, at, 'STOPPED' FROM (SELECT now() - $1::interval AS at) AS made
"""
DECLARED = "UPDATE headrace.task_types SET seen_at = now() - $1::interval"


def codes(answer: httpx2.Response) -> list[str]:
    assert answer.status_code in (200, 201), answer.text
    return [warning["code"] for warning in answer.json()["warnings"]]


def refused(answer: httpx2.Response) -> bool:
    problem: dict[str, Any] = answer.json()
    if answer.status_code < 300:
        return False
    assert (answer.status_code, problem["code"], problem["details"]) == (400, "schedule_invalid", {"fields": ["type"]})
    assert "no longer registered" in problem["detail"]
    return True


async def test_a_type_that_nobody_had_for_long_is_refused(
    ada: httpx2.AsyncClient, clockwork: Clockwork
) -> None:  # S-02
    made = (await ada.post("/v1/schedules", json=NIGHTLY)).json()
    address = f"/v1/schedules/{made['id']}"
    await clockwork.db.fetch_alone(DECLARED, 8 * DAY)
    assert refused(await ada.post("/v1/schedules", json=NIGHTLY | {"name": "Other"}))
    assert refused(await ada.patch(address, json={"priority": 1}))
    stopped = await ada.post(f"{address}/disable")
    assert (stopped.status_code, stopped.json()["warnings"]) == (200, []), "it can always be stopped"
    assert refused(await ada.post(f"{address}/enable"))
    await clockwork.declare()  # as the first process of the next release does
    assert codes(await ada.post(f"{address}/enable")) == ["no_worker"]


@pytest.mark.parametrize(("days", "known"), [(6, True), (8, False)])
async def test_what_a_worker_ran_lately_is_registered(
    ada: httpx2.AsyncClient, clockwork: Clockwork, days: int, known: bool
) -> None:  # S-02
    await clockwork.db.fetch_alone(DECLARED, 100 * DAY)
    await clockwork.db.fetch_alone(WORKED, days * DAY)
    # The worker's row goes before its type is forgotten.
    assert (await purge_rows(clockwork.db, ROWS["workers"], DAY)).removed_rows == 1
    assert refused(await ada.post("/v1/schedules", json=NIGHTLY)) is not known


async def test_a_worker_that_has_run_for_weeks_keeps_its_types(ada: httpx2.AsyncClient, clockwork: Clockwork) -> None:
    async with clockwork.working():
        await clockwork.until_alive()
        await clockwork.db.fetch_alone(DECLARED, 100 * DAY)
        assert codes(await ada.post("/v1/schedules", json=NIGHTLY)) == []
        picky = NIGHTLY | {"name": "Picky", "labels": {"gpu": "a100"}}
        assert codes(await ada.post("/v1/schedules", json=picky)) == ["no_worker_with_labels"]


async def test_declaring_again_is_noted_and_changes_nothing(clockwork: Clockwork) -> None:
    await clockwork.declare()
    await clockwork.db.fetch_alone(DECLARED, DAY)
    (before,) = await clockwork.db.fetch_alone("SELECT * FROM headrace.task_types")
    await clockwork.declare()
    (after,) = await clockwork.db.fetch_alone("SELECT * FROM headrace.task_types")
    assert after["seen_at"] > before["seen_at"] + DAY / 2
    assert after["updated_at"] == before["updated_at"]


async def test_no_type_is_forgotten_for_ever_and_the_product_s_own_never(clockwork: Clockwork) -> None:
    await clockwork.declare()
    await clockwork.db.fetch_alone("INSERT INTO headrace.task_types (name) VALUES ('headrace.other')")
    await clockwork.db.fetch_alone(DECLARED, 8 * DAY)

    async def create(name: str, catalog: StoredCatalog) -> None:
        tasks = Tasks(clockwork.submitter, catalog, clockwork.followers)
        async with clockwork.db.transaction() as tx:
            await create_schedule(tx, tasks, clockwork.caller, ScheduleSpec(name, name, interval=60))

    with pytest.raises(ScheduleInvalid, match="no longer registered"):
        await create("job", StoredCatalog())
    await create("job", StoredCatalog(lifetime=None))
    await create("headrace.other", StoredCatalog())
