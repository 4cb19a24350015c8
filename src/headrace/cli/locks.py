"""``headrace locks``: listing locks, and holding one from a shell."""

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from datetime import timedelta
from time import monotonic
from typing import Annotated, Any

import typer

from headrace.cli.calls import drop_none, list_all, path, perform, user_id_of
from headrace.cli.output import Json, out, print_json, print_table, say
from headrace.cli.requests import Api
from headrace.cli.showing import when
from headrace.cli.words import one_of
from headrace.errors import Conflict, Invalid

app = typer.Typer(help="Locks: list, take, keep and release them.", no_args_is_help=True)

Key = Annotated[str, typer.Argument(metavar="KEY", help="The lock's name.")]
_DAY_S = 24 * 3600
_MAX_WAIT_S = 20.0  # of one request; the API allows 30
Ttl = Annotated[float, typer.Option(min=1, max=_DAY_S, metavar="SECONDS", help="For how long, unless it is renewed.")]
Wait = Annotated[float, typer.Option(min=0, max=_DAY_S, metavar="SECONDS", help="How long to wait for the lock.")]
Purpose = Annotated[str | None, typer.Option(help="What for; others who wait can read it.")]
Token = Annotated[str, typer.Option(envvar="HEADRACE_LOCK_TOKEN", help="As `acquire` printed it.")]

_LOCKS = path("locks")


@app.command("list")
def list_(
    key: Annotated[str | None, typer.Option(help="Only this one.")] = None,
    status: Annotated[str | None, one_of(offered=("ACTIVE", "EXPIRED", "RELEASED"), help="Only these.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Maximum number of locks.")] = 100,
    json: Json = False,
) -> None:
    """Everybody's locks (over an API your own), newest first: those that are held and those that were."""
    filters = drop_none(key=key, status=status)
    rows = perform("locks list", lambda api: list_all(api, _LOCKS, filters, limit=limit))
    if json:
        print_json(rows)
        return
    print_table(
        ("key", "fence", "status", "holder", "purpose", "acquired", "left", "owner"),
        [
            (
                lock["key"],
                lock["fence"],
                lock["status"],
                lock["holder"],
                lock["purpose"],
                when(lock["acquired_at"]),
                f"{lock['remaining_seconds']:,.1f} s" if lock["status"] == "ACTIVE" else None,
                lock["user_id"],
            )
            for lock in rows
        ],
    )


@app.command()
def acquire(key: Key, ttl: Ttl = 30, wait: Wait = 0, purpose: Purpose = None, json: Json = False) -> None:
    """Take a lock (on the database the system's) and print its token."""
    body = {"key": key, "ttl_seconds": ttl, "holder": _holder(), **drop_none(purpose=purpose)}
    granted = perform("locks acquire", lambda api: _acquire(api, body, wait))
    if json:
        print_json(granted)
    else:
        out.print(granted["token"])


async def _acquire(api: Api, body: Mapping[str, Any], wait: float) -> Any:
    end = monotonic() + wait
    while True:
        left = min(max(end - monotonic(), 0), _MAX_WAIT_S)
        try:
            return await api.ask("POST", _LOCKS, body={**body, "wait_seconds": left})
        except Conflict as exc:
            if exc.code != "lock_held" or monotonic() >= end:
                raise


@app.command()
def renew(key: Key, token: Token, ttl: Ttl = 30, json: Json = False) -> None:
    """Hold on to a lock."""
    _change("renew", {"key": key, "token": token, "ttl_seconds": ttl}, "renewed", json=json)


@app.command()
def release(key: Key, token: Token, json: Json = False) -> None:
    """Let a lock go."""
    _change("release", {"key": key, "token": token}, "released", json=json)


@app.command("force-release")
def force_release(
    key: Key,
    user: Annotated[
        str | None,
        typer.Option(help="Whose lock, by username or id; by default the system's, over an API your own."),
    ] = None,
    json: Json = False,
) -> None:
    """Take a lock away from its holder; audited."""
    _change("force-release", {"key": key}, "taken away", user=user, json=json)


def _change(verb: str, body: Mapping[str, Any], done: str, *, user: str | None = None, json: bool) -> None:
    async def act(api: Api) -> Any:
        owner = drop_none(user_id=await user_id_of(api, user))
        return await api.ask("POST", path("locks", verb), body={**body, **owner})

    lock = perform(f"locks {verb}", act)
    if json:
        print_json(lock)
    else:
        out.print(f"{lock['key']} {done}")


@app.command("run", context_settings={"ignore_unknown_options": True})
def run_(
    key: Key,
    command: Annotated[list[str], typer.Argument(help="The command and its arguments, after --.")],
    ttl: Ttl = 30,
    wait: Wait = 0,
    purpose: Purpose = None,
) -> None:
    """Run a command while holding a lock: `headrace locks run deploy -- ./deploy.sh`.

    The command finds HEADRACE_LOCK_FENCE and HEADRACE_LOCK_TOKEN in its environment. It gets SIGTERM when the lock is
    lost, and is killed when it does not stop. The exit status is the command's.
    """

    if command[0].startswith("-"):
        raise Invalid(f"There is no option {command[0]} here; the command comes after --.")

    async def act(api: Api) -> int:
        from headrace.client.locks import Locks

        span, patience = timedelta(seconds=ttl), timedelta(seconds=wait)
        named = purpose or command[0][:255]
        async with Locks(api.connection).hold(key, ttl=span, wait=patience, purpose=named) as lock:
            return await _run(
                command, {"HEADRACE_LOCK_FENCE": str(lock.fence), "HEADRACE_LOCK_TOKEN": lock.token or ""}
            )

    raise typer.Exit(perform("locks run", act))


async def _run(command: Sequence[str], more: dict[str, str]) -> int:
    try:
        process = await asyncio.create_subprocess_exec(*command, env={**os.environ, **more})
    except OSError as exc:
        raise Invalid(f"{command[0]} cannot be run: {exc.strerror}.") from exc
    try:
        status = await process.wait()
    except asyncio.CancelledError:
        say("headrace: the lock is lost, or was given up: stopping the command")
        process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(5):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
        raise
    return status if status >= 0 else 128 - status


def _holder() -> str:
    return f"{os.uname().nodename}:{os.getppid()}"  # the shell: this process ends at once
