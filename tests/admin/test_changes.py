"""Operators are told what changes while they look on: rows of tasks and runs, and which lists to read again."""

import asyncio
from contextlib import aclosing
from datetime import timedelta

import pytest

from headrace.admin.changes import live
from headrace.admin.changes.live import Changes, ChangesConfig
from headrace.admin.changes.model import Kind, News
from headrace.database import Database
from headrace.database_errors import DatabaseUnavailable
from headrace.edge.streams import Heartbeat, Revoked, TooManyStreams
from tests.web.world import whole_api

TOUCH_TASK = "UPDATE headrace.tasks SET progress = 40, version = version + 1, updated_at = now() WHERE id = $1"


async def yes() -> bool:
    return True


async def no() -> bool:
    return False


async def told(changes: Changes, kind: Kind) -> News:
    """The next news of a kind; PostgreSQL passes its counts on within ten seconds of a write."""
    for _ in range(600):
        news = await changes.run_once()
        if kind in news.kinds:
            return news
        await asyncio.sleep(0.1)
    raise AssertionError(kind)


async def test_a_task_that_moves_is_told_once_as_it_is_now(db: Database, database_url: str) -> None:
    async with whole_api(database_url) as (world, _):
        before = await world.task()
        changes = Changes(db)
        assert not await changes.run_once()  # what was there before is no news
        made = await world.task()
        assert [task.id for task in (await changes.run_once()).tasks] == [made]
        await db.fetch_alone(TOUCH_TASK, before)
        assert [(task.id, task.progress) for task in (await changes.run_once()).tasks] == [(before, 40)]
        assert not (await changes.run_once()).tasks


async def test_what_could_not_be_read_is_still_told_at_the_next_look(
    db: Database, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object) -> None:
        raise OSError("the server closed the connection")

    async with whole_api(database_url) as (world, _):
        changes = Changes(db)
        await changes.run_once()
        made = await world.task()
        with monkeypatch.context() as broken:
            broken.setattr(live, "list_named", away)
            with pytest.raises(OSError, match="closed"):
                await changes.run_once()
        assert [task.id for task in (await changes.run_once()).tasks] == [made]


async def test_new_tasks_are_told_newest_first_and_deleted_ones_by_reading_again(
    db: Database, database_url: str
) -> None:
    async with whole_api(database_url) as (world, _):
        changes = Changes(db)
        await changes.run_once()
        made = [await world.task() for _ in range(5)]
        assert [task.id for task in (await changes.run_once()).tasks] == made[::-1]
        await world.send("POST", f"/v1/tasks/{made[0]}/cancel")
        await changes.run_once()
        assert (await world.send("DELETE", f"/v1/tasks/{made[0]}")).status_code == 204
        news = await changes.run_once()
        assert not news.tasks
        assert Kind.TASKS in news.kinds


async def test_where_too_many_move_the_list_is_to_be_read_again(db: Database, database_url: str) -> None:
    async with whole_api(database_url) as (world, _):
        changes = Changes(db, ChangesConfig(rows=2))
        await changes.run_once()
        for _ in range(3):
            await world.task()
        news = await changes.run_once()
        assert not news.tasks
        assert {Kind.TASKS, Kind.RUNS} <= news.kinds


@pytest.mark.long
async def test_other_changes_are_told_by_their_kind_and_a_look_at_the_trail_is_none(
    db: Database, database_url: str
) -> None:
    async with whole_api(database_url) as (world, _):
        changes = Changes(db, ChangesConfig(window=timedelta(minutes=5)))
        await changes.run_once()
        await world.send("GET", "/v1/audit/events")
        assert Kind.AUDIT not in (await changes.run_once()).kinds
        known = (await world.send("GET", "/v1/admin/configs/keys")).json()["items"][0]
        body = {"value": known["default"], "is_active": True}
        reply = await world.send("PUT", f"/v1/admin/configs/{known['key']}?scope=GLOBAL", body)
        assert reply.status_code in {200, 201}, reply.text
        assert Kind.AUDIT in (await changes.run_once()).kinds
        await told(changes, Kind.CONFIGS)


async def test_who_comes_back_reads_everything_again_and_who_may_no_longer_look_is_told_so(db: Database) -> None:
    config = ChangesConfig(heartbeat=timedelta(0))
    changes = Changes(db, config)
    async with aclosing(changes.follow("u1", again=False, may_see=yes)) as news:
        assert await anext(news) == News()
        assert isinstance(await anext(news), Heartbeat)
    async with aclosing(changes.follow("u1", again=True, may_see=no)) as news:
        first = await anext(news)
        assert isinstance(first, News)
        assert first.kinds == frozenset(Kind)
        assert isinstance(await anext(news), Revoked)


async def test_while_nobody_can_tell_whether_they_may_look_news_wait(db: Database) -> None:
    answers: list[bool | Exception] = [DatabaseUnavailable(), RuntimeError("a mistake of ours"), True, False]

    async def may_see() -> bool:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    changes = Changes(db, ChangesConfig(heartbeat=timedelta(0)))
    async with aclosing(changes.follow("u1", again=False, may_see=may_see)) as news:
        await anext(news)
        for stream in changes._streams:
            stream.tell(News(frozenset({Kind.LOCKS})))
        rest = [each async for each in news]
    assert rest == [Heartbeat(), Heartbeat(), News(frozenset({Kind.LOCKS})), Heartbeat(), Revoked()]


async def test_nobody_opens_streams_without_end(db: Database) -> None:
    changes = Changes(db, ChangesConfig(most_per_user=1))
    async with aclosing(changes.follow("u1", again=False, may_see=yes)) as news:
        await anext(news)
        changes.check_room("u2")
        with pytest.raises(TooManyStreams):
            changes.check_room("u1")
    changes.check_room("u1")


async def test_only_administrators_follow_and_opening_is_on_record(db: Database, database_url: str) -> None:
    async with whole_api(database_url) as (world, app):
        token, _ = await world.session()
        theirs = {"Authorization": f"Bearer {token}"}
        assert (await world.client.get("/v1/admin/changes", headers=theirs)).status_code == 403
        app.state.before_stop()  # a stream that ends after its first event
        reply = await world.send("GET", "/v1/admin/changes")
        assert reply.headers["content-type"].startswith("text/event-stream")
        assert 'event: changed\ndata: {"kinds":[],"tasks":[],"runs":[]}' in reply.text
        looks = "SELECT resource_type FROM headrace.audit_events WHERE action = 'read' AND data ->> 'of' = 'changes'"
        assert {row[0] for row in await db.fetch_alone(looks)} == {"task", "execution"}
