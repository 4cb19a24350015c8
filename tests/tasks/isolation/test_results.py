"""What handlers in child processes give back, raise and report."""

import asyncio
import os
from dataclasses import fields
from datetime import timedelta
from pathlib import Path

import orjson
import pytest

from headrace import logs
from headrace.tasks.errors import BadResult, Fatal, LeaseLost, PayloadInvalid, Snooze
from headrace.tasks.isolation import wire
from headrace.tasks.isolation.children import Children
from headrace.tasks.isolation.errors import HandlerFailed
from headrace.tasks.isolation.output import KEPT, Output
from headrace.tasks.model import ErrorCode
from tests.tasks.isolation.stand import Stand, claim, closing, eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

PLAIN = {"a": [1, 2.5, None, True, "水印"], "b": {"c": ""}}


@pytest.mark.parametrize("name", ["echo", "echo.async"])
async def test_a_result_comes_back_as_it_was(stand: Stand, name: str) -> None:
    assert await stand.run(name, PLAIN) == PLAIN
    assert await stand.run(name) is None


async def test_a_handler_knows_whom_it_works_for_and_runs_in_the_main_thread_of_another_process(stand: Stand) -> None:
    found = await stand.run("who")
    assert found["pid"] in stand.children.pids
    assert found["pid"] != os.getpid()
    assert found["scratch"] == str(stand.scratch / found["task_id"])
    assert (found["user_id"], found["attempt"], found["trace_id"]) == ("u_1", 2, "trace-1")
    assert found["main_thread"]


async def test_what_was_claimed_arrives_whole() -> None:
    claimed = claim("echo", PLAIN)
    sent = wire.pack({"claimed": claimed})
    stream = asyncio.StreamReader()
    stream.feed_data(sent)
    received = await wire.read(stream)
    assert received is not None
    there = wire.unpack_claimed(received["claimed"])
    assert {each.name: getattr(there, each.name) for each in fields(claimed)} == {
        each.name: getattr(claimed, each.name) for each in fields(claimed)
    }


async def test_payload_and_result_are_models_on_the_other_side_and_plain_here(stand: Stand) -> None:
    assert await stand.run("typed", {"number": "7"}) == {"number": 7, "said": "Order"}


async def test_a_payload_that_does_not_fit_is_named_as_such(stand: Stand) -> None:
    with pytest.raises(PayloadInvalid, match="number: Input should be a valid integer") as caught:
        await stand.run("typed", {"number": "many"})
    assert caught.value.details == {"fields": ["number"]}


async def test_an_exception_comes_with_its_type_message_and_traceback_from_the_handler_on(stand: Stand) -> None:
    with pytest.raises(HandlerFailed) as caught:
        await stand.run("raises", "value")
    failed = caught.value
    assert (failed.type_name, failed.message) == ("ValueError", "ValueError: the third line is empty")
    assert failed.error_code is ErrorCode.ERROR
    first, *_, last = failed.traceback.splitlines()
    assert first.startswith("Traceback")
    assert last == "ValueError: the third line is empty"
    assert "program.py" in failed.traceback
    assert "isolation/child.py" not in failed.traceback


async def test_the_traceback_of_an_async_handler_is_free_of_asyncio(stand: Stand) -> None:
    with pytest.raises(HandlerFailed, match="KeyError: 'x'") as caught:
        await stand.run("raises.async", "x")
    assert "raise KeyError(payload)" in caught.value.traceback
    assert "asyncio" not in caught.value.traceback


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        ("exit", "SystemExit: 4"),
        ("unlucky", "Unlucky: .its message cannot be shown: RuntimeError."),
        ("halves", r"ValueError: half a character: \\ud83d"),
    ],
)
async def test_odd_exceptions_are_failures_like_others(stand: Stand, payload: str, message: str) -> None:
    with pytest.raises(HandlerFailed, match=message):
        await stand.run("raises", payload)


async def test_fatal_and_snooze_come_through_as_themselves(stand: Stand) -> None:
    with pytest.raises(Fatal, match="this file is not yours") as fatal:
        await stand.run("raises", "fatal")
    assert fatal.value.details == {"path": "a", "line": 3}
    with pytest.raises(Snooze) as snooze:
        await stand.run("raises", "snooze")
    assert snooze.value.delay == timedelta(seconds=90)


async def test_a_result_that_is_not_json_is_refused_by_its_type(stand: Stand) -> None:
    with pytest.raises(BadResult, match="The result is not JSON: Type is not JSON serializable: set") as caught:
        await stand.run("gives", "set")
    assert caught.value.error_code is ErrorCode.BAD_RESULT


