"""What people do with tasks: it is true in the database, told to whoever must know, and done once."""

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from itertools import product
from typing import Any

import orjson
import pytest
from pydantic import BaseModel

from headrace.access import Caller, PreconditionFailed, Role
from headrace.database import Tx
from headrace.tasks import service
from headrace.tasks.context import TaskContext
from headrace.tasks.errors import (
    Fatal,
    PayloadInvalid,
    TaskNotFound,
    TaskNotOver,
    TaskOver,
    TaskSpecInvalid,
    UnknownTaskType,
)
from headrace.tasks.events import OutboxFollower
from headrace.tasks.execution import Backoff
from headrace.tasks.followers import Followers
from headrace.tasks.model import Task, TaskSpec, TaskStatus
from headrace.tasks.why import explain
from tests.outbox.hearing import want
from tests.tasks.conftest import Bench
from tests.tasks.people import have_labels, hire, person, places, take, tasks_of, told, trail


class Order(BaseModel):
    pages: int = 1
    note: str = ""


@pytest.fixture
async def bench(bench: Bench) -> Bench:
    """With types to submit, and the outbox as a follower."""
    bench.followers = Followers({"outbox": OutboxFollower()})
    await want(bench.db)

    @bench.registry.task("report.build", max_attempts=4, timeout=timedelta(minutes=2))
    async def build(context: TaskContext, payload: Order) -> str:
        return "done"

    @bench.registry.task("broken", max_attempts=1)
    async def broken(context: TaskContext, payload: Any) -> None:
        raise Fatal("It never works.")

    @bench.registry.task("long")
    async def long(context: TaskContext, payload: Any) -> None:
        await asyncio.sleep(60)

    return bench


async def submit(bench: Bench, caller: Caller, name: str = "report.build", payload: Any = None, **spec: Any) -> Task:
    async with bench.db.transaction() as tx:
        return await service.submit_task(tx, tasks_of(bench), caller, TaskSpec(name, payload, **spec))


async def read(bench: Bench, caller: Caller, task_id: str) -> Task:
    async with bench.db.transaction() as tx:
        return await service.get_task(tx, caller, task_id)


async def cancel(bench: Bench, caller: Caller, task_id: str, *, expected: int | None = None) -> Task:
    async with bench.db.transaction() as tx:
        return await service.cancel_task(tx, tasks_of(bench), caller, task_id, expected=expected)


async def retry(bench: Bench, caller: Caller, task_id: str, *, expected: int | None = None) -> Task:
    async with bench.db.transaction() as tx:
        return await service.retry_task(tx, tasks_of(bench), caller, task_id, expected=expected)


async def delete(bench: Bench, caller: Caller, task_id: str, *, expected: int | None = None) -> None:
    async with bench.db.transaction() as tx:
        await service.delete_task(tx, caller, task_id, expected=expected)


async def failed(bench: Bench, caller: Caller) -> Task:
    task = await submit(bench, caller, "broken")
    async with bench.working():
        await bench.over(task.id)
    return await read(bench, caller, task.id)


