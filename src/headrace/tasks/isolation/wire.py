"""What worker and child say to each other: JSON, each message after its length. Never pickle.

The worker says   begin   path, logs                           once, at the start
                  load    address                              import this handler
                  run     run, address, claimed, steps,        do this task
                          scratch, limit, limits,
                          descriptors                          how many wait for it in the other socket
                  stop    run                                  it should stop
                  reply   call, value | refused                the answer to a call
The child says    ready   memory, missing                      the answer to begin: what the kernel could not do
                  ready   memory   or   broken  error          the answer to load
                  call    run, call, verb, args, kwargs        a report of the handler
                  end     run, kind, …, memory, left           how it ended, see endings.py; whether processes are left
"""

import asyncio
import socket
import struct
from datetime import datetime
from typing import Any, TypeAlias

import orjson

from headrace.tasks.context import StepRecord
from headrace.tasks.errors import BadResult, LeaseLost, TaskCanceled
from headrace.tasks.isolation.errors import ReportFailed
from headrace.tasks.model import Claimed

Message: TypeAlias = dict[str, Any]

_LENGTH = struct.Struct("!I")
# Far above any payload or result that tasks may have: a larger announcement does not follow this protocol.
LARGEST = 64 * 1024 * 1024


class Unintelligible(ValueError):
    """The bytes received are not a message."""


def pack(message: Message) -> bytes:
    """The bytes of a message; ``TypeError`` names the type in it that is not JSON."""
    body = orjson.dumps(message)
    if len(body) > LARGEST:
        raise ValueError(f"{len(body):,} bytes are too many for one message; {LARGEST:,} are allowed")
    return _LENGTH.pack(len(body)) + body


def receive(connection: socket.socket) -> Message | None:
    """The next message on a blocking socket, None at its end."""
    head = _read_exactly(connection, _LENGTH.size)
    if head is None:
        return None
    body = _read_exactly(connection, _body_length(head))
    return None if body is None else _parse(body)


async def read(stream: asyncio.StreamReader) -> Message | None:
    """The next message on a stream, None at its end."""
    try:
        head = await stream.readexactly(_LENGTH.size)
        return _parse(await stream.readexactly(_body_length(head)))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


def unpack_claimed(fields: Message) -> Claimed:
    return Claimed(**{**fields, "claimed_at": datetime.fromisoformat(fields["claimed_at"])})


def pack_refusal(exc: BaseException) -> Message:
    """Why a report was not taken."""
    kinds = {LeaseLost: "lease_lost", TaskCanceled: "canceled", BadResult: "bad_result"}
    kind = next((kind for known, kind in kinds.items() if isinstance(exc, known)), "failed")
    return {"kind": kind, "message": text(str(exc)), "type": type(exc).__name__}


def unpack_reply(reply: Message, verb: str) -> Any:
    """What the worker answered, or raise its refusal."""
    refused = reply.get("refused")
    if refused is None:
        return StepRecord(**reply["value"]) if verb == "begin_step" else reply.get("value")
    match refused["kind"]:
        case "lease_lost":
            raise LeaseLost(refused["message"])
        case "canceled":
            raise TaskCanceled
        case "bad_result":
            raise BadResult(refused["message"])
        case _:
            raise ReportFailed(f"{refused['type']}: {refused['message']}")


def text(raw: str) -> str:
    """The text without what JSON cannot carry: halves of characters."""
    return raw.encode("utf-8", "backslashreplace").decode()


def _read_exactly(connection: socket.socket, count: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < count:
        try:
            part = connection.recv(min(count - len(parts), 1 << 20))
        except ConnectionError:
            return None
        if not part:
            return None
        parts += part
    return bytes(parts)


def _body_length(head: bytes) -> int:
    (length,) = _LENGTH.unpack(head)
    if length > LARGEST:
        raise Unintelligible(f"a message of {length:,} bytes was announced")
    return int(length)


def _parse(body: bytes) -> Message:
    try:
        message = orjson.loads(body)
    except ValueError as exc:
        raise Unintelligible(f"a message is not JSON: {exc}") from None
    if not isinstance(message, dict):
        raise Unintelligible("a message is not an object")
    return message