async def test_a_result_that_is_too_large_is_refused_and_the_child_goes_on(stand: Stand) -> None:
    with pytest.raises(BadResult, match="The result has 2,000,002 bytes and may have 1,000,000"):
        await stand.run("gives", "huge", result_limit=1_000_000)
    assert len(await stand.run("gives", "huge", result_limit=3_000_000)) == 2_000_000


async def test_a_result_that_postgresql_cannot_store_is_refused(stand: Stand) -> None:
    with pytest.raises(BadResult, match="holds a NUL character"):
        await stand.run("gives", "nul")


@pytest.mark.parametrize("name", ["reports", "reports.async"])
async def test_reports_reach_the_worker_in_order_and_answers_the_handler(stand: Stand, name: str) -> None:
    stand.recorder.done_steps["fetch"] = {"path": "a.bin"}
    assert await stand.run(name) == {"fetched": {"path": "a.bin"}}
    assert stand.recorder.said == [
        ("log", "begins"),
        ("begin", "fetch"),
        ("progress", 40, 3),
        ("begin", "count"),
        ("end", "count", True, {"counted": 7}),
    ]


async def test_reports_made_together_are_all_answered(stand: Stand) -> None:
    await stand.run("reports.together")
    assert sorted(int(message) for _, message in stand.recorder.said) == list(range(20))


@pytest.mark.parametrize("name", ["reports", "reports.async"])
async def test_a_lost_lease_is_raised_in_the_handler_and_comes_back(stand: Stand, name: str) -> None:  # S-11
    stand.recorder.refuse = LeaseLost()
    with pytest.raises(LeaseLost):
        await stand.run(name)


async def test_a_report_that_cannot_be_written_fails_the_handler_with_the_reason(stand: Stand) -> None:
    stand.recorder.refuse = ConnectionError("the database is away")
    with pytest.raises(HandlerFailed, match="ReportFailed: ConnectionError: the database is away"):
        await stand.run("reports")


async def test_the_detail_of_a_step_must_be_json(stand: Stand) -> None:
    with pytest.raises(HandlerFailed, match="Type is not JSON serializable: set"):
        await stand.run("step_detail_is_a_set")


async def test_a_thread_that_outlives_its_task_can_report_nothing_more(stand: Stand, tmp_path: Path) -> None:  # S-11
    word = tmp_path / "word"
    await stand.run("reports.late", str(word))
    assert await eventually(lambda: word.exists() and bool(word.read_text()))
    assert word.read_text() == "LeaseLost"
    assert stand.recorder.said == []


async def test_ending_in_a_transaction_is_refused_with_a_reason(stand: Stand) -> None:
    with pytest.raises(Fatal, match="finish_in is not available with isolation='process'"):
        await stand.run("finishes_in")


async def test_whatever_is_printed_goes_to_the_workers_standard_error_whole(
    stand: Stand, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await stand.run("chats", 20_000) == "said"
    printed = ""

    def all_there() -> bool:
        nonlocal printed
        printed += capsys.readouterr().err
        return printed.count("\n") >= 20_000

    assert await eventually(all_there)
    assert [line.split(" ")[1] for line in printed.splitlines()] == [str(number) for number in range(20_000)]


async def test_a_child_logs_as_its_worker_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(logs, "_chosen", ("json", "INFO"))
    async with closing(Children(size=1)) as children:
        await Stand(children, tmp_path).run("logs", 7)
    lines = [orjson.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [(line["event"], line["level"]) for line in lines] == [("figures.added", "info"), ("plain words", "warning")]
    assert lines[0]["number"] == 7


async def test_lines_of_several_children_do_not_mix() -> None:
    pieces: list[bytes] = []
    output = Output(pieces.append)
    try:
        for written in (b"a" * 10, b"b\nc", b"d" * KEPT * 2, b"e\nf"):
            os.write(output.sink, written)
            await asyncio.sleep(0.01)
    finally:
        output.close()
    assert pieces == [b"a" * 10 + b"b\n", b"c" + b"d" * KEPT * 2, b"e\n", b"f\n"]
    assert output.last_lines() == f"{'d' * (KEPT - 3)}e\nf"


async def test_what_a_handler_starts_obeys_a_termination_as_usual(stand: Stand) -> None:
    assert await stand.run("terminates_its_own") == [-15, -15]
