"""What a handler tells and keeps while it runs: progress, steps, log lines, scratch files."""

import asyncio
from typing import Any

from headrace.tasks.context import TaskContext
from tests.tasks.conftest import AT_ONCE, Bench


async def test_a_long_task_shows_as_running_with_its_progress_and_steps(bench: Bench) -> None:
    going, go_on = asyncio.Event(), asyncio.Event()

    @bench.registry.task("film", steps=("read", "write"))
    async def film(context: TaskContext, payload: Any) -> None:
        async with context.step("read") as step:
            step.detail = {"frames": 10}
        async with context.step("write"):
            await context.progress(40, eta_seconds=7)
            await context.log("half way")
            going.set()
            await go_on.wait()

    task = await bench.submit("film")
    async with bench.working() as worker:
        await going.wait()
        row = await bench.row(task)
        assert (row["status"], row["current_step"], row["progress"], row["eta_sec"]) == ("RUNNING", "write", 40, 7)
        assert (row["attempt"], row["worker_id"]) == (1, worker.identity.id)
        go_on.set()
        await bench.over(task)
    async with bench.db.transaction() as tx:
        steps = await tx.fetch("SELECT step_name, status, detail_json FROM headrace.task_steps ORDER BY id")
    assert [tuple(row) for row in steps] == [("read", "SUCCESS", {"frames": 10}), ("write", "SUCCESS", None)]
    assert await bench.logged(task) == [(1, "LOG"), (1, "SUCCEEDED")]


async def test_a_retry_skips_the_steps_that_are_done(bench: Bench) -> None:
    did: list[str] = []

    @bench.registry.task("two", steps=("first", "second"), backoff=AT_ONCE)
    async def two(context: TaskContext, payload: Any) -> Any:
        async with context.step("first") as first:
            if not first.done:
                did.append("first")
                first.detail = {"kept": 1}
        async with context.step("second"):
            did.append("second")
            if context.attempt == 1:
                raise RuntimeError("trip")
        return first.detail

    task = await bench.submit("two")
    async with bench.working():
        (row,) = await bench.over(task)
    assert did == ["first", "second", "second"]
    assert row["result"] == {"kept": 1}


async def test_scratch_files_stay_from_attempt_to_attempt_and_go_with_the_task(bench: Bench) -> None:
    seen: list[list[str]] = []

    @bench.registry.task("files", backoff=AT_ONCE)
    async def files(context: TaskContext, payload: Any) -> None:
        seen.append(sorted(each.name for each in context.scratch.iterdir()))
        (context.scratch / f"part-{context.attempt}").write_text("…")
        if context.attempt < 3:
            raise RuntimeError("again")

    task = await bench.submit("files")
    async with bench.working():
        await bench.over(task)
    assert seen == [[], ["part-1"], ["part-1", "part-2"]]
    assert not (bench.scratch / task).exists()
