"""``headrace admin delete``, ``keep`` and ``deletions``: the end of an account, from the machine."""

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Annotated

import typer

from headrace.accounts.deletion import service
from headrace.accounts.deletion.machine import Deletions
from headrace.accounts.model import Deletion, DeletionStatus
from headrace.accounts.schemas import DeletionOut
from headrace.assembly.erasers import erasers
from headrace.cli.files_wiring import files_of
from headrace.cli.operator import OperatorSession, as_operator
from headrace.cli.output import Json, Yes, out, print_json, print_table
from headrace.cli.people import get_user
from headrace.cli.wiring import accounts_config

Name = Annotated[str, typer.Argument(metavar="USER", help="The username, or the id: u_….")]


def delete(
    user: Name,
    at_once: Annotated[
        bool, typer.Option("--at-once", help="Without the grace period, and done here and now.")
    ] = False,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Delete an account: nobody gets in from now on; the data goes when the grace period is over."""
    if not yes:
        typer.confirm(f"Delete the account {user}?", abort=True, err=True)
    _print(as_operator("admin delete", lambda session: _delete(session, user, at_once=at_once)), json=json)


def keep(user: Name, json: Json = False) -> None:
    """Undo the deletion of an account that has not begun."""

    async def act(session: OperatorSession) -> Deletion:
        async with session.db.transaction() as tx:
            found = await get_user(tx, session.caller.who, user)
            await service.keep_account(tx, session.caller.who, found.id)
            return await service.get_deletion(tx, session.caller.who, found.id)

    _print(as_operator("admin keep", act), json=json)


def deletions(
    status: Annotated[DeletionStatus | None, typer.Option(case_sensitive=False, help="Only these.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many at the most.")] = 50,
    json: Json = False,
) -> None:
    """List deletions of accounts, newest first."""

    async def act(session: OperatorSession) -> Sequence[Deletion]:
        async with session.db.transaction() as tx:
            return await service.list_deletions(tx, session.caller.who, status=status, limit=limit)

    found = as_operator("admin deletions", act)
    if json:
        print_json([DeletionOut.of(each).model_dump(mode="json") for each in found])
        return
    print_table(
        ("user", "status", "due", "steps done", ""),
        [
            (
                each.user_id,
                each.status,
                f"{each.due_at:%Y-%m-%d %H:%M:%S} UTC",
                ", ".join(each.steps_done),
                each.obstacle,
            )
            for each in found
        ],
    )


async def _delete(session: OperatorSession, name: str, *, at_once: bool) -> Deletion:
    config = accounts_config(session.settings).deletion
    async with session.db.transaction() as tx:
        user = await get_user(tx, session.caller.who, name)
        grace = timedelta(0) if at_once else config.grace
        await service.delete_account(tx, session.caller.who, user.id, grace=grace)
    if at_once:
        machine = Deletions(session.db, erasers(session.tasks, partial(files_of, session.settings)), config)
        while await machine.run_once():  # others that are due, too: somebody has to
            pass
    async with session.db.transaction() as tx:
        return await service.get_deletion(tx, session.caller.who, user.id)


def _print(deletion: Deletion, *, json: bool) -> None:
    if json:
        print_json(DeletionOut.of(deletion).model_dump(mode="json"))
        return
    said = {
        DeletionStatus.WAITING: f"is deleted from {deletion.due_at:%Y-%m-%d %H:%M:%S} UTC on; until then, "
        "`headrace admin keep` undoes it",
        DeletionStatus.RUNNING: f"is being deleted: {deletion.obstacle or 'any running Headrace goes on with it'}",
        DeletionStatus.COMPLETED: "is deleted",
        DeletionStatus.CANCELED: "is kept",
    }
    out.print(f"{deletion.user_id} {said[deletion.status]}", soft_wrap=True)
