"""One task in one child: the order goes out, reports come in, and it ends in one of the ways of errors.py."""

import asyncio
import contextlib
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from headrace.tasks.context import Facts, Reporter
from headrace.tasks.errors import TaskCanceled
from headrace.tasks.execution import ProcessLimits
from headrace.tasks.isolation import endings, wire
from headrace.tasks.isolation.errors import CrashCause, Crashed, Killed
from headrace.tasks.isolation.limits import limited
from headrace.tasks.isolation.process import Child
from headrace.tasks.isolation.wire import Message
from headrace.tasks.model import Claimed
from headrace.tasks.registry import TaskType

_VERBS = frozenset({"progress", "extend", "log", "used", "begin_step", "end_step", "save_result"})
# A child's last messages before it died are still in the pipe; and one that hangs up is about to die.
_AFTERMATH = 1.0


async def perform(
    child: Child,
    task_type: TaskType,
    claimed: Claimed,
    facts: Facts,
    reporter: Reporter,
    *,
    stop: asyncio.Event,
    grace: Callable[[], timedelta],
    result_limit: int,
) -> Any:
    """Run the task in the child. Afterwards its handler runs no more, or the child is not ``clean`` and must go."""
    number = child.begin()
    limits = task_type.limits
    child.hand_over(facts.descriptors)
    order = {
        "do": "run",
        "run": number,
        "address": task_type.address,
        "limits": None if child.limited_from_outside else limits,
        "claimed": claimed,
        "steps": facts.steps,
        "scratch": str(facts.scratch_root),
        "descriptors": len(facts.descriptors),
        "limit": min(result_limit, wire.LARGEST // 2),
    }
    is_outside = child.limited_from_outside
    with limited(limits, child.pid, has_ended=child.exited.done) if is_outside else contextlib.nullcontext():
        end = await _talk(child, order, claimed, reporter, stop=stop, grace=grace, limits=limits)
    if end is None:
        if child.killed:
            raise Killed
        raise Crashed(f"Its process {child.fate()}.{child.last_lines()}", cause=child.cause())
    child.end(end["memory"])
    if end["kind"] == "no_memory" or end["left"]:
        # What failed to allocate is unknown; and programs that a handler has left running end with its task.
        child.clean = False
    return endings.value_of(end)


async def _talk(
    child: Child,
    order: Message,
    claimed: Claimed,
    reporter: Reporter,
    *,
    stop: asyncio.Event,
    grace: Callable[[], timedelta],
    limits: ProcessLimits,
) -> Message | None:
    """Give the order and wait for the child's account of its end; None if it died without one."""
    talk = asyncio.create_task(_converse(child, order, claimed, reporter))
    stop_requested = asyncio.create_task(stop.wait())
    try:
        over: list[asyncio.Future[Any]] = [talk, child.exited]
        await asyncio.wait([*over, stop_requested], timeout=limits.wall_seconds, return_when=asyncio.FIRST_COMPLETED)
        if not any(each.done() for each in (*over, stop_requested)):
            raise Crashed(
                f"It was killed: it ran longer than its process may, {limits.wall_seconds} s.", cause=CrashCause.TIME
            )
        if stop_requested.done() and not talk.done():
            child.tell({"do": "stop", "run": order["run"]})
            await asyncio.wait(over, timeout=grace().total_seconds(), return_when=asyncio.FIRST_COMPLETED)
            if not talk.done() and not child.exited.done():
                await _kill(child)
        return await _last_word(child, talk)
    finally:
        stop_requested.cancel()
        if not talk.done():
            child.kill()
            talk.cancel()
            await asyncio.wait([talk], timeout=_AFTERMATH)  # a report under way is taken back, not left behind


async def _kill(child: Child) -> None:
    child.kill()
    # Only a process that the kernel itself cannot stop at the moment (a hung disk) lives on beyond this.
    await asyncio.wait([child.exited], timeout=5)
    raise Killed


async def _last_word(child: Child, talk: "asyncio.Task[Message | None]") -> Message | None:
    """How it ended by its own account; None if it died without one."""
    await asyncio.wait([talk], timeout=_AFTERMATH)
    end = talk.result() if talk.done() else None
    if end is None:
        await asyncio.wait([child.exited], timeout=_AFTERMATH)
    return end


async def _converse(child: Child, order: Message, claimed: Claimed, reporter: Reporter) -> Message | None:
    """Give the order and take reports until the end comes; None when it hangs up."""
    number = order["run"]
    await child.say(order)
    while True:
        try:
            message = await child.hear()
        except wire.Unintelligible:
            return None
        if message is None or (message["say"] == "end" and message["run"] == number):
            return message
        if message["say"] == "call":
            if message["run"] == number:
                await child.say(await _answer(message, claimed, reporter))
            else:
                child.refuse(message)


async def _answer(call: Message, claimed: Claimed, reporter: Reporter) -> Message:
    reply = {"do": "reply", "call": call["call"]}
    try:
        if call["verb"] not in _VERBS:
            raise ValueError(f"there is no report {call['verb']!r}")
        value = await getattr(reporter, call["verb"])(claimed, *call["args"], **call["kwargs"])
    except (Exception, TaskCanceled) as exc:  # noqa: BLE001 - whatever the reporter raises is the handler's to deal with
        return {**reply, "refused": wire.pack_refusal(exc)}
    return {**reply, "value": value}
