"""The client against the real API, with a real worker."""

import asyncio
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import BaseModel

from headrace import errors as kinds
from headrace import ids
from headrace.client import Client, NewTask, SyncClient, Task, errors
from headrace.tasks.catalog import declare_types
from headrace.tasks.context import TaskContext
from headrace.tasks.errors import Fatal
from tests.billing import stand
from tests.client.conftest import ADMIN_KEY, IMPATIENT
from tests.closing import all_closed
from tests.tasks.conftest import Bench


class Order(BaseModel):
    pages: int


@pytest.fixture
def pressed() -> asyncio.Event:
    """Tasks of the type ``print`` end when it is set."""
    event = asyncio.Event()
    event.set()
    return event


@pytest.fixture(autouse=True)
async def types(bench: Bench, pressed: asyncio.Event) -> None:
    @bench.registry.task("print", steps=["set", "press"])
    async def print_(context: TaskContext, payload: Order) -> dict[str, int]:
        async with context.step("set"):
            await context.progress(30)
        async with context.step("press"):
            await context.log("ink \u2028 is low")
            await pressed.wait()
        return {"printed": payload.pages}

    @bench.registry.task("jam", max_attempts=1)
    async def jam(context: TaskContext, payload: Any) -> None:
        raise Fatal("paper jam")

    async with bench.db.transaction() as tx:
        await declare_types(tx, bench.registry)


async def test_whoever_follows_a_task_may_leave_before_its_end(client: Client) -> None:
    task = await client.submit("print", {"pages": 3})
    with all_closed():
        async with aclosing(client.follow(task.id)) as states:
            assert (await anext(states)).status == "QUEUED"


async def test_a_task_is_submitted_followed_and_read(client: Client, bench: Bench, pressed: asyncio.Event) -> None:
    seen: list[tuple[str, int, str | None]] = []
    pressed.clear()

    def look(task: Task) -> None:
        seen.append((task.status, task.progress, task.current_step))
        if task.current_step == "press":
            pressed.set()

    task = await client.submit("print", {"pages": 3}, title="Report", priority=4)
    assert (task.status, task.title, task.priority, task.payload) == ("QUEUED", "Report", 4, {"pages": 3})
    assert ids.check(task.id, "tsk")
    async with bench.working():
        done = await client.wait(
            task.id,
            within=timedelta(seconds=60),
            on_progress=look,
        )
    assert done.succeeded
    assert (done.result, done.attempt, done.progress) == ({"printed": 3}, 1, 100)
    assert done.finished_at is not None
    assert done.finished_at > done.created_at
    assert ("RUNNING", 30, "press") in seen
    assert seen[-1] == ("SUCCEEDED", 100, "press")
    assert [(step.name, step.status) for step in await client.steps(task.id)] == [
        ("set", "SUCCEEDED"),
        ("press", "SUCCEEDED"),
    ]
    assert [(line.status, line.message) async for line in client.logs(task.id)] == [
        ("LOG", "ink \u2028 is low"),
        ("SUCCEEDED", None),
    ]


async def test_a_failure_is_an_answer_and_not_an_error(client: Client, bench: Bench) -> None:
    async with bench.working():
        done = await client.wait((await client.submit("jam")).id)
    assert (done.status, done.error_code, done.error_message) == ("FAILED", "fatal", "paper jam")
    assert (done.is_over, done.succeeded) == (True, False)


async def test_every_option_of_a_task_arrives(client: Client) -> None:
    later = datetime(2030, 1, 2, 3, 4, tzinfo=UTC)
    made = await client.submit(
        "print",
        {"pages": 1},
        queue="slow",
        run_at=later,
        max_attempts=7,
        timeout=timedelta(minutes=2),
        limit_key="acme",
        labels={"gpu": "a100"},
    )
    task = await client.get(made.id)
    assert (task.queue, task.run_at, task.max_attempts, task.timeout_seconds) == ("slow", later, 7, 120)
    assert (task.limit_key, task.labels) == ("acme", {"gpu": "a100"})


async def test_one_key_gives_one_task(client: Client) -> None:
    made = await asyncio.gather(*(client.submit("print", {"pages": 1}, key="order-1") for _ in range(5)))
    assert len({task.id for task in made}) == 1
    with pytest.raises(errors.IdempotencyKeyReused):
        await client.submit("print", {"pages": 2}, key="order-1")
    assert (await client.submit("print", {"pages": 1})).id != (await client.submit("print", {"pages": 1})).id


