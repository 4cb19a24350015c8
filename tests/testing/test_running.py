"""``headrace.testing.run``: a handler by itself, by the rules of a worker."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from headrace import Backoff, BlockingTaskContext, Fatal, Registry, Snooze, TaskContext
from headrace.tasks.errors import BadResult, ExtensionRefused, LeaseLost, PayloadInvalid, UnitsRefused
from headrace.testing import Outcome, RanStep, SavedFile, run, run_async


class Order(BaseModel):
    pages: int
    fail: str = ""


registry = Registry()


@registry.task(
    "report.build",
    max_attempts=2,
    backoff=Backoff(first=timedelta(seconds=10), jitter=0),
    units="payload.pages",
    timeout=timedelta(minutes=1),
)
async def build(context: TaskContext, payload: Order) -> dict[str, Any]:
    await context.progress(12.6, eta_seconds=3)
    await context.log(f"attempt {context.attempt} for {context.user_id}")
    async with context.step("draw") as step:
        if not step.done:
            step.detail = {"drawn": payload.pages}
    (context.scratch / "page").write_text("1")
    async with context.step("send"):
        match payload.fail:
            case "error":
                raise RuntimeError("no network")
            case "fatal":
                raise Fatal("The printer is sold.")
            case "snooze":
                raise Snooze(timedelta(minutes=5))
            case "units":
                await context.used(payload.pages + 1)
            case "time":
                await context.extend(61)
            case "result":
                return {"bad": object()}
            case "lost":
                raise LeaseLost
    context.check_canceled()
    await context.used(payload.pages - 1)
    return {"pages": payload.pages, "drawn": step.detail["drawn"]}


@registry.task("report.print", isolation="process")
def print_(context: BlockingTaskContext, payload: dict[str, int]) -> int:
    async def on_a_loop_of_its_own() -> int:
        return payload["copies"]

    with context.step("print") as step:
        step.detail = asyncio.run(on_a_loop_of_its_own())
    context.progress(100)
    context.log("printed")
    context.finish_in("a connection", step.detail)
    return 0


def test_what_a_handler_tells_and_gives_back_is_kept(tmp_path: Path) -> None:
    ran = run(registry, "report.build", {"pages": 3}, user_id="u_ada", scratch=tmp_path)
    assert (ran.outcome, ran.result, ran.used) == (Outcome.SUCCEEDED, {"pages": 3, "drawn": 3}, 2)
    assert (ran.progress, ran.logs) == ([13], ["attempt 1 for u_ada"])
    assert ran.steps == [
        RanStep("draw", done=False, succeeded=True, detail={"drawn": 3}),
        RanStep("send", done=False, succeeded=True),
    ]
    assert [file.name for file in tmp_path.glob("*/*")] == ["page"]


def test_a_handler_that_is_not_async_runs_without_a_child() -> None:
    ran = run(registry, "report.print", {"copies": 2})
    assert (ran.result, ran.finished_in, ran.progress, ran.logs) == (2, "a connection", [100], ["printed"])


async def test_there_is_one_for_tests_with_a_loop() -> None:
    assert (await run_async(registry, "report.build", {"pages": 1})).result["pages"] == 1


@pytest.mark.parametrize(
    ("fail", "outcome", "code", "raised", "delay"),
    [
        ("error", Outcome.RETRIED, "error", RuntimeError, 10),
        ("fatal", Outcome.FAILED, "fatal", Fatal, 0),
        ("snooze", Outcome.SNOOZED, None, Snooze, 300),
        ("units", Outcome.RETRIED, "error", UnitsRefused, 10),
        ("time", Outcome.RETRIED, "error", ExtensionRefused, 10),
    ],
)
def test_what_it_raises_becomes_what_a_worker_makes_of_it(
    fail: str, outcome: Outcome, code: str | None, raised: type[Exception], delay: int
) -> None:
    ran = run(registry, "report.build", {"pages": 1, "fail": fail}, extension=timedelta(seconds=60))
    assert (ran.outcome, ran.error_code, type(ran.error), ran.delay.total_seconds()) == (outcome, code, raised, delay)
    assert [step.succeeded for step in ran.steps] == [True, False]
    with pytest.raises(raised):  # a test that looks at the result only is told what went wrong
        _ = ran.result


def test_the_next_attempt_finds_the_steps_done_and_may_be_the_last() -> None:
    first = run(registry, "report.build", {"pages": 4, "fail": "error"})
    second = run(registry, "report.build", {"pages": 5, "fail": "error"}, after=first)
    assert (second.attempt, second.outcome) == (2, Outcome.FAILED)
    assert second.steps[0] == RanStep("draw", done=True, succeeded=True, detail={"drawn": 4})
    third = run(registry, "report.build", {"pages": 5}, after=second, max_attempts=3)
    assert third.result == {"pages": 5, "drawn": 4}


def test_payloads_and_results_are_checked() -> None:
    with pytest.raises(PayloadInvalid, match="fail: Input should be a valid string"):
        run(registry, "report.build", {"pages": 1, "fail": []})
    odd = run(registry, "report.build", {"pages": 1, "fail": "result"})
    assert (odd.outcome, odd.error_code) == (Outcome.FAILED, "bad_result")
    with pytest.raises(AssertionError, match="The result is not JSON"):
        _ = odd.result


def test_it_can_be_told_to_stop_or_find_that_it_is_not_its_own() -> None:
    ran = run(registry, "report.build", {"pages": 1}, canceled=True)
    assert (ran.outcome, ran.used) == (Outcome.CANCELED, None)
    with pytest.raises(LeaseLost):
        run(registry, "report.build", {"pages": 1, "fail": "lost"})


@registry.task("report.export")
async def export(context: TaskContext, payload: dict[str, str]) -> None:
    file = context.scratch / "rows.csv"
    file.write_text("a,b\n")
    await context.save_result(file.with_name(payload.get("file", file.name)), name=payload.get("name"))
    if payload.get("fail"):
        raise Fatal("No.")


def test_a_file_that_a_handler_saves_is_kept_if_the_attempt_succeeds() -> None:
    assert run(registry, "report.export").saved == SavedFile("rows.csv", "text/csv", b"a,b\n")
    assert run(registry, "report.export", {"name": "../März.txt"}).saved == SavedFile(
        "März.txt", "text/plain", b"a,b\n"
    )
    assert run(registry, "report.export", {"fail": "yes"}).saved is None
    missing = run(registry, "report.export", {"file": "nothing"})
    assert (missing.outcome, missing.error_code, missing.saved) == (Outcome.FAILED, "bad_result", None)
    with pytest.raises(BadResult, match="save_result cannot read"):
        _ = missing.result
