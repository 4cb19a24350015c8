"""How a handler ended in a child, as a message there and as a value or an exception here."""

import asyncio
import traceback
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson

from headrace.tasks.errors import BadResult, Fatal, LeaseLost, PayloadInvalid, Snooze, TaskCanceled
from headrace.tasks.isolation.errors import CrashCause, Crashed, HandlerFailed
from headrace.tasks.isolation.wire import Message, text

# Frames of ours and of asyncio between the process's start and the handler say nothing about its failure.
_FOLDERS = tuple(str(Path(module).parent) for module in (__file__, asyncio.__file__))
_MAX_MESSAGE_CHARACTERS = 16_000
_PLAIN = {"lease_lost": LeaseLost, "bad_result": BadResult}


def of_result(encoded: bytes) -> Message:
    return {"kind": "result", "value": orjson.Fragment(bytes(encoded))}


def of_bad_result(message: str) -> Message:
    return {"kind": "bad_result", "message": text(message)}


def of_bad_payload(exc: PayloadInvalid) -> Message:
    return {"kind": "bad_payload", "message": text(exc.message), "fields": exc.details.get("fields", [])}


def of_exception(exc: BaseException, *, asked_to_stop: bool) -> Message:
    """What a handler raised. Nothing it can raise, and no way its exception can misbehave, makes this fail."""
    match exc:
        case TaskCanceled():
            return {"kind": "canceled"}
        case asyncio.CancelledError() if asked_to_stop:
            return {"kind": "canceled"}
        case Snooze():
            return {"kind": "snooze", "seconds": exc.delay.total_seconds()}
        case Fatal():
            return {"kind": "fatal", "message": text(exc.message), "details": _plain(exc.details)}
        case LeaseLost():
            return {"kind": "lease_lost", "message": text(exc.message)}
        case BadResult():
            return of_bad_result(exc.message)
        case MemoryError():
            return {"kind": "no_memory", "traceback": describe(exc)}
        case _:
            return {
                "kind": "failed",
                "type": type(exc).__name__,
                "message": text(_message(exc))[:_MAX_MESSAGE_CHARACTERS],
                "traceback": describe(exc),
            }


def value_of(end: Message) -> Any:
    """The result of an ending, or raise its error."""
    match end["kind"]:
        case "result":
            return end["value"]
        case "failed":
            raise HandlerFailed(end["type"], end["message"], end["traceback"])
        case "fatal":
            raise Fatal(end["message"], **end["details"])
        case "snooze":
            raise Snooze(timedelta(seconds=end["seconds"]))
        case "canceled":
            raise TaskCanceled
        case "bad_payload":
            raise PayloadInvalid(end["message"], fields=end["fields"])
        case "no_memory":
            raise Crashed(
                f"It ran out of memory: its type's memory_bytes, or the machine's.\n{end['traceback']}",
                cause=CrashCause.MEMORY,
            )
        case kind:
            raise _PLAIN[kind](end["message"])


def describe(exc: BaseException) -> str:
    """The traceback from the handler on, ending with the message; its end when it is long."""
    try:
        lines = traceback.format_exception(type(exc), exc, _from_handler(exc))
        whole = text("".join(lines)).rstrip()
    except Exception as odd:  # noqa: BLE001 - a __str__ of the user's may raise anything
        whole = f"{type(exc).__name__} (it cannot be shown: {type(odd).__name__})"
    return whole if len(whole) <= _MAX_MESSAGE_CHARACTERS else f"…{whole[-_MAX_MESSAGE_CHARACTERS:]}"


def _from_handler(exc: BaseException) -> Any:
    frame = exc.__traceback__
    while frame is not None and str(Path(frame.tb_frame.f_code.co_filename).parent) in _FOLDERS:
        frame = frame.tb_next
    return frame


def _message(exc: BaseException) -> str:
    try:
        return str(exc)
    except Exception as odd:  # noqa: BLE001 - as above
        return f"(its message cannot be shown: {type(odd).__name__})"


def _plain(details: Any) -> Any:
    return orjson.loads(orjson.dumps(dict(details), default=str, option=orjson.OPT_NON_STR_KEYS))