def test_a_program_that_only_runs_tasks_does_not_load_the_web_framework() -> None:
    script = (
        "import sys, headrace, headrace.tasks.worker.loop; headrace.Registry, headrace.TaskContext, headrace.Headrace; "
        "print('fastapi' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert said.stdout == "False\n"


async def test_a_task_is_submitted_and_read(bench: Bench) -> None:  # D-02
    ada = await person(bench)
    await have_labels(bench.db, gpu="a100")
    task = await submit(bench, ada, payload={"pages": 3}, title="March", priority=7, labels={"gpu": "a100"})
    assert (task.status, task.title, task.payload, task.priority) == (TaskStatus.QUEUED, "March", {"pages": 3}, 7)
    assert (task.user_id, task.attempt, task.retries, task.max_attempts) == (ada.user_id, 0, 0, 4)
    assert (task.timeout_seconds, task.labels, task.result, task.worker_id) == (120, {"gpu": "a100"}, None, None)
    assert await read(bench, ada, task.id) == task


async def test_the_trail_says_where_a_task_stands(bench: Bench) -> None:
    ada = await person(bench)
    task = await submit(bench, ada)
    await cancel(bench, ada, task.id)
    paths = {row["space_path"] for row in await trail(bench.db) if row["resource_type"] == "task"}
    assert paths == {f"{task.queue}/report.build"}


async def test_the_same_key_gives_the_same_task_and_one_event(bench: Bench) -> None:  # D-06, A-04
    ada = await person(bench)
    first, second = [await submit(bench, ada, idempotency_key="k1") for _ in range(2)]
    assert first == second
    assert len(await trail(bench.db, "created")) == 1


async def test_a_task_is_read_when_it_is_over(bench: Bench) -> None:  # D-02
    ada = await person(bench)
    task = await submit(bench, ada)
    async with bench.working() as worker:
        await bench.over(task.id)
    task = await read(bench, ada, task.id)
    assert (task.status, task.result, task.attempt, task.worker_id) == ("SUCCEEDED", "done", 1, worker.identity.id)


async def test_a_task_shows_as_running_before_its_row_says_so(bench: Bench) -> None:
    ada, worker = await person(bench), await hire(bench)
    task = await submit(bench, ada)
    (claimed,) = await take(bench, worker)
    assert (await bench.row(task.id))["status"] == "QUEUED"
    shown = await read(bench, ada, task.id)
    assert (shown.status, shown.attempt, shown.worker_id) == (TaskStatus.RUNNING, 1, worker.id)
    assert shown.started_at == claimed.claimed_at


async def test_somebody_elses_task_is_as_good_as_none(bench: Bench) -> None:
    ada, eve = await person(bench), await person(bench, "eve")
    task = await submit(bench, ada)
    verbs: list[Callable[[Tx, str], Awaitable[object]]] = [
        lambda tx, task_id: service.get_task(tx, eve, task_id),
        lambda tx, task_id: service.list_logs(tx, eve, task_id, limit=1),
        lambda tx, task_id: service.list_steps(tx, eve, task_id, limit=1),
        lambda tx, task_id: explain(tx, eve, task_id),
        lambda tx, task_id: service.cancel_task(tx, tasks_of(bench), eve, task_id),
        lambda tx, task_id: service.retry_task(tx, tasks_of(bench), eve, task_id),
        lambda tx, task_id: service.delete_task(tx, eve, task_id),
    ]
    for verb in verbs:
        refusals = []
        for task_id in (task.id, "tsk_01h455vb4pex5vsknk084sn02q"):
            with pytest.raises(TaskNotFound) as refused:
                async with bench.db.transaction() as tx:
                    await verb(tx, task_id)
            refusals.append((refused.value.message, dict(refused.value.details)))
        assert refusals[0] == refusals[1]
    assert await read(bench, ada, task.id) == task


async def test_an_administrator_sees_all_and_the_look_is_audited(bench: Bench) -> None:
    ada, root = await person(bench), await person(bench, "root", role=Role.ADMIN)
    task = await submit(bench, ada)
    own = await submit(bench, root)
    await read(bench, root, task.id)
    await read(bench, root, own.id)
    (event,) = await trail(bench.db, "read")
    assert event["resource"]["identifier"] == task.id
    assert event["user"]["uid"] == root.user_id


async def test_canceling_what_waits_ends_it_at_once(bench: Bench) -> None:
    ada = await person(bench)
    task = await submit(bench, ada)
    canceled = await cancel(bench, ada, task.id)
    assert (canceled.status, canceled.version, canceled.attempt) == (TaskStatus.CANCELED, task.version + 1, 0)
    assert canceled.finished_at is not None
    assert canceled.cancel_requested_at is not None
    assert await places(bench.db, task.id) == []
    assert await bench.logged(task.id) == [(0, "CANCELED")]
    assert await told(bench.db, task.id) == ["created", "canceled"]
    async with bench.working():  # nobody runs it after all
        (row,) = await bench.over((await submit(bench, ada)).id)
    assert (row["status"], (await bench.row(task.id))["status"]) == ("SUCCEEDED", "CANCELED")


async def test_canceling_twice_is_canceling_once(bench: Bench) -> None:
    ada = await person(bench)
    task = await submit(bench, ada)
    assert await cancel(bench, ada, task.id) == await cancel(bench, ada, task.id)
    assert await told(bench.db, task.id) == ["created", "canceled"]
    assert len(await trail(bench.db, "updated")) == 1
    # Where things lie on the worker's machine is not told this way either.
    stack = f'  File "{service.__file__}", line 1, in run\nValueError: no'
    await bench.db.fetch_alone(
        "UPDATE headrace.tasks SET error_message = $2 WHERE id = $1 RETURNING id", task.id, stack
    )
    assert (await cancel(bench, ada, task.id)).error_message == "ValueError: no"


async def test_canceling_what_runs_stops_it(bench: Bench) -> None:
    ada = await person(bench)
    task = await submit(bench, ada, "long")
    async with bench.working():
        await bench.until(task.id, lambda row: row["status"] == "RUNNING")
        asked = await cancel(bench, ada, task.id)
        assert asked.status in (TaskStatus.RUNNING, TaskStatus.CANCELED)
        assert asked.cancel_requested_at is not None
        await cancel(bench, ada, task.id)
        (row,) = await bench.over(task.id)
    assert row["status"] == "CANCELED"
    assert await bench.logged(task.id) == [(1, "CANCELED")]
    assert await told(bench.db, task.id) == ["created", "started", "canceled"]


async def test_what_is_over_is_not_canceled(bench: Bench) -> None:
    ada = await person(bench)
    task = await failed(bench, ada)
    with pytest.raises(TaskOver, match="failed"):
        await cancel(bench, ada, task.id)
    assert await read(bench, ada, task.id) == task


async def test_a_task_of_a_type_that_nobody_knows_can_be_canceled(bench: Bench) -> None:
    ada = await person(bench)
    async with bench.db.transaction() as tx:
        task_id = await tx.fetchval(
            "SELECT headrace.submit('nobody.knows', user_id => $1, unknown_type => 'wait', trusted => true)",
            ada.user_id,
        )
    assert (await cancel(bench, ada, task_id)).status is TaskStatus.CANCELED
    assert await told(bench.db, task_id) == ["created", "canceled"]


async def test_what_failed_is_tried_again_by_hand(bench: Bench) -> None:
    ada = await person(bench)
    task = await failed(bench, ada)
    assert (task.status, task.attempt, task.error_code) == (TaskStatus.FAILED, 1, "fatal")
    again = await retry(bench, ada, task.id)
    assert (again.status, again.attempt, again.retries, again.error_code) == (TaskStatus.QUEUED, 1, 0, None)
    assert (again.finished_at, again.started_at, again.worker_id) == (None, None, None)
    (place,) = await places(bench.db, task.id)
    assert (place["attempt"], place["worker"]) == (1, None)
    async with bench.working():
        (row,) = await bench.over(task.id)
    assert (row["status"], row["attempt"]) == ("FAILED", 2)
    assert await bench.logged(task.id) == [(1, "FAILED"), (0, "RETRIED"), (2, "FAILED")]
    assert await told(bench.db, task.id) == ["created", "started", "failed", "revived", "started", "failed"]


async def test_retries_by_hand_give_the_whole_number_of_attempts_again(bench: Bench) -> None:
    @bench.registry.task("flaky", max_attempts=2, backoff=Backoff(first=timedelta(0)))
    async def flaky(context: TaskContext, payload: Any) -> None:
        raise RuntimeError("no luck")

    ada = await person(bench)
    task = await submit(bench, ada, "flaky")
    async with bench.working():
        await bench.over(task.id)
        await retry(bench, ada, task.id)
        (row,) = await bench.over(task.id)
    assert (row["attempt"], row["retries"]) == (4, 1)


async def test_looking_again_and_again_is_one_event_of_the_trail(bench: Bench) -> None:
    """`headrace submit --wait` wrote an event for every look: 16,468 in 30 minutes."""
    ada, root = await person(bench), await person(bench, "root", role=Role.ADMIN)
    elsewhere = replace(root, who=replace(root.who, client_ip="192.0.2.99"))
    task = await submit(bench, ada)
    for caller in (root, root, elsewhere, ada, root):
        async with bench.db.transaction() as tx:
            await service.get_task(tx, caller, task.id)
    assert [row["client_ip"] for row in await trail(bench.db, "read")] == ["192.0.2.7", "192.0.2.99"]


async def test_what_was_canceled_is_tried_again_by_hand(bench: Bench) -> None:
    ada = await person(bench)
    await bench.db.fetch_alone("INSERT INTO headrace.queues (name) VALUES ('slow')")
    await have_labels(bench.db, gpu="a100")
    task = await submit(bench, ada, priority=3, labels={"gpu": "a100"}, limit_key="k", queue="slow")
    (before,) = await places(bench.db, task.id)
    await cancel(bench, ada, task.id)
    again = await retry(bench, ada, task.id)
    (place,) = await places(bench.db, task.id)
    assert again.cancel_requested_at is None
    assert (place["lane_id"], place["precedence"]) == (before["lane_id"], -3)
    assert place["seq"] > before["seq"]
    async with bench.working(labels={"gpu": "a100"}):
        (row,) = await bench.over(task.id)
    assert row["status"] == "SUCCEEDED"


async def test_only_what_ended_badly_is_tried_again(bench: Bench) -> None:
    ada, worker = await person(bench), await hire(bench)
    waiting = await submit(bench, ada)
    with pytest.raises(TaskNotOver):
        await retry(bench, ada, waiting.id)
    await take(bench, worker)
    with pytest.raises(TaskNotOver):
        await retry(bench, ada, waiting.id)
    done = await submit(bench, ada)
    async with bench.working():
        await bench.over(done.id)
    with pytest.raises(TaskOver, match="succeeded"):
        await retry(bench, ada, done.id)
    assert len(await places(bench.db, waiting.id)) == 1
    assert await places(bench.db, done.id) == []


async def test_only_what_is_over_is_deleted_and_then_it_is_gone(bench: Bench) -> None:  # W-16
    ada, worker = await person(bench), await hire(bench)
    task = await submit(bench, ada)
    with pytest.raises(TaskNotOver):
        await delete(bench, ada, task.id)
    await take(bench, worker)
    with pytest.raises(TaskNotOver):
        await delete(bench, ada, task.id)
    ended = await submit(bench, ada)
    await cancel(bench, ada, ended.id)
    await delete(bench, ada, ended.id)
    for verb in (read, cancel, retry, delete):
        with pytest.raises(TaskNotFound):
            await verb(bench, ada, ended.id)
    assert (await bench.row(ended.id))["deleted_at"] is not None
    (event,) = await trail(bench.db, "deleted")
    assert event["resource"]["identifier"] == ended.id


async def test_a_stale_write_changes_nothing_and_says_so(bench: Bench) -> None:  # W-09
    ada = await person(bench)
    over = await failed(bench, ada)
    waiting = await submit(bench, ada)
    for verb, task in ((cancel, waiting), (retry, over), (delete, over)):
        with pytest.raises(PreconditionFailed) as refused:
            await verb(bench, ada, task.id, expected=task.version + 1)
        assert refused.value.details["version"] == task.version
        assert await read(bench, ada, task.id) == task
    await cancel(bench, ada, waiting.id, expected=waiting.version)
    await retry(bench, ada, over.id, expected=over.version)
    with pytest.raises(PreconditionFailed):  # what was seen before the retry
        await cancel(bench, ada, over.id, expected=over.version)


async def test_every_change_is_audited_without_payload_and_result(bench: Bench) -> None:
    ada = await person(bench)
    task = await submit(bench, ada, payload={"note": "swordfish"})
    await cancel(bench, ada, task.id)
    await retry(bench, ada, task.id)
    await cancel(bench, ada, task.id)
    await delete(bench, ada, task.id)
    rows = await trail(bench.db)
    assert [(row["action"], (row["data"] or {}).get("verb")) for row in rows] == [
        ("created", None),
        ("updated", "cancel"),
        ("updated", "retry"),
        ("updated", "cancel"),
        ("deleted", None),
    ]
    assert {row["resource"]["identifier"] for row in rows} == {task.id}
    assert {row["user"]["uid"] for row in rows} == {ada.user_id}
    assert "swordfish" not in str([dict(row) for row in rows])
    assert '"status":"QUEUED"' in rows[1]["diff_object"]["old_object"]
    assert '"status":"CANCELED"' in rows[1]["diff_object"]["new_object"]


async def test_a_batch_is_submitted_in_order_and_audited_as_one(bench: Bench) -> None:
    ada = await person(bench)
    specs = [TaskSpec("report.build", {"pages": number}) for number in range(300)]
    async with bench.db.transaction() as tx:
        task_ids = await service.submit_tasks(tx, tasks_of(bench), ada, specs)
    assert [(await bench.row(task_id))["payload"]["pages"] for task_id in task_ids[:3]] == [0, 1, 2]
    (event,) = await trail(bench.db, "created")
    assert event["data"] == {"count": "300"}
    assert orjson.loads(event["diff_object"]["new_object"])["id"] == task_ids


BAD = {
    "payload": (TaskSpec("report.build", {"pages": "many"}), PayloadInvalid),
    "type": (TaskSpec("nobody.knows"), UnknownTaskType),
    "media": (TaskSpec("IMAGE"), UnknownTaskType),
    "priority": (TaskSpec("report.build", priority=2_000_000), TaskSpecInvalid),
}


async def test_of_a_batch_with_a_bad_one_nothing_is_written(bench: Bench, subtests: pytest.Subtests) -> None:
    ada = await person(bench)
    for index, (word, (bad, error)) in product((0, 1, 7, 18, 19), BAD.items()):
        with subtests.test(word, index=index):
            specs = [TaskSpec("report.build", {"pages": number}) for number in range(20)]
            specs[index] = bad
            with pytest.raises(error) as refused:
                async with bench.db.transaction() as tx:
                    try:
                        await service.submit_tasks(tx, tasks_of(bench), ada, specs)
                    finally:
                        assert await tx.fetchval("SELECT count(*) FROM headrace.tasks") == 0
            assert refused.value.details["index"] == index
            assert f"Task {index}:" in str(refused.value)
