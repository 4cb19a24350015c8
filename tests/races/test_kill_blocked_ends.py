"""A worker is killed while an end of its waits for somebody's open transaction: the task ends once all the same, and
nothing is charged for a failure."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from headrace.admin.blocking import LIST_BLOCKING
from headrace.audit import Who
from headrace.billing.verifying import verify
from headrace.database import Database
from tests.billing import stand
from tests.edge.stand import user
from tests.races.engine_program import Options
from tests.races.engine_stand import crew

pytestmark = pytest.mark.long

LEASE = 1.0
SUBMIT = "SELECT headrace.submit('render', $2, user_id => $1, run_at => now() + $3, trusted => true) AS id"


async def until(db: Database, sql: str, *args: Any) -> None:
    async with asyncio.timeout(60):
        while not await db.fetch_alone(sql, *args):
            await asyncio.sleep(0.02)


async def test_a_worker_killed_while_its_end_is_blocked_ends_the_task_once(
    db: Database, database_url: str, tmp_path: Path
) -> None:
    ada = await user(db, "ada")
    quota = await stand.grant_alone(db, ada, 10)
    options = Options(database_url, "worker", lease=LEASE, work=0.0, program="tests.races.ledger_program")
    program = await asyncpg.connect(database_url)
    try:
        async with crew(options, tmp_path / "killed", size=1) as hands:
            await until(db, "SELECT FROM headrace.task_types WHERE name = 'render'")
            # It begins when the lock is there.
            [row] = await db.fetch_alone(SUBMIT, ada, {"units": 1, "end": "fail"}, timedelta(seconds=5))
            async with program.transaction():
                await program.fetch(SUBMIT, ada, '{"units": 1, "end": "whole"}', timedelta(0))
                await until(db, LIST_BLOCKING, 1)
                hands.kill(hands.programs[0])  # another one comes, takes the task over, and is blocked in turn
                await until(db, "SELECT FROM headrace.workers WHERE ending = 'DEAD'")
                await until(db, LIST_BLOCKING, 1)
            await until(db, "SELECT FROM headrace.tasks WHERE id = $1 AND finished_at IS NOT NULL", row["id"])
            await until(db, "SELECT FROM headrace.tasks WHERE status = 'SUCCEEDED'")
    finally:
        await program.close()
    assert await stand.entries(db, row["id"]) == [("HELD", 1, "TASK_CREATE"), ("RELEASED", 1, "TASK_FAIL")]
    assert await stand.left(db, quota) == 9
    assert (await verify(db, Who.system())).is_clean
