"""``Headrace.wait``: all that one program waits for is looked at together."""

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from headrace.database import Database, DatabaseConfig
from headrace.database_errors import DatabaseUnavailable
from headrace.library.program import Headrace
from headrace.pacing import Pacer
from headrace.tasks.errors import TaskNotFound
from headrace.tasks.registry import Registry
from headrace.tasks.store import watching

END = """
WITH gone AS (DELETE FROM headrace.task_queue WHERE task_id = ANY ($1))
UPDATE headrace.tasks SET status = 'CANCELED', queue_seq = NULL, finished_at = now(), version = version + 1
WHERE id = ANY ($1)
"""


@pytest.fixture
async def program(database_url: str) -> AsyncIterator[Headrace]:
    registry = Registry()
    registry.task("work")(lambda _context, _payload: None)
    async with Headrace(database_url, registry) as opened:
        yield opened


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many tasks each look has asked about."""
    sizes: list[int] = []
    look = watching.find_changed

    async def counted(db: Database, watched: Any) -> Any:
        sizes.append(len(watched))
        return await look(db, watched)

    monkeypatch.setattr("headrace.library.waiting.find_changed", counted)
    return sizes


async def until(condition: Any) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.005)


async def test_one_look_serves_all_that_wait(program: Headrace, db: Database, looks: list[int]) -> None:
    task_ids = [await program.submit("work") for _ in range(200)]
    waiting = [asyncio.create_task(program.wait(task_id)) for task_id in task_ids]
    await until(lambda: looks and looks[-1] == 200)
    await db.fetch_alone(END, task_ids)
    assert [(await each).id for each in waiting] == task_ids
    seen = len(looks)
    await asyncio.sleep(0.05)
    assert len(looks) <= seen + 1  # nothing is looked for when nobody waits


async def test_the_first_look_of_a_connection_sends_one_statement(database_url: str) -> None:
    """The driver reads the catalog about arrays, on each new connection: that took longer than many looks."""
    sent: list[str] = []
    async with await Database.connect(DatabaseConfig(database_url, pool_max=1)) as alone:
        note = lambda record: sent.append(record.query)  # noqa: E731
        async with alone.autocommit() as tx:
            tx.connection.add_query_logger(note)
        assert await watching.find_changed(alone, [("tsk_nobody", None)]) == [watching.Gone]
        await asyncio.sleep(0)  # notes are made by the loop
        async with alone.autocommit() as tx:
            tx.connection.remove_query_logger(note)
    assert len(sent) == 1, sent


async def test_progress_is_shown_and_an_end_that_was_there_takes_one_look(
    program: Headrace, db: Database, looks: list[int]
) -> None:
    shown: list[int] = []
    task_id = await program.submit("work")
    waiting = asyncio.create_task(program.wait(task_id, on_progress=lambda task: shown.append(task.progress)))
    await until(lambda: shown == [0])
    await db.fetch_alone("UPDATE headrace.tasks SET progress = 40, version = version + 1 WHERE id = $1", task_id)
    await until(lambda: shown == [0, 40])
    await db.fetch_alone(END, [task_id])
    assert (await waiting).status == "CANCELED"
    looks.clear()
    assert (await program.wait(task_id)).id == task_id
    assert looks == [1]


async def test_a_task_that_goes_and_a_wait_that_is_given_up_harm_no_other(program: Headrace, db: Database) -> None:
    gone, left, given_up = [await program.submit("work") for _ in range(3)]
    waiting = {each: asyncio.create_task(program.wait(each)) for each in (gone, left)}
    with pytest.raises(TimeoutError, match=given_up):
        await program.wait(given_up, within=timedelta(milliseconds=30))
    async with db.transaction() as tx:  # only what is over is deleted
        await tx.execute(END, [gone])
        await tx.execute("UPDATE headrace.tasks SET deleted_at = now() WHERE id = $1", gone)
    with pytest.raises(TaskNotFound):
        await waiting[gone]
    assert not waiting[left].done()
    await db.fetch_alone(END, [left])
    assert (await waiting[left]).id == left
    with pytest.raises(TaskNotFound):
        await program.wait("tsk_nobody")


async def test_a_look_that_fails_is_raised_by_those_who_wait_and_the_next_wait_works(
    program: Headrace, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object) -> Any:
        raise DatabaseUnavailable

    task_id = await program.submit("work")
    with monkeypatch.context() as broken:
        broken.setattr("headrace.library.waiting.find_changed", away)
        answers = await asyncio.gather(*(program.wait(task_id) for _ in range(3)), return_exceptions=True)
    assert {type(each) for each in answers} == {DatabaseUnavailable}
    waiting = asyncio.create_task(program.wait(task_id))
    await db.fetch_alone(END, [task_id])
    assert (await waiting).id == task_id


async def test_closing_the_program_ends_its_waits(program: Headrace) -> None:
    waiting = asyncio.create_task(program.wait(await program.submit("work")))
    await asyncio.sleep(0.02)
    await program.close()
    with pytest.raises(DatabaseUnavailable):
        await waiting


async def test_what_is_old_is_looked_at_seldom_and_what_has_changed_often() -> None:
    pacer: Pacer[str] = Pacer(first=timedelta(milliseconds=5), last=timedelta(seconds=1))

    async def pause(*, age: float) -> float:
        """How long after a look at this age the next one is due."""
        turn = pacer._turns["a"]
        turn.since, turn.due = time.monotonic() - age, time.monotonic()
        assert await pacer.next_due() == ["a"]
        return turn.due - turn.since - age

    with pacer.watched("a"):
        assert await pause(age=0.01) == pytest.approx(0.005, rel=0.5)
        assert await pause(age=10) == pytest.approx(0.5, rel=0.5)
        assert await pause(age=100) == pytest.approx(1, rel=0.5)
        pacer.touch("a")
        assert pacer._turns["a"].due - pacer._turns["a"].since == pytest.approx(0.005)
        with pacer.watched("b"):  # nearly due: it comes along
            now = time.monotonic()
            pacer._turns["a"].due, pacer._turns["b"].due = now - 1, now + 0.001
            assert set(await pacer.next_due()) == {"a", "b"}
    assert await pacer.next_due() == []