async def test_thousands_are_submitted_in_batches_once(client: Client) -> None:
    tasks = [NewTask("print", {"pages": number}) for number in range(1005)]
    made = await client.submit_many(tasks, key="import-1")
    assert len(set(made)) == 1005
    assert await client.submit_many(tasks, key="import-1") == made
    assert (await client.get(made[-1])).payload == {"pages": 1004}
    assert await client.submit_many([]) == []


async def test_the_error_of_a_half_taken_batch_says_what_was_taken(
    client: Client, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 12,000 tasks 10,000 were taken, and the error had neither their ids nor the key to go on with."""
    monkeypatch.setattr("headrace.client.asynchronous._BATCH", 2)
    bench.registry.task("metered", units=1)(lambda _context, _payload: None)
    async with bench.db.transaction() as tx:
        await declare_types(tx, bench.registry)
        await stand.grant(tx, ids.SYSTEM_USER, 5)
    tasks = [NewTask("metered") for _ in range(7)]
    with pytest.raises(errors.QuotaExhausted, match="4 of 7 tasks were submitted") as half:
        await client.submit_many(tasks)
    taken = half.value.details["submitted_ids"]
    await stand.grant_alone(bench.db, ids.SYSTEM_USER, 10)
    made = await client.submit_many(tasks, key=str(half.value.details["key"]))
    assert (made[:4], len(set(made))) == (taken, 7)
    with pytest.raises(errors.UnknownTaskType) as none:
        await client.submit_many([NewTask("nosuch")])
    assert none.value.details["submitted_ids"] == []


async def test_a_list_goes_on_over_all_pages(client: Client) -> None:
    made = await client.submit_many([NewTask("print", {"pages": number}) for number in range(230)])
    await client.submit("print", {"pages": 1}, queue="other")
    assert [task.id async for task in client.list(queue="default", status="QUEUED")] == list(reversed(made))
    assert [task.id async for task in client.list(status=["FAILED", "CANCELED"])] == []
    assert len([task async for task in client.list(user_id="*", type="print")]) == 231
    early = datetime.now(UTC) - timedelta(days=1)
    assert [task async for task in client.list(created_before=early)] == []


async def test_tasks_are_canceled_tried_again_and_deleted(client: Client) -> None:
    task = await client.submit("print", {"pages": 1})
    canceled = await client.cancel(task.id, version=task.version)
    assert canceled.status == "CANCELED"
    again = await client.retry(task.id)
    assert again.status == "QUEUED"
    with pytest.raises(errors.TaskNotOver):
        await client.delete(task.id)
    await client.cancel(task.id)
    await client.delete(task.id)
    with pytest.raises(errors.TaskNotFound) as refused:
        await client.get(task.id)
    assert (refused.value.code, refused.value.status) == ("task_not_found", 404)
    assert refused.value.request_id is not None
    assert isinstance(refused.value, kinds.NotFound)


async def test_queues_and_workers(client: Client, bench: Bench) -> None:
    task = await client.submit("print", {"pages": 1})
    why = await client.why(task.id)
    assert (why.task_id, why.status) == (task.id, "QUEUED")
    assert "no_worker" in why.reasons[0].code
    assert (await client.pause("default")).paused_at is not None
    [queue] = [each for each in await client.queues() if each.name == "default"]
    assert (queue.waiting, queue.running, queue.exact) == (1, 0, True)
    assert queue.paused_at is not None
    assert (await client.resume("default")).paused_at is None
    assert (await client.limit("default", 3)).max_running == 3
    assert (await client.limit("default", None)).max_running is None
    assert {each.name: each.queue for each in await client.task_types()}
    async with bench.working(labels={"zone": "a"}):
        await client.wait(task.id)
        [worker] = await client.workers()
    assert (worker.alive, worker.labels, worker.queues) == (True, {"zone": "a"}, None)
    assert worker.types == ["jam", "print"]


async def test_types_of_events_come_with_their_schemas(client: Client) -> None:
    [created] = [known for known in await client.event_types() if known.name == "task.created"]
    assert (created.version, created.aggregate) == (1, "task")
    assert "task_id" in created.data_schema["required"]


async def test_refusals_come_as_what_they_are(client: Client, api: str) -> None:
    with pytest.raises(errors.UnknownTaskType, match="unheard"):
        await client.submit("unheard.of")
    with pytest.raises(errors.PayloadInvalid, match="pages") as refused:
        await client.submit("print", {"pages": "many"})
    assert refused.value.details["fields"] == ["pages"]
    with pytest.raises(kinds.Invalid) as refused_form:
        await client.submit("print", {"pages": 1}, priority=10**9)
    assert refused_form.value.fields.keys() == {"body.priority"}  # type: ignore[attr-defined]
    task = await client.submit("print", {"pages": 1})
    with pytest.raises(errors.TaskChanged):
        await client.cancel(task.id, version=task.version + 1)
    async with Client(api, "nonsense", retry=IMPATIENT) as stranger:
        with pytest.raises(errors.Unauthenticated):
            await stranger.get(task.id)
    async with Client(api, f"{ids.SYSTEM_USER},tasks:read", retry=IMPATIENT) as reader:
        with pytest.raises(errors.ScopeMissing):
            await reader.cancel(task.id)
        with pytest.raises(errors.AdminOnly):
            await reader.workers()


async def test_what_cannot_be_a_request_is_refused_here() -> None:
    with pytest.raises(ValueError, match="http"):
        Client("headrace.example", "key")
    async with Client("http://127.0.0.1:1", "key") as nowhere:
        with pytest.raises(ValueError, match="expected"):
            await nowhere.get("")
        with pytest.raises(ValueError, match="time zone"):
            await nowhere.submit("print", run_at=datetime(2030, 1, 1))  # noqa: DTZ001 - that is the point


async def test_waiting_has_an_end(client: Client) -> None:
    task = await client.submit("print", {"pages": 1})
    with pytest.raises(TimeoutError, match="did not end within"):
        await client.wait(task.id, within=timedelta(milliseconds=300))


async def test_the_sync_face_has_the_same_verbs(api: str, bench: Bench) -> None:
    def program() -> tuple[Task, list[int]]:
        seen: list[int] = []
        with SyncClient(api, ADMIN_KEY) as client:
            task = client.submit("print", {"pages": 2})
            done = client.wait(
                task.id, within=timedelta(seconds=20), on_progress=lambda task: seen.append(task.progress)
            )
            assert [step.name for step in client.steps(task.id)] == ["set", "press"]
            assert [line.status for line in client.logs(task.id)] == ["LOG", "SUCCEEDED"]
            assert [each.id for each in client.list(type="print")] == [task.id]
            assert client.get(task.id).result == {"printed": 2}
            assert [each.status for each in client.follow(task.id)] == ["SUCCEEDED"]
            assert client.why(task.id).reasons[0].code == "over"
            with pytest.raises(errors.TaskOver):
                client.cancel(task.id)
            other = client.submit_many([NewTask("print", {"pages": 1})])[0]
            client.wait(other)
            late = client.submit("print", {"pages": 1}, run_at=datetime(2030, 1, 1, tzinfo=UTC))
            with pytest.raises(TimeoutError, match="did not end within"):
                client.wait(late.id, within=timedelta(milliseconds=200))
            assert client.cancel(late.id).status == "CANCELED"
            assert client.retry(late.id).status == "QUEUED"
            assert (client.pause("q", create=True).name, client.resume("q").name) == ("q", "q")
            assert (client.limit("q", 2).max_running, len(client.task_types()) > 0) == (2, True)
            assert len(client.workers()) == 1
            assert "task.created" in {known.name for known in client.event_types()}
            assert {queue.name for queue in client.queues()} >= {"default", "q"}
        with pytest.raises(RuntimeError, match="This client is closed"):
            client.get(task.id)
        return done, seen

    async with bench.working():
        done, seen = await asyncio.to_thread(program)
    assert done.result == {"printed": 2}
    assert seen[-1] == 100


def test_both_faces_have_the_same_verbs() -> None:
    def verbs(face: type) -> set[str]:
        return {name for name in dir(face) if not name.startswith("_")}

    assert verbs(Client) == verbs(SyncClient)
