"""A limit holds over all machines, also while workers are killed: by what the queue shows, and by what handlers did."""

import asyncio
import json
import random
import time
from collections import Counter
from pathlib import Path

import pytest

from headrace.database import Database, DatabaseConfig
from tests.races.engine_program import KEY_LIMIT, Options
from tests.races.engine_stand import Crew, crew, submit, until_over

pytestmark = pytest.mark.long

RUNNING = """
SELECT lane.limit_key, count(*) AS number
FROM headrace.task_queue AS q JOIN headrace.task_lanes AS lane ON lane.id = q.lane_id
WHERE q.worker IS NOT NULL
GROUP BY lane.limit_key
"""


async def watch_queue(url: str, most: Counter[str]) -> None:
    """Look at the queue as often as it answers; note the most that ever ran for each key."""
    async with await Database.connect(DatabaseConfig(url, role="watcher", pool_max=1)) as db:
        while True:
            for row in await db.fetch_alone(RUNNING):
                most[row["limit_key"]] = max(most[row["limit_key"]], row["number"])
            await asyncio.sleep(0.002)


async def kill_workers(team: Crew, *, seconds: float) -> None:
    """Kill workers at work, for so long, and on a slow machine until some were."""
    began = time.monotonic()
    while time.monotonic() < began + seconds or len(team.buried) < 2:
        assert time.monotonic() < began + seconds + 300
        await asyncio.sleep(random.uniform(0.3, 1.2))
        working = [each for each in team.programs if each.has_worked]
        if working:
            await asyncio.to_thread(team.kill, random.choice(working))


OUTCOMES = """
SELECT task_id, attempt, status, extract(epoch FROM clock_timestamp() - created_at)::float AS ago
FROM headrace.task_logs
"""


async def alive(db: Database, journal: Path) -> dict[str, list[tuple[float, float]]]:
    """When each attempt was alive, by key: from the handler's first line to its last, or to the record of its end.

    Of a killed handler only that record tells, and of one whose worker lost its lease it is what counts.
    """
    asked = time.monotonic()
    outcomes = {(row["task_id"], row["attempt"]): asked - row["ago"] for row in await db.fetch_alone(OUTCOMES)}
    began: dict[tuple[str, int], tuple[str, float]] = {}
    ended: dict[tuple[str, int], float] = {}
    for line in map(json.loads, journal.read_text().splitlines()):
        attempt = (line["task"], line["attempt"])
        if line["word"] == "began":
            assert attempt not in began, "one attempt ran twice"
            began[attempt] = (line["key"], line["at"])
        else:
            ended[attempt] = line["at"]
    spans: dict[str, list[tuple[float, float]]] = {}
    for attempt, (key, at) in began.items():
        # A worker may be frozen between its claim and the first line; what began after its end never counted.
        end = min(outcomes[attempt], ended.get(attempt, outcomes[attempt]))
        if at < end:
            spans.setdefault(key, []).append((at, end))
    return spans


def most_at_once(spans: list[tuple[float, float]]) -> int:
    changes = sorted([(end, -1) for _, end in spans] + [(begin, 1) for begin, _ in spans])
    most = running = 0
    for _, change in changes:
        running += change
        most = max(most, running)
    return most


async def limited(url: str, folder: Path, *, workers: int, each: int, keys: str, work: float, seconds: float) -> None:
    options = Options(
        url, "limited", lease=4, concurrency=6, work=work, journal=str(folder / "journal"), marks=str(folder)
    )
    tasks = each * len(keys)
    seen: Counter[str] = Counter()
    async with await Database.connect(DatabaseConfig(url, role="test")) as db:
        await submit(db, "limited", [{"key": key} for key in keys * each], batch=1000)
        watcher = asyncio.create_task(watch_queue(url, seen))
        async with crew(options, folder / "log", size=workers) as team:
            await kill_workers(team, seconds=seconds)
            await until_over(db, tasks, within=300)
            assert team.fallen == []
        watcher.cancel()
        spans = await alive(db, folder / "journal")
    assert seen == dict.fromkeys(keys, KEY_LIMIT)
    assert {key: most_at_once(spans[key]) for key in keys} == dict.fromkeys(keys, KEY_LIMIT)
    assert sum(map(len, spans.values())) >= tasks


@pytest.mark.timeout(900)
async def test_never_more_than_the_limit_run_though_workers_are_killed(database_url: str, tmp_path: Path) -> None:
    await limited(database_url, tmp_path, workers=4, each=24, keys="ab", work=0.3, seconds=3)


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_a_limit_holds_for_a_minute_of_kills(database_url: str, tmp_path: Path) -> None:
    await limited(database_url, tmp_path, workers=8, each=400, keys="abc", work=0.3, seconds=60)
