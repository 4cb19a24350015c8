"""``headrace locks``: who holds what, and holding a lock from a shell."""

import asyncio
import os
import signal
from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated

import typer

from headrace.cli.operator import OperatorSession, as_operator
from headrace.cli.output import Json, out, print_json, print_table, say
from headrace.cli.people import user_id_of
from headrace.cli.words import one_of
from headrace.edge.vocabulary import shown, stored, words_of
from headrace.errors import Invalid
from headrace.locks import holding, service, store, taking
from headrace.locks.model import MAX_TTL, Grant, Lock, LockState
from headrace.locks.schemas import GrantOut, LockOut

app = typer.Typer(help="Locks: who holds what; take, keep, release one.", no_args_is_help=True)

Key = Annotated[str, typer.Argument(metavar="KEY", help="The lock's name.")]
_DAY_S = MAX_TTL.total_seconds()
Ttl = Annotated[float, typer.Option(min=0.1, max=_DAY_S, metavar="SECONDS", help="For how long, unless it is renewed.")]
Wait = Annotated[float, typer.Option(min=0, max=_DAY_S, metavar="SECONDS", help="How long to wait if somebody has it.")]
Purpose = Annotated[str | None, typer.Option(help="What for; whoever waits can read it.")]
Token = Annotated[str, typer.Option(envvar="HEADRACE_LOCK_TOKEN", help="As `acquire` printed it.")]


@app.command("list")
def list_(
    key: Annotated[str | None, typer.Option(help="Only this one.")] = None,
    status: Annotated[str | None, one_of(offered=words_of(LockState), help="Only these.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="At most so many.")] = 100,
    json: Json = False,
) -> None:
    """Everybody's locks, newest first: those that are held and those that were."""
    wanted = store.Filter(None, key, state=None if status is None else stored(LockState, status))

    async def act(session: OperatorSession) -> Sequence[Lock]:
        async with session.db.transaction() as tx:
            return await service.list_locks(tx, session.caller, wanted, limit=limit)

    found = [LockOut.of(lock) for lock in as_operator("locks list", act)]
    if json:
        print_json([lock.model_dump(mode="json") for lock in found])
        return
    print_table(
        ("key", "fence", "status", "holder", "purpose", "acquired", "left", "owner"),
        [
            (
                lock.key,
                lock.fence,
                shown(lock.status),
                lock.holder,
                lock.purpose,
                f"{lock.acquired_at:%Y-%m-%d %H:%M:%S} UTC",
                f"{lock.remaining_seconds:,.1f} s" if lock.status is LockState.ACTIVE else None,
                lock.user_id,
            )
            for lock in found
        ],
    )


@app.command()
def acquire(key: Key, ttl: Ttl = 30, wait: Wait = 0, purpose: Purpose = None, json: Json = False) -> None:
    """Take one of the system's locks and print its token."""

    async def act(session: OperatorSession) -> Grant:
        async def attempt() -> Grant:
            async with session.db.transaction() as tx:
                return await service.acquire_lock(
                    tx, session.caller, key, ttl=timedelta(seconds=ttl), holder=_holder(), purpose=purpose
                )

        return await taking.retry_while_held(attempt, wait=timedelta(seconds=wait))

    granted = GrantOut.granted(as_operator("locks acquire", act))
    if json:
        print_json(granted.model_dump(mode="json"))
    else:
        out.print(granted.token)


@app.command()
def renew(key: Key, token: Token, ttl: Ttl = 30, json: Json = False) -> None:
    """Hold on to a lock."""

    async def act(session: OperatorSession) -> Lock:
        async with session.db.transaction() as tx:
            return await service.renew_lock(tx, session.caller, key, token, ttl=timedelta(seconds=ttl))

    _print(as_operator("locks renew", act), "renewed", json=json)


@app.command()
def release(key: Key, token: Token, json: Json = False) -> None:
    """Let a lock go."""

    async def act(session: OperatorSession) -> Lock:
        async with session.db.transaction() as tx:
            return await service.release_lock(tx, session.caller, key, token)

    _print(as_operator("locks release", act), "released", json=json)


@app.command("force-release")
def force_release(
    key: Key,
    user: Annotated[str | None, typer.Option(help="Whose lock, by username or id; the system's by default.")] = None,
    json: Json = False,
) -> None:
    """Take a lock away from whoever holds it; audited."""

    async def act(session: OperatorSession) -> Lock:
        owner = session.caller.user_id if user is None else await user_id_of(session, user)
        async with session.db.transaction() as tx:
            return await service.force_release_lock(tx, session.caller, key, user_id=owner)

    _print(as_operator("locks force-release", act), "taken away", json=json)


@app.command("run", context_settings={"ignore_unknown_options": True})
def run_(
    key: Key,
    command: Annotated[list[str], typer.Argument(help="The command and its arguments, after --.")],
    ttl: Ttl = 30,
    wait: Wait = 0,
    purpose: Purpose = None,
) -> None:
    """Run a command while holding a lock: `headrace locks run deploy -- ./deploy.sh`.

    The command finds HEADRACE_LOCK_FENCE and HEADRACE_LOCK_TOKEN in its environment. It is told to stop (SIGTERM) when
    the lock is lost, and killed when it does not. The exit status is the command's.
    """

    if command[0].startswith("-"):
        raise Invalid(f"There is no option {command[0]} here; the command comes after --.")

    async def act(session: OperatorSession) -> int:
        span = timedelta(seconds=ttl)
        async with holding.hold(
            session.db, key, ttl=span, wait=timedelta(seconds=wait), purpose=purpose or command[0][:255]
        ) as lock:
            return await _run(command, {"HEADRACE_LOCK_FENCE": str(lock.fence), "HEADRACE_LOCK_TOKEN": lock.token})

    raise typer.Exit(as_operator("locks run", act))


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


def _print(lock: Lock, done: str, *, json: bool) -> None:
    if json:
        print_json(LockOut.of(lock).model_dump(mode="json"))
    else:
        out.print(f"{lock.lock_key} {done}")
