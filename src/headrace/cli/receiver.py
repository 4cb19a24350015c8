"""``headrace webhooks listen``: a receiver on this machine that checks signatures and prints requests."""

import asyncio
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import h11
import orjson
from standardwebhooks import Webhook, WebhookVerificationError

from headrace.cli.output import out, print_json, say
from headrace.cli.session import run
from headrace.errors import Invalid, Unavailable
from headrace.webhooks.secrets import read_secret

_MAX_BODY_BYTES = 10 * 1024 * 1024
_READ = 64 * 1024

Receive = Callable[[dict[str, str], bytes], Awaitable[int]]


class PortBusy(Unavailable):
    """Another program listens on this port: choose another with --port, or 0 for any."""

    code = "port_busy"


def listen(port: int, secret: str | None, *, status: int, json: bool) -> None:
    """Receive until Ctrl-C."""
    verifier = None if secret is None else Webhook(read_secret(secret).key)

    async def receive(headers: dict[str, str], body: bytes) -> int:
        problem = _check(verifier, headers, body)
        _print(headers, body, problem, json=json)
        return status if problem is None else 400

    run(_serve(port, receive, checks=verifier is not None))


def _check(verifier: Webhook | None, headers: dict[str, str], body: bytes) -> str | None:
    """The fault of a request; None for a valid one, or if it cannot be determined."""
    if verifier is None:
        return None
    try:
        verifier.verify(body, headers, json_parse=False)
    except WebhookVerificationError as exc:
        return str(exc)
    except ValueError as exc:  # a header that is none
        return f"not a signature: {exc}"
    return None


def _print(headers: dict[str, str], body: bytes, problem: str | None, *, json: bool) -> None:
    try:
        event: Any = orjson.loads(body)
    except orjson.JSONDecodeError:
        event = body.decode(errors="replace")
    if json:
        print_json({"id": headers.get("webhook-id"), "verified": problem is None, "problem": problem, "body": event})
        return
    kind = event.get("type") if isinstance(event, dict) else "?"
    verdict = "refused: " + problem if problem else "ok"
    out.print(f"{_sent_at(headers)}  {kind}  {headers.get('webhook-id', '?')}  {verdict}")
    if isinstance(event, dict):
        out.print(orjson.dumps(event.get("data"), option=orjson.OPT_INDENT_2).decode())


def _sent_at(headers: dict[str, str]) -> str:
    """When it was sent, for people: the header counts seconds."""
    timestamp = headers.get("webhook-timestamp", "?")
    try:
        return f"{datetime.fromtimestamp(int(timestamp), UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):
        return timestamp


async def _serve(port: int, receive: Receive, *, checks: bool) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for each in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(each, stop.set)
    try:
        server = await asyncio.start_server(lambda r, w: _talk(r, w, receive), "127.0.0.1", port)
    except OSError as exc:
        raise PortBusy(f"Port {port} on 127.0.0.1 cannot be had ({exc.strerror}): choose another with --port.") from exc
    chosen = server.sockets[0].getsockname()[1]
    say(f"listening at http://127.0.0.1:{chosen}/ ; Ctrl-C stops")
    if not checks:
        say("signatures are not checked: give --secret-file for that, with whsec_… in it")
    await stop.wait()
    server.close()


async def _talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, receive: Receive) -> None:
    connection = h11.Connection(h11.SERVER)
    try:
        while True:
            request, body = await _read(connection, reader)
            headers = {name.decode().lower(): value.decode("latin-1") for name, value in request.headers}
            status = await receive(headers, body) if request.method == b"POST" else 405
            answer = h11.Response(status_code=status, headers=[("Content-Length", "0")] if status != 204 else [])
            writer.write((connection.send(answer) or b"") + (connection.send(h11.EndOfMessage()) or b""))
            await writer.drain()
            if connection.our_state is not h11.DONE or connection.their_state is not h11.DONE:
                return
            connection.start_next_cycle()
    except (h11.RemoteProtocolError, ConnectionError, EOFError, Invalid, asyncio.CancelledError):
        pass  # also at shutdown, for nothing waits for this
    finally:
        with suppress(ConnectionError):
            writer.close()


async def _read(connection: h11.Connection, reader: asyncio.StreamReader) -> tuple[h11.Request, bytes]:
    request: h11.Request | None = None
    body = b""
    while True:
        event = connection.next_event()
        match event:
            case h11.NEED_DATA:
                data = await reader.read(_READ)
                if not data and request is None:
                    raise EOFError
                connection.receive_data(data)
            case h11.Request():
                request = event
            case h11.Data():
                body += event.data
                if len(body) > _MAX_BODY_BYTES:
                    raise Invalid("The body is too long.")
            case h11.EndOfMessage() if request is not None:
                return request, body
            case _:
                raise EOFError
